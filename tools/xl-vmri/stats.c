/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * stats: all that devices count.
 */
#include "xl-vmri.h"

static int show_stats(struct writer *w, const struct vmri_ctl_info *info)
{
    struct vmri_ctl_stats stats = {
        .domid = info->domid,
        .dev_id = info->dev_id,
    };
    int rc = call_stats(&stats);

    if (rc)
        return rc;

    writer_open(w, NULL, '{');
    write_identity(w, info);
    write_usage(w, "usage", &info->usage, true);
    write_counters(w, &stats.counters);
    write_types(w, stats.type);
    writer_close(w, '}');
    return 0;
}

int cmd_stats(const struct options *opt, int argc, char **argv)
{
    return show_devices(opt, argc, argv, show_stats);
}
