/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * In dom0, laid under xl: a PV guest gets the timer chip that Xen can emulate for it and
 * libxl does not ask for. A kernel looks there for its clock's rate before it asks Xen;
 * where nothing is, it reads a hundred thousand times until it gives up, and each of
 * these is a trap into Xen: one to two seconds of an emulated guest's start.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <xenctrl.h>

int xc_domain_create(xc_interface *xch, uint32_t *pdomid,
		     struct xen_domctl_createdomain *config)
{
	int (*create)(xc_interface *xch, uint32_t *pdomid,
		      struct xen_domctl_createdomain *config) =
		dlsym(RTLD_NEXT, "xc_domain_create");

	if (!create) {
		errno = ENOSYS;
		return -1;
	}
	if (!(config->flags & XEN_DOMCTL_CDF_hvm))
		config->arch.emulation_flags |= XEN_X86_EMU_PIT;
	return create(xch, pdomid, config);
}
