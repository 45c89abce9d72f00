/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI's ends in Xen: the hypercall, the doorbells of processes, the boot
 * parameter, the console key, and the life cycle of domains.
 */
#include "internal.h"
#include "hooks.h"

#include <xen/guest_access.h>
#include <xen/hypercall.h>
#include <xen/init.h>
#include <xen/keyhandler.h>
#include <xen/param.h>
#include <asm/debugreg.h>
#include <asm/regs.h>
#include <asm/x86-defns.h>

static bool __read_mostly opt_vmri;
boolean_param("vmri", opt_vmri);

long do_vmri_op(
    unsigned int cmd, unsigned int dev_id, XEN_GUEST_HANDLE_PARAM(void) args)
{
    long rc;

    if ( !opt_vmri )
        return -ENOSYS;

    rc = vmri_dispatch(cmd, &dev_id, (unsigned long)args.p);

    if ( rc == -ERESTART )
        rc = hypercall_create_continuation(__HYPERVISOR_vmri_op, "iih",
                                           cmd | VMRI_CONTINUE, dev_id, args);

    return rc;
}

/*
 * Without the parameter no device was ever attached: both have nothing to do.
 */

int vmri_teardown(struct domain *d)
{
    return vmri_domain_teardown(d);
}

int vmri_soft_reset(struct domain *d)
{
    return vmri_domain_reset(d);
}

/* As an instruction that was emulated, two bytes long: with a single step. */
static void trap_done(struct cpu_user_regs *regs)
{
    regs->rip += 2;
    regs->eflags &= ~X86_EFLAGS_RF;
    if ( regs->eflags & X86_EFLAGS_TF )
    {
        current->arch.dr6 |= DR_STEP | DR_STATUS_RESERVED_ONE;
        pv_inject_hw_exception(TRAP_debug, X86_EVENT_NO_EC);
    }
}

bool vmri_trap(struct cpu_user_regs *regs, unsigned int vector)
{
    if ( vector != VMRI_DOORBELL_VECTOR || is_pv_32bit_vcpu(current) ||
         guest_kernel_mode(current, regs) || !vmri_doorbells(current->domain) )
        return false;

    regs->rax = vmri_doorbell(regs->edi, regs->rsi);
    trap_done(regs);

    return true;
}

bool vmri_user_hypercall(unsigned long nr, unsigned long cmd)
{
    return nr == __HYPERVISOR_vmri_op && cmd == VMRI_OP_doorbell &&
           vmri_doorbells(current->domain);
}

static void cf_check dump_key(unsigned char key)
{
    vmri_dump();
}

static int __init cf_check init(void)
{
    /* The ends of domains ask for the control lock in any case. */
    vmri_init();

    if ( opt_vmri )
        register_keyhandler('b', dump_key, "dump VMRI devices and queues", 1);

    return 0;
}
__initcall(init);

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
