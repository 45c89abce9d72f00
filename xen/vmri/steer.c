/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: where a queue pair leads that is being connected: to a device of this
 * host, or nowhere.
 */
#include "internal.h"

int vmri_steer(const struct vmri_qp *qp, const struct vmri_qp_modify *arg)
{
    struct vmri_dev *peer = NULL;
    int ret = 0;

    if ( (arg->mask & VMRI_QPA_AV) && !vmri_qp_datagram(qp) )
        peer = vmri_fabric_peer(qp->dev->fabric, arg->av.dlid);

    if ( peer )
    {
        if ( !vmri_rules_allow(qp->dev, peer) )
            ret = -EPERM;
        vmri_fabric_peer_put(peer);
    }

    return ret;
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
