/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * As much of a kernel as the management agents of linux/softib need, in user space.
 * The headers that they include are all this one (see hosted.mk).  Structures and
 * values of packets are those of IBTA 1.4, under the names that the kernel gives
 * them.
 */
#ifndef SOFTIB_TEST_KERNEL_H
#define SOFTIB_TEST_KERNEL_H

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;
typedef uint16_t __be16;
typedef uint32_t __be32;
typedef uint64_t __be64;

#define U16_MAX UINT16_MAX
#define U32_MAX UINT32_MAX
#define U64_MAX UINT64_MAX

#define __packed __attribute__((__packed__))
#define __aligned(n) __attribute__((__aligned__(n)))
#define __force
#define fallthrough __attribute__((__fallthrough__))

/* Constant expressions, unlike libc's. */
#define cpu_to_be16(v) ((__be16)__builtin_bswap16(v))
#define cpu_to_be32(v) __builtin_bswap32(v)
#define cpu_to_be64(v) __builtin_bswap64(v)
#define be16_to_cpu cpu_to_be16
#define be32_to_cpu cpu_to_be32
#define be64_to_cpu cpu_to_be64

#define BIT(n) (1UL << (n))
#define BIT_ULL(n) (1ULL << (n))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define BUILD_BUG_ON(cond) static_assert(!(cond), #cond)
#define READ_ONCE(x) (*(const volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile typeof(x) *)&(x) = (v))
#define min(a, b) ((a) < (b) ? (a) : (b))
#define min_t(type, a, b) min((type)(a), (type)(b))
#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

#define GFP_KERNEL 0
#define kvcalloc(n, size, flags) calloc(n, size)
#define kvfree(p) free(p)

typedef struct { int taken; } spinlock_t;

static inline void spin_lock_init(spinlock_t *lock)
{
	lock->taken = 0;
}

/* No hypercall is made inside: box.c asks. */
extern int kernel_locks;

#define spin_lock_irqsave(lock, flags) \
	do { (flags) = 0; assert(!(lock)->taken++); kernel_locks++; } while (0)
#define spin_unlock_irqrestore(lock, flags) \
	do { (void)(flags); assert(!--(lock)->taken); kernel_locks--; } while (0)

typedef struct { int counter; } atomic_t;
#define ATOMIC_INIT(n) { n }
#define atomic_inc_return(v) (++(v)->counter)

static inline void put_unaligned_be24(u32 value, void *to)
{
	u8 *p = to;

	p[0] = value >> 16;
	p[1] = value >> 8;
	p[2] = value;
}

static inline s64 ktime_get_seconds(void)
{
	return 1000;
}

/* ---- packets ---- */

#define IB_MGMT_BASE_VERSION 1
#define IB_MGMT_CLASS_SUBN_LID_ROUTED 0x01
#define IB_MGMT_CLASS_SUBN_ADM 0x03
#define IB_MGMT_CLASS_PERF_MGMT 0x04
#define IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE 0x81

#define IB_MGMT_METHOD_GET 0x01
#define IB_MGMT_METHOD_SET 0x02
#define IB_MGMT_METHOD_GET_RESP 0x81

enum {
	IB_MGMT_SA_DATA = 200,
	IB_MGMT_MAD_SIZE = 256,
};

enum {
	IB_MAD_RESULT_SUCCESS = 1,
	IB_MAD_RESULT_REPLY = 2,
};

struct ib_mad_hdr {
	u8 base_version;
	u8 mgmt_class;
	u8 class_version;
	u8 method;
	__be16 status;
	__be16 class_specific;
	__be64 tid;
	__be16 attr_id;
	__be16 resv;
	__be32 attr_mod;
};

struct ib_mad {
	struct ib_mad_hdr mad_hdr;
	u8 data[232];
};

struct ib_class_port_info {
	u8 base_version;
	u8 class_version;
	__be16 capability_mask;
	__be32 cap_mask2_resp_time;	/* 27, 5 bits */
	u8 redirect[32];
	u8 trap[32];
};
static_assert(sizeof(struct ib_class_port_info) == 72, "IBTA 1.4, 13.4.8.1");

static inline void ib_set_cpi_resp_time(struct ib_class_port_info *cpi,
					u8 rtime)
{
	cpi->cap_mask2_resp_time |= cpu_to_be32(rtime & 0x1f);
}

static inline void ib_set_cpi_capmask2(struct ib_class_port_info *cpi,
				       u32 capmask2)
{
	cpi->cap_mask2_resp_time |= cpu_to_be32(capmask2 << 5);
}

/* ---- subnet management ---- */

#define IB_LID_PERMISSIVE cpu_to_be16(0xffff)
#define IB_SMP_DATA_SIZE 64
#define IB_SMP_DIRECTION cpu_to_be16(0x8000)

#define IB_SMP_ATTR_NODE_DESC cpu_to_be16(0x0010)
#define IB_SMP_ATTR_NODE_INFO cpu_to_be16(0x0011)
#define IB_SMP_ATTR_SWITCH_INFO cpu_to_be16(0x0012)
#define IB_SMP_ATTR_GUID_INFO cpu_to_be16(0x0014)
#define IB_SMP_ATTR_PORT_INFO cpu_to_be16(0x0015)
#define IB_SMP_ATTR_PKEY_TABLE cpu_to_be16(0x0016)
#define IB_SMP_ATTR_SL_TO_VL_TABLE cpu_to_be16(0x0017)
#define IB_SMP_ATTR_VL_ARB_TABLE cpu_to_be16(0x0018)
#define IB_SMP_ATTR_LINEAR_FORWARD_TABLE cpu_to_be16(0x0019)
#define IB_SMP_ATTR_MCAST_FORWARD_TABLE cpu_to_be16(0x001b)
#define IB_SMP_ATTR_SM_INFO cpu_to_be16(0x0020)

struct ib_smp {
	u8 base_version;
	u8 mgmt_class;
	u8 class_version;
	u8 method;
	__be16 status;
	u8 hop_ptr;
	u8 hop_cnt;
	__be64 tid;
	__be16 attr_id;
	__be16 resv;
	__be32 attr_mod;
	__be64 mkey;
	__be16 dr_slid;
	__be16 dr_dlid;
	u8 reserved[28];
	u8 data[IB_SMP_DATA_SIZE];
	u8 initial_path[64];
	u8 return_path[64];
} __packed;
static_assert(sizeof(struct ib_smp) == IB_MGMT_MAD_SIZE, "IBTA 1.4, 14.2.1.2");

/* Pairs in a name are pairs in a byte, the upper bits first. */
struct ib_port_info {
	__be64 mkey;
	__be64 gid_prefix;
	__be16 lid;
	__be16 sm_lid;
	__be32 cap_mask;
	__be16 diag_code;
	__be16 mkey_lease_period;
	u8 local_port_num;
	u8 link_width_enabled;
	u8 link_width_supported;
	u8 link_width_active;
	u8 linkspeed_portstate;
	u8 portphysstate_linkdown;
	u8 mkeyprot_resv_lmc;
	u8 linkspeedactive_enabled;
	u8 neighbormtu_mastersmsl;
	u8 vlcap_inittype;
	u8 vl_high_limit;
	u8 vl_arb_high_cap;
	u8 vl_arb_low_cap;
	u8 inittypereply_mtucap;
	u8 vlstallcnt_hoqlife;
	u8 operationalvl_pei_peo_fpi_fpo;
	__be16 mkey_violations;
	__be16 pkey_violations;
	__be16 qkey_violations;
	u8 guid_cap;
	u8 clientrereg_resv_subnetto;
	u8 resv_resptimevalue;
	u8 localphyerrors_overrunerrors;
	__be16 max_credit_hint;
	u8 resv;
	u8 link_roundtrip_latency[3];
};
static_assert(sizeof(struct ib_port_info) == 64, "IBTA 1.4, 14.2.5.6");

struct ib_node_info {
	u8 base_version;
	u8 class_version;
	u8 node_type;
	u8 num_ports;
	__be64 sys_guid;
	__be64 node_guid;
	__be64 port_guid;
	__be16 partition_cap;
	__be16 device_id;
	__be32 revision;
	u8 local_port_num;
	u8 vendor_id[3];
} __packed;
static_assert(sizeof(struct ib_node_info) == 40, "IBTA 1.4, 14.2.5.3");

enum {
	RDMA_NODE_IB_CA = 1,
	RDMA_NODE_IB_SWITCH = 2,
};

#define IB_PORT_SM 0x2
#define IB_PORT_SYS_IMAGE_GUID_SUP 0x800
#define IB_PORT_CLIENT_REG_SUP 0x2000000

enum {
	IB_MTU_256 = 1,
	IB_MTU_4096 = 5,
	IB_WIDTH_4X = 2,
	IB_SPEED_QDR = 4,
	IB_RATE_2_5_GBPS = 2,
};

#define IB_DEVICE_NODE_DESC_MAX 64

/* ---- subnet administration ---- */

enum {
	IB_SA_CLASS_VERSION = 2,
	IB_SA_METHOD_GET_TABLE = 0x12,
	IB_SA_METHOD_GET_MULTI = 0x14,
	IB_SA_METHOD_DELETE = 0x15,
};

enum {
	IB_SA_ATTR_CLASS_PORTINFO = 0x01,
	IB_SA_ATTR_NOTICE = 0x02,
	IB_SA_ATTR_INFORM_INFO = 0x03,
	IB_SA_ATTR_NODE_REC = 0x11,
	IB_SA_ATTR_PORT_INFO_REC = 0x12,
	IB_SA_ATTR_SERVICE_REC = 0x31,
	IB_SA_ATTR_PATH_REC = 0x35,
	IB_SA_ATTR_MC_MEMBER_REC = 0x38,
	IB_SA_ATTR_MULTI_PATH_REC = 0x3a,
	IB_SA_ATTR_INFORM_INFO_REC = 0xf3,
};

enum {
	IB_SA_GT,
	IB_SA_LT,
	IB_SA_EQ,
};

#define IB_SA_CAP_MASK2_SENDONLY_FULL_MEM_SUPPORT BIT(12)

/* ---- performance management ---- */

#define IB_PMA_CLASS_CAP_ALLPORTSELECT cpu_to_be16(0x0100)
#define IB_PMA_CLASS_CAP_EXT_WIDTH cpu_to_be16(0x0200)
#define IB_PMA_CLASS_PORT_INFO cpu_to_be16(0x0001)
#define IB_PMA_PORT_COUNTERS cpu_to_be16(0x0012)
#define IB_PMA_PORT_COUNTERS_EXT cpu_to_be16(0x001d)

#define IB_PMA_SEL_PORT_XMIT_DISCARDS cpu_to_be16(0x0040)
#define IB_PMA_SEL_PORT_XMIT_DATA cpu_to_be16(0x1000)
#define IB_PMA_SEL_PORT_RCV_DATA cpu_to_be16(0x2000)
#define IB_PMA_SEL_PORT_XMIT_PACKETS cpu_to_be16(0x4000)
#define IB_PMA_SEL_PORT_RCV_PACKETS cpu_to_be16(0x8000)

#define IB_PMA_SELX_PORT_XMIT_DATA cpu_to_be16(0x0001)
#define IB_PMA_SELX_PORT_RCV_DATA cpu_to_be16(0x0002)
#define IB_PMA_SELX_PORT_XMIT_PACKETS cpu_to_be16(0x0004)
#define IB_PMA_SELX_PORT_RCV_PACKETS cpu_to_be16(0x0008)
#define IB_PMA_SELX_PORT_UNI_XMIT_PACKETS cpu_to_be16(0x0010)
#define IB_PMA_SELX_PORT_UNI_RCV_PACKETS cpu_to_be16(0x0020)

struct ib_pma_mad {
	struct ib_mad_hdr mad_hdr;
	u8 reserved[40];
	u8 data[192];
} __packed;

struct ib_pma_portcounters {
	u8 reserved;
	u8 port_select;
	__be16 counter_select;
	u8 errors[10];
	__be16 port_xmit_discards;
	u8 more_errors[8];
	__be32 port_xmit_data;
	__be32 port_rcv_data;
	__be32 port_xmit_packets;
	__be32 port_rcv_packets;
	__be32 port_xmit_wait;
} __packed;
static_assert(sizeof(struct ib_pma_portcounters) == 44, "IBTA 1.4, 16.1.3.5");

struct ib_pma_portcounters_ext {
	u8 reserved;
	u8 port_select;
	__be16 counter_select;
	__be32 reserved1;
	__be64 port_xmit_data;
	__be64 port_rcv_data;
	__be64 port_xmit_packets;
	__be64 port_rcv_packets;
	__be64 port_unicast_xmit_packets;
	__be64 port_unicast_rcv_packets;
	__be64 port_multicast_xmit_packets;
	__be64 port_multicast_rcv_packets;
} __packed;

#endif /* SOFTIB_TEST_KERNEL_H */
