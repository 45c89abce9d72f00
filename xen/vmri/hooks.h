/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the rest of Xen calls in VMRI, apart from the hypercall.
 */
#ifndef VMRI_HOOKS_H
#define VMRI_HOOKS_H

struct domain;

#ifdef CONFIG_VMRI

/* A stage of domain_teardown(): 0, or -ERESTART to be called again. */
int vmri_teardown(struct domain *d);

/*
 * Destroy what the domain made of its devices; the devices stay.  All its
 * vCPUs have shut down.  0, or -ERESTART to be called again.
 */
int vmri_soft_reset(struct domain *d);

#else /* !CONFIG_VMRI */

static inline int vmri_teardown(struct domain *d)
{
    return 0;
}

static inline int vmri_soft_reset(struct domain *d)
{
    return 0;
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
