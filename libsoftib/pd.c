// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * SoftIB: protection domains, thread domains, and the parent domains that join
 * the two.
 *
 * The driver knows protection domains only.  A parent domain has the handle of
 * the one it was made of and can stand wherever that can; a thread domain is a
 * promise about who uses the objects made with it.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include "softib.h"
#include "softib-abi.h"

struct ibv_pd *softib_alloc_pd(struct ibv_context *ibctx)
{
	struct usoftib_alloc_pd_resp resp = {};
	struct ibv_alloc_pd cmd;
	struct softib_pd *pd;
	int ret;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;

	ret = ibv_cmd_alloc_pd(ibctx, &pd->ibv_pd, &cmd, sizeof(cmd),
			       &resp.ibv_resp, sizeof(resp));
	if (ret) {
		free(pd);
		errno = ret;
		return NULL;
	}
	return &pd->ibv_pd;
}

struct ibv_pd *
softib_alloc_parent_domain(struct ibv_context *ibctx,
			   struct ibv_parent_domain_init_attr *attr)
{
	struct softib_pd *pd;

	if (ibv_check_alloc_parent_domain(attr))
		return NULL;

	/* All memory of a queue is the driver's: none for an allocator. */
	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;

	pd->of = to_spd(attr->pd);
	atomic_fetch_add(&pd->of->users, 1);
	if (attr->td) {
		pd->td = to_std(attr->td);
		atomic_fetch_add(&pd->td->users, 1);
	}
	ibv_initialize_parent_domain(&pd->ibv_pd, attr->pd);
	return &pd->ibv_pd;
}

static void free_parent_domain(struct softib_pd *pd)
{
	atomic_fetch_sub(&pd->of->users, 1);
	if (pd->td)
		atomic_fetch_sub(&pd->td->users, 1);
	free(pd);
}

int softib_dealloc_pd(struct ibv_pd *ibpd)
{
	struct softib_pd *pd = to_spd(ibpd);
	int ret;

	if (atomic_load(&pd->users))
		return EBUSY;

	if (pd->of) {
		free_parent_domain(pd);
		return 0;
	}

	ret = ibv_cmd_dealloc_pd(ibpd);
	if (!ret)
		free(pd);
	return ret;
}

struct ibv_td *softib_alloc_td(struct ibv_context *ibctx,
			       struct ibv_td_init_attr *attr)
{
	struct softib_td *td;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}

	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->ibv_td.context = ibctx;
	return &td->ibv_td;
}

int softib_dealloc_td(struct ibv_td *ibtd)
{
	struct softib_td *td = to_std(ibtd);

	if (atomic_load(&td->users))
		return EBUSY;
	free(td);
	return 0;
}
