// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB's uplink: the NIC's addresses, and the paths to other hosts.
 *
 * Of several addresses that is the one for a peer by which the kernel routes packets
 * to it.  So a fabric whose hosts have addresses of their own, in a VLAN for instance,
 * has its queue pairs connected by these, and the NIC takes nothing for them that comes
 * from another fabric's.
 */
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/ipv6_stubs.h>
#include <net/route.h>
#include <rdma/ib_cache.h>

#include "uplink.h"

/* Which of the NIC's addresses can talk to each other. */
enum uplink_family {
	UPLINK_IPV4,
	UPLINK_LINK_LOCAL,
	UPLINK_IPV6,
};

static enum uplink_family uplink_family(const void *gid)
{
	const struct in6_addr *address = gid;

	if (ipv6_addr_v4mapped(address))
		return UPLINK_IPV4;
	return ipv6_addr_type(address) & IPV6_ADDR_LINKLOCAL ?
	       UPLINK_LINK_LOCAL : UPLINK_IPV6;
}

/* The address that packets to another host come from.  0 or a negative errno. */
static int uplink_route4(__be32 to, union ib_gid *from)
{
	struct flowi4 fl4 = { .daddr = to };
	struct rtable *rt = ip_route_output_key(&init_net, &fl4);

	if (IS_ERR(rt))
		return PTR_ERR(rt);
	ip_rt_put(rt);
	ipv6_addr_set_v4mapped(fl4.saddr, (struct in6_addr *)from);
	return 0;
}

static int uplink_route6(const struct in6_addr *to, union ib_gid *from)
{
	struct flowi6 fl6 = { .daddr = *to };
	struct dst_entry *dst;

	dst = ipv6_stub->ipv6_dst_lookup_flow(&init_net, NULL, &fl6, NULL);
	if (IS_ERR(dst))
		return PTR_ERR(dst);
	dst_release(dst);
	memcpy(from, &fl6.saddr, sizeof(*from));
	return 0;
}

static const struct ib_gid_attr *uplink_routed_gid(struct uplink *up,
						   const u8 *dgid)
{
	const struct in6_addr *to = (const struct in6_addr *)dgid;
	union ib_gid from;
	int ret;

	if (uplink_family(dgid) == UPLINK_IPV4)
		ret = uplink_route4(to->s6_addr32[3], &from);
	else
		ret = uplink_route6(to, &from);
	if (ret)
		return ERR_PTR(ret);
	return rdma_find_gid_by_port(up->ibdev, &from,
				     IB_GID_TYPE_ROCE_UDP_ENCAP, UPLINK_PORT,
				     NULL);
}

/* The first that may do. */
static const struct ib_gid_attr *uplink_first_gid(struct uplink *up,
						  const u8 *dgid)
{
	int i, length = up->ibdev->port_data[UPLINK_PORT].immutable.gid_tbl_len;
	const struct ib_gid_attr *attr;

	for (i = 0; i < length; i++) {
		attr = rdma_get_gid_attr(up->ibdev, UPLINK_PORT, i);
		if (IS_ERR(attr))
			continue;
		if (attr->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP &&
		    (!dgid || uplink_family(&attr->gid) == uplink_family(dgid)))
			return attr;
		rdma_put_gid_attr(attr);
	}
	return ERR_PTR(-EHOSTUNREACH);
}

/**
 * uplink_find_gid() - the NIC's own address for a peer
 * @up:		uplink
 * @dgid:	peer's, or NULL: any will do
 *
 * Return: its attributes, for rdma_put_gid_attr(), or an error pointer.
 *
 * Context: may sleep.
 */
const struct ib_gid_attr *uplink_find_gid(struct uplink *up, const u8 *dgid)
{
	const struct ib_gid_attr *attr;

	/* Of link-local addresses the route alone says nothing. */
	if (!dgid || uplink_family(dgid) == UPLINK_LINK_LOCAL)
		return uplink_first_gid(up, dgid);
	attr = uplink_routed_gid(up, dgid);
	return IS_ERR(attr) ? ERR_PTR(-EHOSTUNREACH) : attr;
}

/**
 * uplink_resolve() - find the path to a peer's host
 * @qp:		queue pair that is to have it
 * @av:		with the host's GID
 * @ah:		filled in
 *
 * Only for those who make address handles the core finds out which Ethernet address
 * it has; that is written to the attributes.
 *
 * Context: may sleep.
 * Return: 0 or a negative errno.
 */
int uplink_resolve(struct uplink_qp *qp, const struct vmri_av *av,
		   struct rdma_ah_attr *ah)
{
	struct uplink *up = qp->twin.up;
	const struct ib_gid_attr *sgid = uplink_find_gid(up, av->dgid);
	union ib_gid dgid;
	struct ib_ah *ibah;

	if (IS_ERR(sgid))
		return PTR_ERR(sgid);

	memcpy(&dgid, av->dgid, sizeof(dgid));
	ah->type = rdma_ah_find_type(up->ibdev, UPLINK_PORT);
	rdma_ah_set_port_num(ah, UPLINK_PORT);
	rdma_ah_set_sl(ah, av->sl);
	rdma_ah_set_grh(ah, &dgid, av->flow_label, sgid->index, av->hop_limit,
			av->traffic_class);
	rdma_put_gid_attr(sgid);

	ibah = rdma_create_user_ah(qp->twin.pd->ibpd, ah, NULL);
	if (IS_ERR(ibah))
		return -EHOSTUNREACH;
	rdma_destroy_ah(ibah, RDMA_DESTROY_AH_SLEEPABLE);
	return 0;
}
