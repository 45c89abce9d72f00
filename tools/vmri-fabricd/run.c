/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The daemon: one loop, which keeps a copy of the store, compares it to this host,
 * and has both sides changed where they differ.  Without the store it changes nothing.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "etcd.h"

#define SCAN_MS         1000U       /* between two looks at this host's devices */
#define APPLY_MS        30000U      /* between two looks at what VMRI has */
#define BACKOFF_MIN_MS  500U
#define BACKOFF_MAX_MS  15000U

static struct {
    const struct config *config;
    struct self self;
    struct mirror mirror;
    struct map map;
    struct local local;
    struct held held;
    struct history history;     /* of the copy */
    bool same_store;            /* as the copy before was of */
    bool resume;                /* the copy only lacks what came after it */
    bool connected;
    bool told_lost;
    bool registered;
    bool publish;               /* there is something to be told, or not all was */
    uint64_t seen;              /* changes of the copy that were looked at */
    uint64_t backoff;           /* the times are of now_ms() */
    uint64_t connect_at, keep_at, register_at, scan_at, apply_at;
} d;

static struct complaints about_map, about_apply, about_claims, about_host, about_local;

static volatile bool stop;

static void on_signal(int number)
{
    stop = true;
}

uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000ULL + t.tv_nsec / 1000000;
}

/* ---- the store ---- */

static void disconnect(void)
{
    etcd_watch_end();
    d.connected = false;
    if (stop)
        return;
    if (!d.told_lost)
        report("etcd does not answer: nothing is changed until it does (%s)",
               etcd_why());
    d.told_lost = true;
    etcd_next_endpoint();
    d.connect_at = now_ms() + d.backoff;
    d.backoff = 2 * d.backoff < BACKOFF_MAX_MS ? 2 * d.backoff : BACKOFF_MAX_MS;
}

/* The store's mark, which the first one makes that finds none. */
static int mark_store(const struct mirror *mirror, struct history *history)
{
    const struct entry *e = mirror_find(mirror, "history");
    char id[HISTORY_SIZE];
    struct etcd_txn txn;
    bool done;

    history->revision = mirror->revision;
    if (e && strlen(e->value) == HISTORY_SIZE - 1) {
        strcpy(history->id, e->value);
        return 0;
    }
    history_draw(id);
    etcd_txn_begin(&txn);
    etcd_if_mod(&txn, "history", e ? e->mod : 0);
    etcd_put(&txn, "history", id, 0);
    return etcd_commit(&txn, &done) ? -EIO : -EAGAIN;
}

/* A new copy in place of the old one: 0, -EAGAIN, or -EIO. */
static int list_store(void)
{
    struct mirror mirror = { .num = 0 };
    struct history now;
    int rc = etcd_list(&mirror);

    if (!rc)
        rc = mark_store(&mirror, &now);
    if (rc) {
        mirror_clear(&mirror);
        return rc;
    }
    mirror.changes = d.mirror.changes + 1;
    mirror_clear(&d.mirror);
    d.mirror = mirror;
    d.same_store = history_continues(&d.history, &now);
    if (*d.history.id && !d.same_store)
        report("etcd's store is another one, or an older state: what it lacks is not "
               "deleted here");
    d.history = now;
    return 0;
}

/* Is what changes still what comes after the copy?  1, 0, or -EIO. */
static int can_resume(void)
{
    struct history now = { .revision = 0 };
    char *id = NULL;
    int rc;

    if (!d.resume)
        return 0;
    rc = etcd_get("history", &id, &now.revision);
    if (!rc && id && strlen(id) < sizeof(now.id))
        strcpy(now.id, id);
    if (!rc)
        rc = history_continues(&d.history, &now);
    free(id);
    return rc;
}

static void connect_store(void)
{
    int rc = can_resume();

    if (rc > 0)
        rc = 0;
    else if (!rc)
        while ((rc = list_store()) == -EAGAIN)
            ;
    if (rc || !etcd_watch(&d.mirror)) {
        disconnect();
        return;
    }
    d.connected = d.resume = true;
    if (d.told_lost)
        report("etcd answers again");
    d.told_lost = false;
    d.backoff = BACKOFF_MIN_MS;
    d.keep_at = 0;              /* it may have ended meanwhile */
}

static int renew_lease(uint64_t now)
{
    bool alive = false;
    int rc = d.self.lease ? etcd_lease_keep(d.self.lease, &alive) : 0;

    if (!rc && !alive) {
        d.registered = false;
        d.register_at = 0;
        rc = etcd_lease_grant(d.config->lease, &d.self.lease);
    }
    d.keep_at = now + d.config->lease * 1000ULL / 3;
    return rc;
}

/* Others may have the name, or the copy is behind. */
static int register_host(uint64_t now)
{
    int rc;

    complaints_begin(&about_host);
    rc = publish_host(&d.self, &d.mirror);
    complaints_end(&about_host);
    d.registered = !rc;
    d.register_at = now + SCAN_MS;
    return rc == -EBUSY ? 0 : rc;
}

/* ---- this host ---- */

/* true: it is not as it was. */
static bool scan(uint64_t now)
{
    struct local local;
    int rc = local_read(&local);
    bool changed = !rc && !local_equal(&local, &d.local);

    complaints_begin(&about_local);
    if (rc)
        report("cannot look at the devices of this host: %s", error_text(rc));
    complaints_end(&about_local);
    if (!rc) {
        local_free(&d.local);
        d.local = local;
    } else {
        local_free(&local);
    }
    d.scan_at = now + SCAN_MS;
    return changed;
}

static void apply_map(uint64_t now, const struct map *old)
{
    const struct wanted wanted = {
        .map = &d.map, .old = old, .mirror = &d.mirror, .host = d.self.host,
        .same_store = d.same_store,
    };

    complaints_begin(&about_apply);
    apply(&wanted, &d.held);
    complaints_end(&about_apply);
    d.apply_at = now + APPLY_MS;

    /* From now on what the store lacks was deleted, but for what is held. */
    d.same_store = true;
    d.history.revision = d.mirror.revision;
    state_save(d.config->state, &d.history, &d.map, &d.held);
}

static void take_changes(uint64_t now)
{
    struct map old = d.map;

    complaints_begin(&about_map);
    map_read(&d.map, &d.mirror);
    complaints_end(&about_map);
    apply_map(now, &old);
    map_free(&old);
    d.seen = d.mirror.changes;
    layer2_update(d.config, &d.self, &d.map);
}

static int publish_all(void)
{
    bool again;
    int rc;

    complaints_begin(&about_claims);
    rc = publish(&d.self, &d.map, &d.mirror, &d.local, &again);
    complaints_end(&about_claims);
    d.publish = rc || again;
    return rc;
}

/* With the store; -EIO: it has gone. */
static int work(uint64_t now)
{
    int rc = 0;

    if (d.seen != d.mirror.changes) {
        take_changes(now);
        d.publish = true;
    } else if (now >= d.apply_at) {
        apply_map(now, &d.map);
    }
    if (now >= d.scan_at)
        d.publish |= scan(now);
    if (now >= d.keep_at)
        rc = renew_lease(now);
    if (!rc && now >= d.register_at &&
        !(d.registered && host_is_published(&d.self, &d.mirror))) {
        rc = register_host(now);
        d.publish |= d.registered;
    }
    if (!rc && d.registered && d.publish)
        rc = publish_all();
    return rc;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Until something has changed, or is due. */
static void wait_for_news(void)
{
    uint64_t now = now_ms(), until = now + SCAN_MS;

    if (!d.connected)
        until = earlier(until, d.connect_at);
    else if (d.seen != d.mirror.changes)
        until = now;
    switch (etcd_wait(until > now ? until - now : 0)) {
    case WATCH_COMPACTED:
        etcd_watch_end();
        d.connected = d.resume = false;
        d.connect_at = 0;
        break;
    case WATCH_LOST:
        disconnect();
        break;
    default:
        break;
    }
}

static bool begin(const struct config *config, const char *sysfs)
{
    struct sigaction action = { .sa_handler = on_signal };
    struct vmri_version version;
    struct state state;

    memset(&d, 0, sizeof(d));
    d.config = config;
    d.backoff = BACKOFF_MIN_MS;
    strcpy(d.self.host, config->host);
    if (!config_gid(config, sysfs, d.self.gid) || !hypervisor_open(&version))
        return false;
    if (!version.magic) {
        report("%s", error_text(-ENOSYS));
        return false;
    }
    state_load(config->state, &state);
    d.history = state.history;
    d.map = state.map;
    d.held = state.held;
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    etcd_stop_when(&stop);
    return etcd_open(config);
}

int run_daemon(const struct config *config, const char *sysfs)
{
    int lock = state_lock(config->state);
    bool ok = lock >= 0 && begin(config, sysfs);

    while (ok && !stop) {
        uint64_t now = now_ms();

        if (!d.connected && now >= d.connect_at)
            connect_store();
        if (d.connected && work(now))
            disconnect();
        layer2_work(config, now);
        if (!stop)
            wait_for_news();
    }

    etcd_close();
    call_close();
    layer2_end();
    mirror_clear(&d.mirror);
    map_free(&d.map);
    local_free(&d.local);
    held_free(&d.held);
    complaints_free(&about_map);
    complaints_free(&about_apply);
    complaints_free(&about_claims);
    complaints_free(&about_host);
    complaints_free(&about_local);
    if (lock >= 0)
        close(lock);
    return ok ? RC_OK : RC_FAILURE;
}
