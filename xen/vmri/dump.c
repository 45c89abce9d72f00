/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: everything there is, to the console.
 *
 * The console is slow and others wait for locks and references, so a line is
 * put together first, and printed with none held.  What changes meanwhile may
 * be missing, or seen half way.
 */
#include "internal.h"

#define LINE        240
#define PER_TABLE   64          /* objects shown of each table of a device */

static void cf_check pd_line(char *line, void *obj)
{
    const struct vmri_pd *pd = obj;

    snprintf(line, LINE, "pd %#x users %u", pd->handle, env_load(&pd->users));
}

static void cf_check xrcd_line(char *line, void *obj)
{
    const struct vmri_pd *xrcd = obj;

    snprintf(line, LINE, "xrcd %#x users %u", xrcd->handle,
             env_load(&xrcd->users));
}

/* The lock keeps the ring from being exchanged. */
static void cf_check srq_line(char *line, void *obj)
{
    struct vmri_srq *srq = obj;

    env_lock(&srq->lock);
    snprintf(line, LINE,
             "srq %#x users %u xrcd %#x cq %#x size %u prod %u cons %u "
             "limit %u%s%s",
             srq->handle, env_load(&srq->users),
             srq->xrcd ? srq->xrcd->handle : 0, srq->cq ? srq->cq->handle : 0,
             1U << srq->wq.log2_entries, env_load(&srq->wq.hdr->prod),
             srq->wq.cons, srq->limit,
             env_load(&srq->wq.hdr->wait) ? " waited for" : "",
             srq->dead ? " dead" : "");
    env_unlock(&srq->lock);
}

static void cf_check eq_line(char *line, void *obj)
{
    const struct vmri_eq *eq = obj;
    struct vmri_eq_hdr *hdr = vmri_region_at(&eq->region, 0);

    snprintf(line, LINE, "eq %#x users %u port %u size %u prod %u cons %u%s",
             eq->handle, env_load(&eq->users), eq->port,
             1U << eq->log2_entries, env_load(&eq->prod), env_load(&hdr->cons),
             env_load(&hdr->overflow) ? " overflow" : "");
}

static void cf_check cq_line(char *line, void *obj)
{
    struct vmri_cq *cq = (struct vmri_cq *)obj;
    const struct vmri_cq_hdr *hdr;

    env_lock(&cq->lock);
    hdr = vmri_region_at(&cq->region, 0);
    snprintf(line, LINE,
             "cq %#x users %u eq %#x size %u prod %u cons %u arm %u%s",
             cq->handle, env_load(&cq->users), cq->eq->handle,
             1U << cq->log2_entries, env_load(&cq->prod), env_load(&hdr->cons),
             env_load(&hdr->arm), env_load(&cq->overflow) ? " overflow" : "");
    env_unlock(&cq->lock);
}

static const char *name_of(const char *const names[], unsigned int nr,
                           unsigned int i)
{
    return i < nr ? names[env_nospec(i, nr)] : "?";
}

static void cf_check qp_line(char *line, void *obj)
{
    static const char *const types[] = {
        "SMI", "GSI", "RC", "UC", "UD",
        [VMRI_QPT_XRC_INI] = "XRC_INI", [VMRI_QPT_XRC_TGT] = "XRC_TGT",
    };
    static const char *const states[] = {
        "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR",
    };
    static const char *const parked[] = { "", " no receive", " no peer" };
    const struct vmri_qp *qp = obj;

    snprintf(line, LINE,
             "qp %#x %s %s%s cqs %#x %#x srq %#x sq %u/%u rq %u/%u "
             "peer %#x.%#x%s",
             qp->qpn, name_of(types, ARRAY_SIZE(types), qp->type),
             name_of(states, ARRAY_SIZE(states), env_load(&qp->attr.state)),
             qp->rings.kernel ? " kernel" : "",
             qp->scq ? qp->scq->handle : 0, qp->rcq ? qp->rcq->handle : 0,
             qp->srq ? qp->srq->handle : 0,
             env_load(&qp->sq.cons),
             qp->sq.hdr ? env_load(&qp->sq.hdr->prod) : 0,
             env_load(&qp->rq.cons),
             qp->rq.hdr ? env_load(&qp->rq.hdr->prod) : 0,
             env_load(&qp->attr.av.dlid), env_load(&qp->attr.dest_qpn),
             name_of(parked, ARRAY_SIZE(parked), env_load(&qp->parked)));
}

static void cf_check key_line(char *line, void *obj)
{
    const struct vmri_key *k = obj;
    const struct vmri_range *r = &k->range;

    snprintf(line, LINE,
             "%s %#x pd %#x access %#x at %#lx + %#lx pages %u chunk %u",
             k->kind == VMRI_KEY_MR ? "mr" :
             k->kind == VMRI_KEY_FAST ? "fast mr" : "mw", k->key,
             r->pd->handle, r->access & VMRI_ACCESS_MR,
             (unsigned long)r->iova, (unsigned long)r->length, r->pages.nr,
             1U << r->pages.chunk_shift);
}

static const struct kind {
    size_t table;               /* in struct vmri_dev */
    void (*line)(char *line, void *obj);
} kinds[] = {
    { offsetof(struct vmri_dev, pds), pd_line },
    { offsetof(struct vmri_dev, eqs), eq_line },
    { offsetof(struct vmri_dev, cqs), cq_line },
    { offsetof(struct vmri_dev, xrcds), xrcd_line },
    { offsetof(struct vmri_dev, srqs), srq_line },
    { offsetof(struct vmri_dev, qps), qp_line },
    { offsetof(struct vmri_dev, keys), key_line },
};

/*
 * The line of the device's first object at or after *index.  A reference keeps
 * the object while its line is made; one that is killed first is passed over.
 */
static bool object_line(char *line, struct vmri_dev *dev,
                        const struct kind *kind, uint32_t *index)
{
    struct vmri_table *t = (void *)dev + kind->table;
    uint32_t handle;

    while ( vmri_table_next(t, index, &handle) )
    {
        void *obj = vmri_table_get(t, handle);

        if ( obj )
        {
            kind->line(line, obj);
            vmri_table_put(t, handle);
            return true;
        }
    }

    return false;
}

static void dev_line(char *line, struct vmri_dev *dev)
{
    static const char *const names[VMRI_RES_NR] = {
        "pd", "xrcd", "eq", "cq", "srq", "qp", "mr", "mw", "mcg", "mcg_qp",
        "dev", "pages", "bytes",
    };
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
            at += snprintf(line + at, LINE - at, " %s %lu", names[i],
                           (unsigned long)u.n[i]);
}

/*
 * Make one line under the lock that keeps devices: of the first device at or
 * after (*domid, *dev_id) when kind is NULL, else of an object of just that.
 */
static bool next_line(char *line, uint32_t *domid, uint32_t *dev_id,
                      const struct kind *kind, uint32_t *index)
{
    const uint32_t want_domid = *domid, want_id = *dev_id;
    struct vmri_dev *dev;
    bool found;

    env_lock(&vmri_control_lock);

    dev = vmri_dev_next(domid, dev_id);
    found = dev != NULL;
    if ( found && !kind )
        dev_line(line, dev);
    else if ( found )
        found = *domid == want_domid && *dev_id == want_id &&
                object_line(line, dev, kind, index);

    env_unlock(&vmri_control_lock);

    if ( kind )
    {
        *domid = want_domid;
        *dev_id = want_id;
    }

    return found;
}

static void dump_objects(uint32_t domid, uint32_t dev_id,
                         const struct kind *kind)
{
    char line[LINE];
    uint32_t index = 0;
    unsigned int n;

    for ( n = 0; next_line(line, &domid, &dev_id, kind, &index); n++ )
    {
        if ( n == PER_TABLE )
        {
            env_print("    ...\n");
            break;
        }

        env_print("  %s\n", line);
        env_dump_yield();
    }
}

void vmri_dump(void)
{
    uint32_t domid = 0, dev_id = 0, devs = 0, domains, dying;
    char line[LINE];

    while ( next_line(line, &domid, &dev_id, NULL, NULL) )
    {
        unsigned int i;

        env_print("%s\n", line);
        for ( i = 0; i < ARRAY_SIZE(kinds); i++ )
            dump_objects(domid, dev_id, &kinds[i]);

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
