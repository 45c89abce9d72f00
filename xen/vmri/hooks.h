/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the rest of Xen calls in VMRI, apart from the hypercall.
 */
#ifndef VMRI_HOOKS_H
#define VMRI_HOOKS_H

struct cpu_user_regs;
struct domain;

#ifdef CONFIG_VMRI

/* A stage of domain_teardown(): 0, or -ERESTART to be called again. */
int vmri_teardown(struct domain *d);

/*
 * Destroy what the domain made of its devices; the devices stay.  All its
 * vCPUs have shut down.  0, or -ERESTART to be called again.
 */
int vmri_soft_reset(struct domain *d);

/*
 * A process of a 64-bit PV guest did int $vector, which its kernel has no handler
 * for.  False: it is nothing of VMRI's.  Else it is done.
 */
bool vmri_trap(struct cpu_user_regs *regs, unsigned int vector);

/* May a process of a HVM guest make this hypercall, in 64-bit mode? */
bool vmri_user_hypercall(unsigned long nr, unsigned long cmd);

#else /* !CONFIG_VMRI */

static inline int vmri_teardown(struct domain *d)
{
    return 0;
}

static inline int vmri_soft_reset(struct domain *d)
{
    return 0;
}

static inline bool vmri_trap(struct cpu_user_regs *regs, unsigned int vector)
{
    return false;
}

static inline bool vmri_user_hypercall(unsigned long nr, unsigned long cmd)
{
    return false;
}

#endif

#endif /* VMRI_HOOKS_H */

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
