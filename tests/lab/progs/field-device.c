// SPDX-License-Identifier: GPL-2.0-only
/* Field classes: what the device and its port say of themselves. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "field.h"

/* ---- 1 ---- */

/* Everything that a device without it could not serve an application with. */
static int limits_of_nothing(const struct ibv_device_attr *a)
{
	const struct {
		const char *name;
		long value;
	} limits[] = {
		{ "max_mr_size", !!a->max_mr_size },
		{ "page_size_cap", a->page_size_cap & 4096 },
		{ "max_qp", a->max_qp },
		{ "max_qp_wr", a->max_qp_wr },
		{ "max_sge", a->max_sge },
		{ "max_sge_rd", a->max_sge_rd },
		{ "max_cq", a->max_cq },
		{ "max_cqe", a->max_cqe },
		{ "max_mr", a->max_mr },
		{ "max_mw", a->max_mw },
		{ "max_pd", a->max_pd },
		{ "max_qp_rd_atom", a->max_qp_rd_atom },
		{ "max_qp_init_rd_atom", a->max_qp_init_rd_atom },
		{ "max_res_rd_atom", a->max_res_rd_atom },
		{ "max_mcast_grp", a->max_mcast_grp },
		{ "max_mcast_qp_attach", a->max_mcast_qp_attach },
		{ "max_total_mcast_qp_attach", a->max_total_mcast_qp_attach },
		{ "max_ah", a->max_ah },
		{ "max_srq", a->max_srq },
		{ "max_srq_wr", a->max_srq_wr },
		{ "max_srq_sge", a->max_srq_sge },
		{ "max_pkeys", a->max_pkeys },
	};
	int nr = 0;
	size_t i;

	for (i = 0; i < sizeof(limits) / sizeof(*limits); i++)
		if (limits[i].value <= 0) {
			printf("%s is %ld\n", limits[i].name, limits[i].value);
			nr++;
		}
	return nr;
}

/* The largest objects that the attributes speak of. */
static void use_limits(struct bench *t, const struct ibv_device_attr *a)
{
	struct ibv_cq *cq = ibv_create_cq(t->rig.ctx, a->max_cqe, NULL, NULL,
					  0);
	struct ibv_qp_init_attr init = {
		.send_cq = t->a.send_cq,
		.recv_cq = t->a.recv_cq,
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = a->max_qp_wr,
			.max_recv_wr = a->max_qp_wr,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	struct ibv_qp *qp = ibv_create_qp(t->rig.pd, &init);

	check("a queue pair as long as max_qp_wr", qp ? 0 : errno, 0);
	check("a CQ as long as max_cqe", cq ? 0 : errno, 0);
	if (qp)
		ibv_destroy_qp(qp);
	if (cq)
		ibv_destroy_cq(cq);
}

void field_attributes(struct bench *t)
{
	struct ibv_context *ctx = t->rig.ctx;
	struct ibv_device_attr_ex ex;
	struct ibv_device_attr a;

	check("it is queried", ibv_query_device(ctx, &a), 0);
	check("the extended query", ibv_query_device_ex(ctx, NULL, &ex), 0);
	check("both say the same",
	      a.node_guid == ex.orig_attr.node_guid &&
	      a.max_qp == ex.orig_attr.max_qp &&
	      a.max_qp_wr == ex.orig_attr.max_qp_wr &&
	      a.device_cap_flags == ex.orig_attr.device_cap_flags, 1);
	check("a node GUID", a.node_guid != 0, 1);
	check("which the list of devices tells, too",
	      ibv_get_device_guid(ctx->device) == a.node_guid, 1);
	check("a system image GUID", a.sys_image_guid != 0, 1);
	check("a port GUID", t->rig.gid.global.interface_id != 0, 1);
	check("a vendor's id of 24 bits",
	      a.vendor_id != 0 && a.vendor_id < 1 << 24, 1);
	check("a firmware version", a.fw_ver[0] != 0, 1);
	check("one port", a.phys_port_cnt, 1);
	check("limits that are nothing", limits_of_nothing(&a), 0);
	check("a LID", t->rig.port.lid != 0, 1);
	check("a link that is up", t->rig.port.phys_state, 5);
	check("a width and a speed",
	      t->rig.port.active_width && t->rig.port.active_speed, 1);
	check("a virtual lane", t->rig.port.max_vl_num, 1);
	check("it is InfiniBand", t->rig.port.link_layer,
	      IBV_LINK_LAYER_INFINIBAND);
	use_limits(t, &a);
}

/* ---- connections of their own attributes ---- */

/* What they have to say; the rest is the usual. */
struct own {
	enum ibv_mtu path_mtu;
	uint8_t dest_rd_atomic;
	uint8_t rd_atomic;
	bool grh;
};

/* From RESET to RTS.  Returns the errno. */
static int bring_up(struct end *end, const struct address *to,
		    const struct own *own)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	int ret;

	ret = ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			    IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (ret)
		die("ibv_modify_qp to INIT: %s", strerror(ret));

	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = own->path_mtu,
		.dest_qp_num = to->qpn,
		.ah_attr = ah_to(end->rig, to, own->grh),
		.max_dest_rd_atomic = own->dest_rd_atomic,
		.min_rnr_timer = 12,
	};
	ret = ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_AV |
			    IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			    IBV_QP_MIN_RNR_TIMER);
	if (ret)
		return ret;

	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTS,
		.timeout = 18,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = own->rd_atomic,
	};
	return ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
			     IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

/* Connect the bench's ends anew, and let a message go from a to b. */
static int message_with(struct bench *t, const struct own *a,
			const struct own *b, uint32_t bytes)
{
	struct address to_a = end_address(&t->a, NULL);
	struct address to_b = end_address(&t->b, NULL);
	struct order o;
	int ret;

	ret = end_set_state(&t->a, IBV_QPS_RESET);
	if (!ret)
		ret = end_set_state(&t->b, IBV_QPS_RESET);
	if (!ret)
		ret = bring_up(&t->b, &to_a, b);
	if (!ret)
		ret = bring_up(&t->a, &to_b, a);
	if (ret)
		return ret;

	pattern(t->amem, bytes, a->path_mtu);
	memset(t->bmem, 0, BENCH_BYTES);
	bench_post_recv(&t->b, t->bmr, 1);
	order_init(&o, t, IBV_WR_SEND, bytes);
	if (bench_post(&t->a, &o.wr).status ||
	    bench_receive(&t->b).byte_len != bytes)
		return -1;
	return memcmp(t->amem, t->bmem, bytes) ? -1 : 0;
}

/* ---- 3 ---- */

static bool has_gid(struct bench *t, int index)
{
	static const union ibv_gid none;
	union ibv_gid gid;

	return !ibv_query_gid(t->rig.ctx, 1, index, &gid) &&
	       memcmp(&gid, &none, sizeof(gid));
}

static bool takes_index(struct bench *t, int index)
{
	const struct address self = end_address(&t->a, NULL);
	struct ibv_ah_attr attr = ah_to(&t->rig, &self, true);
	struct ibv_ah *ah;

	attr.grh.sgid_index = index;
	ah = ibv_create_ah(t->rig.pd, &attr);
	if (ah)
		ibv_destroy_ah(ah);
	return ah;
}

void field_gids(struct bench *t)
{
	const struct own global = { t->rig.port.active_mtu, 1, 1, true };
	const int nr = t->rig.port.gid_tbl_len;
	struct ibv_gid_entry entries[16], entry;
	int used = 0, holes = 0, i;

	/* Empty ones may be at the end, for who looks for one. */
	for (i = 0; i < nr; i++) {
		check("an entry can be used if it is there",
		      takes_index(t, i), has_gid(t, i));
		if (!has_gid(t, i))
			continue;
		holes += used != i;
		used++;
	}
	check("there is the first", has_gid(t, 0), 1);
	check("and no hole before the last", holes, 0);
	check("nor more than the port says", has_gid(t, nr), 0);
	check("as a table it has the same",
	      ibv_query_gid_table(t->rig.ctx, entries, 16, 0), used);
	check("its first is the port's",
	      memcmp(&entries[0].gid, &t->rig.gid, sizeof(t->rig.gid)), 0);
	check("one entry is asked for",
	      ibv_query_gid_ex(t->rig.ctx, 1, 0, &entry, 0), 0);
	check("which is InfiniBand's", entry.gid_type, IBV_GID_TYPE_IB);
	check("a connection by GID", message_with(t, &global, &global, 5000),
	      0);
	bench_reconnect(t);
}

/* ---- 4 ---- */

void field_path_mtu(struct bench *t)
{
	const struct own large = { IBV_MTU_4096, 1, 1, false };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct own own = large;
	int mtu;

	check("the port's is no more than its greatest",
	      t->rig.port.active_mtu <= t->rig.port.max_mtu, 1);
	for (mtu = IBV_MTU_256; mtu <= (int)t->rig.port.active_mtu; mtu++) {
		own.path_mtu = mtu;
		check("messages of several packets, one peer's may be less",
		      message_with(t, &own, &large, 10001), 0);
		check("the queue pair keeps what it was told",
		      ibv_query_qp(t->a.qp, &attr, IBV_QP_PATH_MTU, &init) ?
		      -1 : (int)attr.path_mtu, mtu);
	}
	own.path_mtu = 0;
	check("none is refused", message_with(t, &own, &own, 8), EINVAL);
	own.path_mtu = t->rig.port.active_mtu + 1;
	check("more than the port's is refused",
	      message_with(t, &own, &own, 8), EINVAL);
	bench_reconnect(t);
}

/* ---- 20 ---- */

#define BIG (64UL << 20)
#define PIECES 32	/* with which a BIG region makes the longest message */

/* Lists of one region over and over: so long a message needs little memory. */
static void longest_messages(struct bench *t, struct ibv_mr *mr)
{
	const struct end_attr attr = { .type = IBV_QPT_RC, .sges = PIECES };
	struct ibv_recv_wr *bad_recv, recv = { .num_sge = PIECES };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND,
		.num_sge = PIECES,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_sge sges[PIECES];
	struct couple c;
	int i;

	for (i = 0; i < PIECES; i++)
		sges[i] = (struct ibv_sge) {
			.addr = (uintptr_t)mr->addr,
			.length = BIG,
			.lkey = mr->lkey,
		};
	wr.sg_list = sges;
	recv.sg_list = sges;
	couple_open(&c, &t->rig, &attr, NULL);
	if (!field_quick) {
		if (ibv_post_recv(c.b.qp, &recv, &bad_recv))
			die("a receive of 2 GiB is refused");
		post(&c.a, &wr);
		check("a message as long is sent",
		      next_wc(&c.a, c.a.send_cq).status, IBV_WC_SUCCESS);
		check("and received",
		      next_wc(&c.b, c.b.recv_cq).byte_len, 1L << 31);
	}
	sges[PIECES - 1].length++;
	post(&c.a, &wr);
	check("a longer one is an error of length",
	      next_wc(&c.a, c.a.send_cq).status, IBV_WC_LOC_LEN_ERR);
	couple_close(&c);
}

void field_message_size(struct bench *t)
{
	void *mem = mmap(NULL, BIG + 4096, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	if (mem == MAP_FAILED)
		die("no memory");
	check("the port's is the specification's", t->rig.port.max_msg_sz,
	      1L << 31);
	mr = bench_reg(t->rig.pd, mem, BIG + 4096, IBV_ACCESS_LOCAL_WRITE);
	longest_messages(t, mr);
	bench_dereg(mr);
	munmap(mem, BIG + 4096);
}

/* ---- 24 ---- */

#define LAST_OPTIONAL	(1U << 29)	/* of IBV_ACCESS_OPTIONAL_RANGE */
#define NOT_OPTIONAL	(1U << 15)	/* of no meaning yet */

static int register_with(struct bench *t, unsigned int access)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_mr(t->rig.pd, t->bmem, 4096, access);
	if (!mr)
		return errno;
	bench_dereg(mr);
	return 0;
}

void field_access_flags(struct bench *t)
{
	struct ibv_qp_attr attr = {
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_RELAXED_ORDERING,
	};

	check("relaxed ordering",
	      register_with(t, IBV_ACCESS_LOCAL_WRITE |
			    IBV_ACCESS_RELAXED_ORDERING), 0);
	check("one that nobody knows is ignored when it is optional",
	      register_with(t, IBV_ACCESS_LOCAL_WRITE | LAST_OPTIONAL), 0);
	check("and refused when it is not",
	      register_with(t, IBV_ACCESS_LOCAL_WRITE | NOT_OPTIONAL),
	      EINVAL);
	check("on-demand paging is refused, which is not optional",
	      register_with(t, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND)
	      != 0, 1);
	check("a queue pair takes optional ones",
	      ibv_modify_qp(t->b.qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
	bench_reconnect(t);
}

/* ---- 27 ---- */

void field_pkeys(struct bench *t)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	const int nr = t->rig.port.pkey_tbl_len;
	struct ibv_device_attr device;
	__be16 pkey, first = 0;
	int i, missing = 0;

	if (ibv_query_device(t->rig.ctx, &device))
		die("ibv_query_device: %s", strerror(errno));
	check("device and port tell the same size", nr, device.max_pkeys);
	check("there is more than one entry", nr > 1, 1);
	for (i = 0; i < nr; i++)
		if (ibv_query_pkey(t->rig.ctx, 1, i, i ? &pkey : &first))
			missing++;
	check("every entry is there", missing, 0);
	check("the first is of a partition", !!(ntohs(first) & 0x7fff), 1);
	check("and is found by its value",
	      ibv_get_pkey_index(t->rig.ctx, 1, first), 0);
	check("what is not there is not found",
	      ibv_get_pkey_index(t->rig.ctx, 1, first ^ htons(0x0001)), -1);
	check("nothing is beyond them",
	      ibv_query_pkey(t->rig.ctx, 1, nr, &pkey) != 0, 1);

	if (end_set_state(&t->b, IBV_QPS_RESET))
		die("ibv_modify_qp to RESET failed");
	attr.pkey_index = nr;
	check("a queue pair is refused what is not there",
	      ibv_modify_qp(t->b.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			    IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), EINVAL);
	attr.pkey_index = nr - 1;
	check("and takes the last",
	      ibv_modify_qp(t->b.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			    IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
	bench_reconnect(t);
}
