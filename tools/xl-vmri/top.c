/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * top: what devices do a second, again and again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "xl-vmri.h"

/* All devices at one moment. */
struct sample {
    struct timespec time;
    size_t num, room;
    struct vmri_ctl_info *devs;
};

static int add(struct sample *s, const struct vmri_ctl_info *info)
{
    if (s->num == s->room) {
        size_t room = s->room ? 2 * s->room : 16;
        void *devs = realloc(s->devs, room * sizeof(*s->devs));

        if (!devs)
            return -ENOMEM;
        s->devs = devs;
        s->room = room;
    }
    s->devs[s->num++] = *info;
    return 0;
}

/* Of one domain, or of all when domid is NULL. */
static int take_sample(struct sample *s, const uint32_t *domid)
{
    struct vmri_ctl_info info = { .domid = domid ? *domid : 0 };
    int rc;

    s->num = 0;
    clock_gettime(CLOCK_MONOTONIC, &s->time);
    for (rc = call_info(&info); !rc; rc = call_info_next(&info)) {
        if (domid && info.domid != *domid)
            return 0;
        rc = add(s, &info);
        if (rc)
            return rc;
    }
    return rc == -ENOENT ? 0 : rc;
}

/* The same device at another moment, or NULL: it is new since then. */
static const struct vmri_ctl_info *find(const struct sample *s,
                                        const struct vmri_ctl_info *info)
{
    size_t i;

    for (i = 0; i < s->num; i++)
        if (s->devs[i].domid == info->domid &&
            s->devs[i].dev_id == info->dev_id &&
            s->devs[i].guid == info->guid)
            return &s->devs[i];
    return NULL;
}

/* What is shown of each device, a second. */
static const struct rate {
    const char *name, *title;
    int width;
    size_t offset;              /* in struct vmri_counters */
} rates[] = {
#define RATE(member, title, width) \
    { #member, title, width, offsetof(struct vmri_counters, member) }
    RATE(tx_msgs, "TX-MSG/s", 10),
    RATE(tx_bytes, "TX-BYTE/s", 13),
    RATE(rx_msgs, "RX-MSG/s", 10),
    RATE(rx_bytes, "RX-BYTE/s", 13),
    RATE(doorbells, "BELL/s", 9),
    RATE(hypercalls, "CALL/s", 8),
    RATE(upcalls, "UPCALL/s", 9),
    RATE(errors, "ERR/s", 7),
    RATE(rnr, "RNR/s", 7),
};

static uint64_t counter(const struct vmri_ctl_info *info,
                        const struct rate *rate)
{
    return *(const uint64_t *)((const char *)&info->counters + rate->offset);
}

/* One that was attached anew in between counts from nothing. */
static double per_second(const struct rate *rate,
                         const struct vmri_ctl_info *now,
                         const struct vmri_ctl_info *then, double seconds)
{
    uint64_t n = counter(now, rate);
    uint64_t before = then ? counter(then, rate) : 0;

    return (n >= before ? n - before : n) / seconds;
}

static double seconds_between(const struct sample *a, const struct sample *b)
{
    double s = (b->time.tv_sec - a->time.tv_sec) +
               (b->time.tv_nsec - a->time.tv_nsec) / 1e9;

    return s > 0 ? s : 1e-9;
}

static void show_json(const struct sample *then, const struct sample *now)
{
    struct writer w = { .json = true };
    size_t i, r;

    writer_open(&w, NULL, '[');
    for (i = 0; i < now->num; i++) {
        const struct vmri_ctl_info *info = &now->devs[i];

        writer_open(&w, NULL, '{');
        write_identity(&w, info);
        for (r = 0; r < ARRAY_SIZE(rates); r++)
            write_number(&w, rates[r].name,
                         per_second(&rates[r], info, find(then, info),
                                    seconds_between(then, now)) + 0.5);
        writer_close(&w, '}');
    }
    writer_close(&w, ']');
}

static void show_table(const struct sample *then, const struct sample *now)
{
    double seconds = seconds_between(then, now);
    size_t i, r;

    printf("%-16s %5s %2s", "DOMAIN", "DOMID", "ID");
    for (r = 0; r < ARRAY_SIZE(rates); r++)
        printf(" %*s", rates[r].width, rates[r].title);
    printf(" %7s %10s\n", "QPS", "PAGES");

    for (i = 0; i < now->num; i++) {
        const struct vmri_ctl_info *info = &now->devs[i];
        char *name = store_domain_name(info->domid);

        printf("%-16.16s %5u %2u", name ? name : "-", info->domid,
               info->dev_id);
        for (r = 0; r < ARRAY_SIZE(rates); r++)
            printf(" %*.0f", rates[r].width,
                   per_second(&rates[r], info, find(then, info), seconds));
        printf(" %7llu %10llu\n",
               (unsigned long long)info->usage.n[VMRI_RES_QP],
               (unsigned long long)info->usage.n[VMRI_RES_PINNED]);
        free(name);
    }
}

static void pause_for(double seconds)
{
    struct timespec t = {
        .tv_sec = seconds,
        .tv_nsec = (seconds - (time_t)seconds) * 1e9,
    };

    while (nanosleep(&t, &t) && errno == EINTR)
        ;
}

/* Show what happens until the iterations end: 0 or a negative errno. */
static int watch(const struct options *opt, const uint32_t *domid,
                 struct sample s[2])
{
    const bool screen = !opt->batch && !opt->json && isatty(STDOUT_FILENO);
    unsigned int n;
    int rc = take_sample(&s[0], domid);

    for (n = 1; !rc && (n <= opt->iterations || !opt->iterations); n++) {
        struct sample *then = &s[(n - 1) % 2], *now = &s[n % 2];

        pause_for(opt->delay);
        rc = take_sample(now, domid);
        if (rc)
            break;
        /* Home, and clear what is below: VT100. */
        if (screen)
            fputs("\033[H\033[J", stdout);
        if (opt->json)
            show_json(then, now);
        else
            show_table(then, now);
        /* Nobody reads any more: main() says so. */
        if (fflush(stdout) || ferror(stdout))
            break;
    }
    return rc;
}

int cmd_top(const struct options *opt, int argc, char **argv)
{
    struct sample s[2] = { { .num = 0 } };
    uint32_t domid;
    int rc;

    if (!session_open() || (argc && !session_domain(argv[0], &domid)))
        return RC_FAILURE;

    rc = watch(opt, argc ? &domid : NULL, s);
    free(s[0].devs);
    free(s[1].devs);
    if (rc) {
        report("cannot look at the devices: %s", error_text(rc));
        return RC_FAILURE;
    }
    return RC_OK;
}
