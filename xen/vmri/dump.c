/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: everything there is, to the console.
 *
 * The console is slow and others wait for locks and references, so a line is
 * put together first, and printed with none held.  What changes meanwhile may
 * be missing, or seen half way.  No call of a guest comes here.
 */
#include "internal.h"

#define LINE        240
#define PER_KIND    64          /* objects shown of each kind of a device */

static const char *const kind_names[VMRI_RES_NR] = {
    "pd", "xrcd", "eq", "cq", "srq", "qp", "mr", "mw", "mcg", "mcg_qp", "dev",
    "pages", "bytes",
};

static const char *name_of(const char *const names[], unsigned int nr,
                           unsigned int i)
{
    const char *name = i < nr ? names[env_nospec(i, nr)] : NULL;

    return name ?: "?";
}

static int qp_line(char *line, size_t room, const struct vmri_ctl_dump *d)
{
    static const char *const types[] = {
        "SMI", "GSI", "RC", "UC", "UD",
        [VMRI_QPT_XRC_INI] = "XRC_INI", [VMRI_QPT_XRC_TGT] = "XRC_TGT",
    };
    static const char *const states[] = {
        "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR",
    };
    static const char *const parked[] = {
        "", " no receive", " no peer", " rate", " uplink",
    };

    return snprintf(line, room, " %s %s%s cqs %#x %#x srq %#x sq %u/%u "
                    "rq %u/%u peer %#x.%#x%s",
                    name_of(types, ARRAY_SIZE(types), d->u.qp.type),
                    name_of(states, ARRAY_SIZE(states), d->u.qp.state),
                    d->u.qp.kernel ? " kernel" : "", d->u.qp.send_cq,
                    d->u.qp.recv_cq, d->u.qp.srq, d->u.qp.sq_posted,
                    d->u.qp.sq_entries, d->u.qp.rq_posted,
                    d->u.qp.rq_entries, d->u.qp.peer_lid, d->u.qp.peer_qpn,
                    name_of(parked, ARRAY_SIZE(parked), d->u.qp.parked));
}

/* What is particular to the kind. */
static int kind_line(char *line, size_t room, const struct vmri_ctl_dump *d)
{
    switch ( d->kind )
    {
    case VMRI_RES_EQ:
        return snprintf(line, room, " port %u %u/%u%s", d->u.eq.port,
                        d->u.eq.unconsumed, d->u.eq.entries,
                        d->u.eq.overflow ? " overflow" : "");

    case VMRI_RES_CQ:
        return snprintf(line, room, " eq %#x %u/%u arm %u%s", d->u.cq.eq,
                        d->u.cq.unconsumed, d->u.cq.entries, d->u.cq.arm,
                        d->u.cq.overflow ? " overflow" : "");

    case VMRI_RES_SRQ:
        return snprintf(line, room, " pd %#x xrcd %#x cq %#x %u/%u limit %u"
                        "%s%s", d->u.srq.pd, d->u.srq.xrcd, d->u.srq.cq,
                        d->u.srq.posted, d->u.srq.entries, d->u.srq.limit,
                        d->u.srq.waiting ? " waited for" : "",
                        d->u.srq.dead ? " dead" : "");

    case VMRI_RES_QP:
        return qp_line(line, room, d);

    case VMRI_RES_MR:
        return snprintf(line, room, " pd %#x access %#x bytes %#lx pages %u "
                        "chunks %u%s", d->u.mr.pd, d->u.mr.access,
                        (unsigned long)d->u.mr.length, d->u.mr.pages,
                        d->u.mr.chunks, d->u.mr.fast ? " fast" : "");

    case VMRI_RES_MW:
        return snprintf(line, room, " type %u pd %#x access %#x bytes %#lx "
                        "mr %#x", d->u.mw.type, d->u.mw.pd, d->u.mw.access,
                        (unsigned long)d->u.mw.length, d->u.mw.mr);

    case VMRI_RES_MCG:
        return snprintf(line, room, " qps %u%s", d->u.mcg.qps,
                        d->u.mcg.joined ? " joined" : "");

    default:
        return 0;
    }
}

static void object_line(char *line, const struct vmri_ctl_dump *d)
{
    int at = snprintf(line, LINE, "%s %#x", kind_names[d->kind], d->handle);

    if ( d->users )
        at += snprintf(line + at, LINE - at, " users %u", d->users);
    kind_line(line + at, LINE - at, d);
}

static void dev_line(char *line, struct vmri_dev *dev)
{
    struct vmri_usage u;
    unsigned int i;
    int at;

    at = snprintf(line, LINE, "d%u dev %u fabric %u lid %u guid %016lx%s:",
                  env_domid(dev->domain), dev->id, dev->fabric->id, dev->lid,
                  (unsigned long)dev->guid,
                  env_load(&dev->in_use) ? " in use" : "");

    vmri_usage_get(dev, &u);
    for ( i = 0; i < VMRI_RES_NR && at < LINE; i++ )
        if ( u.n[i] )
            at += snprintf(line + at, LINE - at, " %s %lu", kind_names[i],
                           (unsigned long)u.n[i]);
}

/*
 * The line of the first device at or after (*domid, *dev_id), made under the
 * lock that keeps devices.
 */
static bool next_dev(char *line, uint32_t *domid, uint32_t *dev_id)
{
    struct vmri_dev *dev;

    env_lock(&vmri_control_lock);
    dev = vmri_dev_next(domid, dev_id);
    if ( dev )
        dev_line(line, dev);
    env_unlock(&vmri_control_lock);

    return dev != NULL;
}

/* The next object of just that device, and kind: 0 or errno. */
static int next_object(struct vmri_ctl_dump *d)
{
    uint32_t domid = d->domid, dev_id = d->dev_id;
    struct vmri_dev *dev;
    int ret = -ENODEV;

    env_lock(&vmri_control_lock);
    dev = vmri_dev_next(&domid, &dev_id);
    if ( dev && domid == d->domid && dev_id == d->dev_id )
        ret = vmri_describe(dev, d);
    env_unlock(&vmri_control_lock);

    return ret;
}

static void dump_objects(uint32_t domid, uint32_t dev_id, uint32_t kind)
{
    struct vmri_ctl_dump d = {
        .domid = domid, .dev_id = dev_id, .kind = kind,
    };
    unsigned int n = 0;
    char line[LINE];
    int ret;

    while ( !(ret = next_object(&d)) || ret == -ERESTART )
    {
        env_dump_yield();
        if ( ret )
            continue;

        if ( n++ == PER_KIND )
        {
            env_print("    ...\n");
            break;
        }

        object_line(line, &d);
        env_print("  %s\n", line);
    }
}

void vmri_dump(void)
{
    uint32_t domid = 0, dev_id = 0, kind, devs = 0, domains, dying;
    char line[LINE];

    while ( next_dev(line, &domid, &dev_id) )
    {
        env_print("%s\n", line);
        for ( kind = 0; kind < VMRI_RES_NR; kind++ )
            dump_objects(domid, dev_id, kind);

        devs++;
        dev_id++;
    }

    vmri_domains_count(&domains, &dying);
    env_print("vmri: %u devices, %u being detached, %u domains with state\n",
              devs, dying, domains);
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
