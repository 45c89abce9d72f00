// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB's uplink: datagrams to and from other hosts, by UDP between uplinks.
 *
 * A packet goes from the address that twins have, too, to the one that VMRI names.
 * One is taken that was sent to that address of the NIC's by which packets go to its
 * sender, and came in by that one's interface: what dom0 is reached by otherwise, the
 * guests' own network for instance, is none of the underlay.  Nothing proves who sent
 * it; from which host a device may be heard VMRI knows.
 *
 * The socket speaks both IPs: addresses of IPv4 look as in GIDs then.
 */
#include <linux/in6.h>
#include <linux/module.h>
#include <linux/net.h>
#include <linux/netdevice.h>
#include <linux/sizes.h>
#include <net/ipv6.h>
#include <net/sock.h>
#include <rdma/ib_cache.h>

#include "uplink.h"

#define UPLINK_RELAY_BUFFER	SZ_1M	/* bytes that may wait, in either direction */
#define UPLINK_RELAY_TURN	16	/* packets, till the ring gets its turn */

static ushort relay_port = 4799;
module_param(relay_port, ushort, 0444);
MODULE_PARM_DESC(relay_port,
		 "UDP port of all hosts for datagrams between guests, 0: none (default: 4799)");

/* ---- counters: written by the runner, as there is one uplink ---- */

static struct {
	unsigned long sent;
	unsigned long unsent;
	unsigned long delivered;
	unsigned long dropped;
	unsigned long foreign;
	unsigned long malformed;
} uplink_relay_count;

static void uplink_count(unsigned long *counter)
{
	WRITE_ONCE(*counter, *counter + 1);
}

static int uplink_show_counter(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%lu\n",
			  READ_ONCE(*(unsigned long *)kp->arg));
}

static int uplink_set_counter(const char *value, const struct kernel_param *kp)
{
	return -EPERM;
}

static const struct kernel_param_ops uplink_counter_ops = {
	.set = uplink_set_counter,
	.get = uplink_show_counter,
};

module_param_cb(relay_sent, &uplink_counter_ops,
		&uplink_relay_count.sent, 0444);
MODULE_PARM_DESC(relay_sent, "Datagrams sent to other hosts (read only)");
module_param_cb(relay_unsent, &uplink_counter_ops,
		&uplink_relay_count.unsent, 0444);
MODULE_PARM_DESC(relay_unsent,
		 "Datagrams that could not be sent (read only)");
module_param_cb(relay_delivered, &uplink_counter_ops,
		&uplink_relay_count.delivered, 0444);
MODULE_PARM_DESC(relay_delivered,
		 "Datagrams from other hosts that were delivered (read only)");
module_param_cb(relay_dropped, &uplink_counter_ops,
		&uplink_relay_count.dropped, 0444);
MODULE_PARM_DESC(relay_dropped,
		 "Datagrams from other hosts that VMRI has dropped (read only)");
module_param_cb(relay_foreign, &uplink_counter_ops,
		&uplink_relay_count.foreign, 0444);
MODULE_PARM_DESC(relay_foreign,
		 "Packets not sent by an uplink to the adapter's address (read only)");
module_param_cb(relay_malformed, &uplink_counter_ops,
		&uplink_relay_count.malformed, 0444);
MODULE_PARM_DESC(relay_malformed,
		 "Packets that are no datagrams (read only)");

/* ---- addresses ---- */

/* By which of the host's addresses and interfaces a packet goes, or came. */
union uplink_control {
	struct cmsghdr hdr;
	u8 space[CMSG_SPACE(sizeof(struct in6_pktinfo))];
};

static int uplink_find_path(struct uplink *up, const u8 *host_gid,
			    struct sockaddr_in6 *to,
			    union uplink_control *control)
{
	const struct ib_gid_attr *sgid = uplink_find_gid(up, host_gid);
	struct in6_pktinfo *from = CMSG_DATA(&control->hdr);
	struct net_device *ndev;

	if (IS_ERR(sgid))
		return PTR_ERR(sgid);
	control->hdr = (struct cmsghdr) {
		.cmsg_len = CMSG_LEN(sizeof(*from)),
		.cmsg_level = SOL_IPV6,
		.cmsg_type = IPV6_PKTINFO,
	};
	memcpy(&from->ipi6_addr, &sgid->gid, sizeof(from->ipi6_addr));
	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(sgid);
	from->ipi6_ifindex = IS_ERR(ndev) ? 0 : ndev->ifindex;
	rcu_read_unlock();
	rdma_put_gid_attr(sgid);

	to->sin6_family = AF_INET6;
	to->sin6_port = htons(relay_port);
	to->sin6_scope_id = from->ipi6_ifindex;
	memcpy(&to->sin6_addr, host_gid, sizeof(to->sin6_addr));
	return from->ipi6_ifindex ? 0 : -ENODEV;
}

/*
 * Did it come to the address and by the interface by which packets go to its sender?
 * So what another network brings with an address of the underlay's is not taken.
 */
static bool uplink_is_on_path(struct uplink *up,
			      const struct sockaddr_in6 *from,
			      const struct in6_pktinfo *at)
{
	union uplink_control control = {};
	const struct in6_pktinfo *path = CMSG_DATA(&control.hdr);
	struct sockaddr_in6 to = {};

	return !uplink_find_path(up, from->sin6_addr.s6_addr, &to, &control) &&
	       ipv6_addr_equal(&path->ipi6_addr, &at->ipi6_addr) &&
	       path->ipi6_ifindex == at->ipi6_ifindex;
}

static bool uplink_is_for_us(struct uplink *up, const struct sockaddr_in6 *from,
			     const union uplink_control *control)
{
	return control->hdr.cmsg_level == SOL_IPV6 &&
	       control->hdr.cmsg_type == IPV6_PKTINFO &&
	       from->sin6_port == htons(relay_port) &&
	       uplink_is_on_path(up, from, CMSG_DATA(&control->hdr));
}

/* ---- sending ---- */

static void uplink_pack(struct uplink_wire *wire, const struct vmri_datagram *d,
			u32 length)
{
	*wire = (struct uplink_wire) {
		.magic = cpu_to_be32(UPLINK_WIRE_MAGIC),
		.version = UPLINK_WIRE_VERSION,
		.type = UPLINK_WIRE_DATAGRAM,
		.length = cpu_to_be16(length),
		.fabric = cpu_to_be32(d->fabric),
		.src_qpn = cpu_to_be32(d->src_qpn),
		.dest_qpn = cpu_to_be32(d->dest_qpn),
		.qkey = cpu_to_be32(d->qkey),
		.imm = (__force __be32)d->imm,
		.flow_label = cpu_to_be32(d->flow_label),
		.pkey = cpu_to_be16(d->pkey),
		.traffic_class = d->traffic_class,
		.hop_limit = d->hop_limit,
		.sl = d->sl,
		.flags = d->flags,
	};
	memcpy(wire->sgid, d->sgid, sizeof(wire->sgid));
	memcpy(wire->dgid, d->dgid, sizeof(wire->dgid));
}

static int uplink_transmit(struct uplink *up, const struct vmri_datagram *d,
			   void *data, u32 length)
{
	struct uplink_wire wire;
	struct kvec parts[] = {
		{ .iov_base = &wire, .iov_len = sizeof(wire) },
		{ .iov_base = data, .iov_len = length },
	};
	struct sockaddr_in6 to = {};
	union uplink_control control = {};
	struct msghdr msg = {
		.msg_name = &to,
		.msg_namelen = sizeof(to),
		.msg_control = &control,
		.msg_controllen = sizeof(control),
		.msg_flags = MSG_DONTWAIT,
	};
	int ret;

	if (!up->relay.sock)
		return -ENOTCONN;
	ret = uplink_find_path(up, d->host_gid, &to, &control);
	if (ret)
		return ret;
	uplink_pack(&wire, d, length);
	ret = kernel_sendmsg(up->relay.sock, &msg, parts, ARRAY_SIZE(parts),
			     sizeof(wire) + length);
	return ret < 0 ? ret : 0;
}

/**
 * uplink_relay_send() - VMRI_UPLINK_DATAGRAM
 * @up:		uplink
 * @msg:	message
 * @payload:	its units behind the first
 *
 * What cannot be sent at once is dropped.
 *
 * Context: the runner's.
 */
void uplink_relay_send(struct uplink *up, const struct vmri_uplink_msg *msg,
		       void *payload)
{
	struct vmri_datagram *d = payload;
	u32 length = msg->u.datagram.length;

	if (WARN_ON_ONCE(length > VMRI_DATAGRAM_MAX ||
			 sizeof(*d) + length >
			 (msg->units - 1) * VMRI_UPLINK_UNIT))
		return;
	uplink_count(uplink_transmit(up, d, d + 1, length) ?
		     &uplink_relay_count.unsent : &uplink_relay_count.sent);
}

/* ---- receiving ---- */

/* Return: how much data there is, or -EINVAL. */
static int uplink_unpack(struct vmri_datagram *d, const struct uplink_wire *wire,
			 size_t size)
{
	if (size < sizeof(*wire) ||
	    wire->magic != cpu_to_be32(UPLINK_WIRE_MAGIC) ||
	    wire->version != UPLINK_WIRE_VERSION ||
	    wire->type != UPLINK_WIRE_DATAGRAM || wire->reserved ||
	    be16_to_cpu(wire->length) != size - sizeof(*wire))
		return -EINVAL;

	*d = (struct vmri_datagram) {
		.fabric = be32_to_cpu(wire->fabric),
		.src_qpn = be32_to_cpu(wire->src_qpn),
		.dest_qpn = be32_to_cpu(wire->dest_qpn),
		.qkey = be32_to_cpu(wire->qkey),
		.imm = (__force u32)wire->imm,
		.flow_label = be32_to_cpu(wire->flow_label),
		.pkey = be16_to_cpu(wire->pkey),
		.traffic_class = wire->traffic_class,
		.hop_limit = wire->hop_limit,
		.sl = wire->sl,
		.flags = wire->flags,
	};
	memcpy(d->sgid, wire->sgid, sizeof(d->sgid));
	memcpy(d->dgid, wire->dgid, sizeof(d->dgid));
	return be16_to_cpu(wire->length);
}

/* Return: which counter it belongs to. */
static unsigned long *uplink_deliver(struct uplink *up, size_t size,
				     const struct sockaddr_in6 *from)
{
	struct uplink_packet *packet = &up->relay.packet;
	struct vmri_datagram d;
	int ret = uplink_unpack(&d, &packet->wire, size);

	if (ret >= 0) {
		memcpy(d.host_gid, &from->sin6_addr, sizeof(d.host_gid));
		ret = uplink_hcall_deliver(up, &d, packet->data, ret);
	}
	if (ret == -EINVAL)
		return &uplink_relay_count.malformed;
	return ret == 1 ? &uplink_relay_count.delivered :
			  &uplink_relay_count.dropped;
}

/* Return: there may be more. */
static bool uplink_receive(struct uplink *up)
{
	struct uplink_packet *packet = &up->relay.packet;
	struct kvec whole = { .iov_base = packet, .iov_len = sizeof(*packet) };
	struct sockaddr_in6 from = {};
	union uplink_control control = {};
	struct msghdr msg = {
		.msg_name = &from,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	unsigned long *counter;
	int size;

	size = kernel_recvmsg(up->relay.sock, &msg, &whole, 1, whole.iov_len,
			      MSG_DONTWAIT);
	if (size == -EAGAIN)
		return false;
	if (!uplink_is_for_us(up, &from, &control))
		counter = &uplink_relay_count.foreign;
	else if (size < 0 || (msg.msg_flags & MSG_TRUNC))
		counter = &uplink_relay_count.malformed;
	else
		counter = uplink_deliver(up, size, &from);
	uplink_count(counter);
	return true;
}

/**
 * uplink_relay_receive() - take some of what has come from other hosts
 * @up:		uplink; the caller is its runner
 */
void uplink_relay_receive(struct uplink *up)
{
	unsigned int n;

	if (!xchg(&up->relay.arrived, false))
		return;
	for (n = 0; n < UPLINK_RELAY_TURN; n++)
		if (!uplink_receive(up))
			return;
	WRITE_ONCE(up->relay.arrived, true);
}

/* ---- the socket ---- */

/* Context: softirq. */
static void uplink_data_ready(struct sock *sk)
{
	struct uplink *up;

	read_lock_bh(&sk->sk_callback_lock);
	up = sk->sk_user_data;
	if (up) {
		up->relay.data_ready(sk);
		WRITE_ONCE(up->relay.arrived, true);
		uplink_kick(up);
	}
	read_unlock_bh(&sk->sk_callback_lock);
}

static void uplink_listen(struct uplink *up, struct sock *sk)
{
	write_lock_bh(&sk->sk_callback_lock);
	up->relay.data_ready = sk->sk_data_ready;
	sk->sk_user_data = up;
	sk->sk_data_ready = uplink_data_ready;
	write_unlock_bh(&sk->sk_callback_lock);
}

static void uplink_unlisten(struct uplink *up, struct sock *sk)
{
	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_data_ready = up->relay.data_ready;
	sk->sk_user_data = NULL;
	write_unlock_bh(&sk->sk_callback_lock);
}

/**
 * uplink_relay_open() - open the port
 * @up:		uplink that does not run yet
 *
 * Without one, it carries no datagrams, and all else.  It keeps no interface.
 *
 * Context: may sleep.
 */
void uplink_relay_open(struct uplink *up)
{
	struct sockaddr_in6 any = {
		.sin6_family = AF_INET6,
		.sin6_port = htons(relay_port),
	};
	struct socket *sock;
	int ret;

	if (!relay_port)
		return;
	ret = sock_create_kern(&init_net, AF_INET6, SOCK_DGRAM, IPPROTO_UDP,
			       &sock);
	if (ret)
		goto err_warn;
	sock->sk->sk_ipv6only = false;
	sock_set_rcvbuf(sock->sk, UPLINK_RELAY_BUFFER);
	WRITE_ONCE(sock->sk->sk_sndbuf, UPLINK_RELAY_BUFFER);
	ip6_sock_set_recvpktinfo(sock->sk);
	uplink_listen(up, sock->sk);
	ret = kernel_bind(sock, (struct sockaddr *)&any, sizeof(any));
	if (ret)
		goto err_sock;
	up->relay.sock = sock;
	return;

err_sock:
	uplink_unlisten(up, sock->sk);
	sock_release(sock);
err_warn:
	dev_warn(&up->ibdev->dev,
		 "softib_uplink: no UDP port %u, so no datagrams to other hosts: %d\n",
		 relay_port, ret);
}

/* The uplink has stopped. */
void uplink_relay_close(struct uplink *up)
{
	struct socket *sock = up->relay.sock;

	if (!sock)
		return;
	uplink_unlisten(up, sock->sk);
	sock_release(sock);
	up->relay.sock = NULL;
}
