// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: address handles.  VMRI has none: the address vector goes into each
 * request.  A handle of the kernel keeps the vector in VMRI's form.
 */
#include "softib.h"

#define SOFTIB_FLOW_LABEL_MASK	0xfffff

static enum rdma_ah_attr_type softib_ah_type(const struct softib_dev *dev)
{
	return softib_is_roce(dev) ? RDMA_AH_ATTR_TYPE_ROCE :
				     RDMA_AH_ATTR_TYPE_IB;
}

/**
 * softib_av_from_attr() - make VMRI's address vector
 * @dev:	device that it is for
 * @attr:	address
 * @av:		filled in
 *
 * Return: 0, or -EINVAL for an address that this port cannot have.
 */
int softib_av_from_attr(const struct softib_dev *dev,
			const struct rdma_ah_attr *attr, struct vmri_av *av)
{
	const struct ib_global_route *grh;

	if (attr->type != softib_ah_type(dev) ||
	    rdma_ah_get_port_num(attr) != SOFTIB_PORT)
		return -EINVAL;
	if (softib_is_roce(dev) && !(rdma_ah_get_ah_flags(attr) & IB_AH_GRH))
		return -EINVAL;

	*av = (struct vmri_av) {
		.dlid = rdma_ah_get_dlid(attr),
		.sl = rdma_ah_get_sl(attr),
		.src_path_bits = rdma_ah_get_path_bits(attr),
		.static_rate = rdma_ah_get_static_rate(attr),
	};

	if (rdma_ah_get_ah_flags(attr) & IB_AH_GRH) {
		grh = rdma_ah_read_grh(attr);
		memcpy(av->dgid, grh->dgid.raw, sizeof(av->dgid));
		av->flags = VMRI_AV_GRH;
		av->flow_label = grh->flow_label & SOFTIB_FLOW_LABEL_MASK;
		av->sgid_index = grh->sgid_index;
		av->hop_limit = grh->hop_limit;
		av->traffic_class = grh->traffic_class;
	}
	return 0;
}

/* The other way round. */
void softib_av_to_attr(const struct softib_dev *dev, const struct vmri_av *av,
		       struct rdma_ah_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->type = softib_ah_type(dev);
	rdma_ah_set_port_num(attr, SOFTIB_PORT);
	rdma_ah_set_dlid(attr, av->dlid);
	rdma_ah_set_sl(attr, av->sl);
	rdma_ah_set_path_bits(attr, av->src_path_bits);
	rdma_ah_set_static_rate(attr, av->static_rate);

	if (av->flags & VMRI_AV_GRH) {
		rdma_ah_set_grh(attr, NULL, av->flow_label, av->sgid_index,
				av->hop_limit, av->traffic_class);
		memcpy(attr->grh.dgid.raw, av->dgid, sizeof(av->dgid));
	}
}

int softib_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		     struct ib_udata *udata)
{
	return softib_av_from_attr(to_softib_dev(ibah->device), init->ah_attr,
				   &to_softib_ah(ibah)->av);
}

int softib_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	softib_av_to_attr(to_softib_dev(ibah->device), &to_softib_ah(ibah)->av,
			  attr);
	return 0;
}

int softib_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	return 0;
}
