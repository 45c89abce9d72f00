/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause) */
/*
 * SoftIB: what the libibverbs provider and the kernel driver say to each other.
 *
 * The driver allocates the memory of every queue and the provider maps it at
 * the offset that the response names.  What lies in that memory is VMRI's
 * (vmri/ring.h).  The provider rings a doorbell by POST_SEND with no request on
 * the QP, or POST_SRQ_RECV with none on the SRQ, or past the driver where that
 * offers it.
 */
#ifndef SOFTIB_ABI_USER_H
#define SOFTIB_ABI_USER_H

#include <linux/types.h>

#define SOFTIB_UVERBS_ABI_VERSION	1

/*
 * Ways to ring a doorbell: bits of softib_alloc_ucontext_resp.doorbells. All but
 * the first enter the hypervisor from 64-bit code (VMRI_OP_doorbell), in the way
 * that the name says, and serve queue pairs alone.
 */
#define SOFTIB_DOORBELL_SYSCALL	0x1
#define SOFTIB_DOORBELL_INT	0x2	/* int $VMRI_DOORBELL_VECTOR */
#define SOFTIB_DOORBELL_VMCALL	0x4
#define SOFTIB_DOORBELL_VMMCALL	0x8

struct softib_alloc_ucontext_resp {
	__u32 doorbells;		/* SOFTIB_DOORBELL_* that this guest has */
	__u32 dev_id;			/* VMRI's, for a doorbell without the kernel */
	__u32 max_inline;		/* bytes */
	__u32 page_size;		/* unit of the mappings */
	__u32 hypercall;		/* VMRI's number, for the same */
	__u32 flags;			/* SOFTIB_CONTEXT_* */
};

/* The port is one of RoCE: addresses have a GRH and no LID. */
#define SOFTIB_CONTEXT_ROCE	0x1

struct softib_query_device_ex_resp {
	__aligned_u64 clock;		/* now, as completions are stamped; ns */
};

struct softib_alloc_pd_resp {
	__u32 handle;			/* VMRI's */
	__u32 reserved;
};

struct softib_create_cq_resp {
	__aligned_u64 mmap_offset;
	__u32 mmap_size;
	__u32 handle;			/* VMRI's */
	__u32 log2_entries;
	__u32 reserved;
};

/*
 * The queue goes on in another mapping.  The process copies what it has not
 * consumed, up to index prod, from the old one, which it then unmaps.
 */
struct softib_resize_cq_resp {
	__aligned_u64 mmap_offset;
	__u32 mmap_size;
	__u32 log2_entries;
	__u32 prod;
	__u32 reserved;
};

struct softib_create_srq_resp {
	__aligned_u64 mmap_offset;
	__u32 mmap_size;
	__u32 offset;			/* of the queue, bytes into the mapping */
	__u32 handle;			/* VMRI's: the SRQ's number */
	__u8 log2_entries;
	__u8 log2_stride;
	__u8 reserved[2];
};

/* A resize: the queue moves to another mapping, with all that is posted. */
struct softib_modify_srq {
	__aligned_u64 resp_addr;	/* of a struct softib_create_srq_resp */
};

/* No driver answers for an XRC target, which has nothing to be mapped. */
struct softib_create_qp_resp {
	__aligned_u64 mmap_offset;
	__u32 mmap_size;
	__u32 sq_offset;		/* bytes into the mapping */
	__u32 rq_offset;
	__u8 sq_log2_entries;
	__u8 sq_log2_stride;
	__u8 rq_log2_entries;
	__u8 rq_log2_stride;
	__u32 reserved[2];
};

#endif /* SOFTIB_ABI_USER_H */
