/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI's surroundings, as Xen has them.  What each function promises is in
 * env.h.
 */
#include "internal.h"

#include <xen/event.h>
#include <xen/guest_access.h>
#include <xen/paging.h>
#include <xen/vmap.h>
#include <xen/xmalloc.h>
#include <asm/p2m.h>
#include <xsm/xsm.h>

/* ---- memory of the hypervisor ---- */

/* More than a page need not be contiguous, nor fail for want of a run. */
void *env_alloc(size_t bytes)
{
    return bytes > PAGE_SIZE ? vzalloc(bytes) : xzalloc_bytes(bytes);
}

void env_free(void *p)
{
    unsigned long va = (unsigned long)p;

    if ( va >= VMAP_VIRT_START && va < VMAP_VIRT_END )
        vfree(p);
    else
        xfree(p);
}

void *env_alloc_page(void)
{
    void *p = alloc_xenheap_page();

    if ( p )
        clear_page(p);

    return p;
}

void env_free_page(void *p)
{
    free_xenheap_page(p);
}

/* ---- domains ---- */

struct domain *env_current(void)
{
    return current->domain;
}

unsigned int env_domid(const struct domain *d)
{
    return d->domain_id;
}

struct domain *env_domain_get(unsigned int domid)
{
    struct domain *d = NULL;

    /* domid_t is narrower than what the caller of a command may have given. */
    if ( domid < DOMID_FIRST_RESERVED )
        d = rcu_lock_domain_by_id(domid);

    if ( d && d->is_dying )
    {
        rcu_unlock_domain(d);
        d = NULL;
    }

    return d;
}

void env_domain_put(struct domain *d)
{
    rcu_unlock_domain(d);
}

bool env_domain_dying(const struct domain *d)
{
    return d->is_dying;
}

bool env_domain_running(const struct domain *d)
{
    return !d->is_dying && !d->is_shutting_down;
}

/* For some domains, dom0 among them, max_pages is no limit at all. */
uint64_t env_domain_pages(const struct domain *d)
{
    return min_t(uint64_t, d->max_pages, total_pages);
}

/* The hypercall of 32-bit PV guests has the vector. */
uint32_t env_domain_doorbells(const struct domain *d)
{
    if ( is_hvm_domain(d) )
        return VMRI_FEATURE_DOORBELL_CALL;

    return is_pv_32bit_domain(d) ? 0 : VMRI_FEATURE_DOORBELL_INT;
}

struct vmri_domain **env_domain_state(struct domain *d)
{
    return &d->vmri;
}

int env_may_control(const struct domain *d, unsigned int cmd)
{
    /* Modules of XSM refuse with different errors. */
    return xsm_vmri_control(XSM_PRIV, d, cmd) ? -EPERM : 0;
}

int env_may_connect(const struct domain *from, const struct domain *to)
{
    return xsm_vmri_connect(XSM_HOOK, from, to);
}

/* ---- frames of guests ---- */

/*
 * A type reference keeps a PV guest's frame writable memory for as long as it
 * is held, and there is none to be had on a page or descriptor table in use.
 * A grant-mapped or foreign frame has another owner (PV) or p2m type (HVM).
 */
static bool frame_usable(const struct domain *d, struct page_info *page,
                         p2m_type_t type, bool writable)
{
    return (type == p2m_ram_rw || type == p2m_ram_logdirty) &&
           page_get_owner(page) == d &&
           !is_special_page(page) &&
           (!writable || get_page_type(page, PGT_writable_page));
}

/*
 * Xen's own words about a frame that is refused have the log level of guests,
 * which by default drops them or limits their rate: nobody floods the console.
 */
int env_frame_get(struct domain *d, uint64_t gfn, bool writable,
                  env_frame_t *frame)
{
    p2m_type_t type;
    struct page_info *page = get_page_from_gfn(d, gfn, &type, P2M_ALLOC);

    if ( !page )
        return -EPERM;

    if ( !frame_usable(d, page, type, writable) )
    {
        put_page(page);
        return -EPERM;
    }

    *frame = mfn_x(page_to_mfn(page));

    return 0;
}

int env_frame_again(struct domain *d, env_frame_t frame, bool writable)
{
    struct page_info *page = mfn_to_page(_mfn(frame));

    if ( !get_page(page, d) )
        return -EPERM;

    if ( writable && !get_page_type(page, PGT_writable_page) )
    {
        put_page(page);
        return -EPERM;
    }

    return 0;
}

void env_frame_put(env_frame_t frame, bool writable)
{
    struct page_info *page = mfn_to_page(_mfn(frame));

    if ( writable )
        put_page_and_type(page);
    else
        put_page(page);
}

/* When the log-dirty mode is begun after this look, so is all copying anew. */
void env_frames_dirty(struct domain *d, env_frame_t first, uint32_t nr)
{
    if ( likely(!paging_mode_log_dirty(d)) )
        return;

    while ( nr-- )
        paging_mark_dirty(d, _mfn(first + nr));
}

/*
 * What map_domain_page_global() does itself unless Xen is built for debugging:
 * then unmapping flushes the TLBs of all CPUs, once for each of the thousands
 * of pages that a ring may have.
 */
void *env_map_ring(env_frame_t frame)
{
    if ( frame <= PFN_DOWN(__pa(HYPERVISOR_VIRT_END - 1)) )
        return mfn_to_virt(frame);

    return map_domain_page_global(_mfn(frame));
}

void env_unmap_ring(void *p)
{
    unmap_domain_page_global(p);
}

int env_copy_from_guest(void *to, uint64_t from, size_t bytes)
{
    return raw_copy_from_guest(to, (const void *)from, bytes) ? -EFAULT : 0;
}

int env_copy_to_guest(uint64_t to, const void *from, size_t bytes)
{
    return raw_copy_to_guest((void *)to, from, bytes) ? -EFAULT : 0;
}

/* ---- event channels ---- */

/* What a guest sends to Xen's end of an EQ's port means nothing. */
static void cf_check ignore_notification(struct vcpu *v, unsigned int port)
{
}

int env_port_alloc(struct domain *d, unsigned int vcpu)
{
    if ( !domain_vcpu(d, vcpu) )
        return -EINVAL;

    return alloc_unbound_xen_event_channel(d, vcpu, d->domain_id,
                                           ignore_notification);
}

void env_port_free(struct domain *d, unsigned int port)
{
    free_xen_event_channel(d, port);
}

void env_port_notify(struct domain *d, unsigned int port)
{
    notify_via_xen_event_channel(d, port);
}

/* ---- timers ---- */

/*
 * On the CPU of the caller, since no other is known to be better; Xen moves
 * timers when a CPU goes offline.
 */
void env_timer_init(struct env_timer *t, void (*fn)(void *), void *data)
{
    init_timer(&t->timer, fn, data, smp_processor_id());
}

void env_timer_set(struct env_timer *t, uint64_t at)
{
    set_timer(&t->timer, min_t(uint64_t, at, STIME_MAX));
}

void env_timer_kill(struct env_timer *t)
{
    kill_timer(&t->timer);
}

bool env_preempt(void)
{
    return hypercall_preempt_check();
}

/* Out of line: it is there for those who look, not for those who hurry. */
void env_trace_write(uint32_t event, const uint32_t *words, size_t bytes)
{
    trace_var(event, true, bytes, words);
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
