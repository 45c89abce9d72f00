// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * SoftIB: attributes, the clock, address handles.
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <util/util.h>

#include "softib.h"
#include "softib-abi.h"

int softib_query_device_ex(struct ibv_context *ibctx,
			   const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct ib_uverbs_ex_query_device_resp resp;
	size_t resp_size = sizeof(resp);
	uint64_t fw_ver;
	int ret;

	ret = ibv_cmd_query_device_any(ibctx, input, attr, attr_size, &resp,
				       &resp_size);
	if (ret)
		return ret;

	fw_ver = resp.base.fw_ver;
	snprintf(attr->orig_attr.fw_ver, sizeof(attr->orig_attr.fw_ver),
		 "%" PRIu64 ".%" PRIu64 ".%" PRIu64, (fw_ver >> 32) & 0xffff,
		 (fw_ver >> 16) & 0xffff, fw_ver & 0xffff);
	return 0;
}

int softib_query_port(struct ibv_context *ibctx, uint8_t port,
		      struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd;

	return ibv_cmd_query_port(ibctx, port, attr, &cmd, sizeof(cmd));
}

int softib_read_clock(struct ibv_context *ibctx, uint64_t *ns)
{
	struct usoftib_query_device_ex_resp resp = {};
	struct ibv_device_attr_ex attr;
	size_t resp_size = sizeof(resp);
	int ret;

	ret = ibv_cmd_query_device_any(ibctx, NULL, &attr, sizeof(attr),
				       &resp.ibv_resp, &resp_size);
	if (!ret)
		*ns = resp.clock;
	return ret;
}

int softib_query_rt_values(struct ibv_context *ibctx,
			   struct ibv_values_ex *values)
{
	uint64_t ns;
	int ret;

	if (!check_comp_mask(values->comp_mask, IBV_VALUES_MASK_RAW_CLOCK))
		return EOPNOTSUPP;
	if (!values->comp_mask)
		return 0;

	ret = softib_read_clock(ibctx, &ns);
	if (ret)
		return ret;
	/* A count of ticks, as timestamps are: not split into seconds. */
	values->raw_clock.tv_sec = 0;
	values->raw_clock.tv_nsec = ns;
	return 0;
}

static bool names_port(bool roce, const struct ibv_ah_attr *attr)
{
	if (roce)
		return attr->is_global && attr->grh.sgid_index < VMRI_MAX_GIDS;
	return attr->is_global ? !attr->grh.sgid_index : attr->dlid;
}

/*
 * An address handle is an address vector that every UD request carries along;
 * neither driver nor hypervisor know of it.
 */
struct ibv_ah *softib_create_ah(struct ibv_pd *ibpd, struct ibv_ah_attr *attr)
{
	bool roce = to_sctx(ibpd->context)->roce;
	struct softib_ah *ah;

	if (attr->port_num != 1 || attr->sl > 15 || !names_port(roce, attr)) {
		errno = EINVAL;
		return NULL;
	}

	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;

	ah->av.dlid = roce ? 0 : attr->dlid;
	ah->av.sl = attr->sl;
	ah->av.src_path_bits = attr->src_path_bits;
	ah->av.static_rate = attr->static_rate;
	if (attr->is_global) {
		ah->av.flags = VMRI_AV_GRH;
		memcpy(ah->av.dgid, attr->grh.dgid.raw, sizeof(ah->av.dgid));
		ah->av.flow_label = attr->grh.flow_label & 0xfffff;
		ah->av.sgid_index = attr->grh.sgid_index;
		ah->av.hop_limit = attr->grh.hop_limit;
		ah->av.traffic_class = attr->grh.traffic_class;
	}
	return &ah->ibv_ah;
}

int softib_destroy_ah(struct ibv_ah *ibah)
{
	free(to_sah(ibah));
	return 0;
}
