/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * etcd over HTTP.  Requests wait for their answers, briefly; the watch is a request
 * that never ends, and is read meanwhile.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "etcd.h"
#include "stream.h"

#define CONNECT_MS      2000L
#define REQUEST_MS      5000L
#define ANSWER_MAX      (64U << 20)
#define PAGE_KEYS       "500"

static const struct config *config;
static const volatile bool *stop;
static unsigned int endpoint;
static char why[400];
static CURL *requests;          /* one after the other, on one connection */
static CURLM *multi;            /* has the watch */
static struct curl_slist *headers;

static struct {
    CURL *handle;
    char *body;
    struct stream stream;
    enum watch_state state;
} watch;

const char *etcd_why(void)
{
    return why;
}

void etcd_stop_when(const volatile bool *flag)
{
    stop = flag;
}

static int failed(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));

static int failed(const char *fmt, ...)
{
    int n = snprintf(why, sizeof(why), "%s: ", config->endpoints[endpoint]);
    va_list args;

    va_start(args, fmt);
    vsnprintf(why + n, sizeof(why) - n, fmt, args);
    va_end(args);
    return -EIO;
}

void etcd_next_endpoint(void)
{
    if (!config->endpoints[++endpoint])
        endpoint = 0;
}

static bool readable(const char *what, const char *path)
{
    FILE *f = path ? fopen(path, "r") : NULL;

    if (path && !f)
        report("%s: cannot read %s: %s", what, path, strerror(errno));
    if (f)
        fclose(f);
    return !path || f;
}

bool etcd_open(const struct config *c)
{
    config = c;
    if (!readable("ca", c->ca) || !readable("cert", c->cert) ||
        !readable("key", c->key))
        return false;
    if (curl_global_init(CURL_GLOBAL_DEFAULT)) {
        report("libcurl does not work");
        return false;
    }
    requests = curl_easy_init();
    multi = curl_multi_init();
    headers = curl_slist_append(NULL, "Content-Type: application/json");
    if (!requests || !multi || !headers) {
        report("libcurl does not work");
        return false;
    }
    return true;
}

void etcd_close(void)
{
    etcd_watch_end();
    curl_easy_cleanup(requests);
    curl_multi_cleanup(multi);
    curl_slist_free_all(headers);
    curl_global_cleanup();
    requests = NULL;
    multi = NULL;
    headers = NULL;
}

/* ---- requests ---- */

struct answer {
    char *text;
    size_t used;
};

static size_t take_answer(char *bytes, size_t size, size_t num, void *ctx)
{
    struct answer *a = ctx;

    if (num > ANSWER_MAX - a->used)
        return 0;
    a->text = xrealloc(a->text, a->used + num + 1);
    memcpy(a->text + a->used, bytes, num);
    a->used += num;
    return num;
}

static int look_for_stop(void *ctx, curl_off_t total, curl_off_t now,
                         curl_off_t up_total, curl_off_t up_now)
{
    return stop && *stop;
}

static void set_up(CURL *handle, const char *path, const char *body)
{
    char url[600];

    snprintf(url, sizeof(url), "%s%s", config->endpoints[endpoint], path);
    curl_easy_setopt(handle, CURLOPT_URL, url);
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE, (long)strlen(body));
    curl_easy_setopt(handle, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, look_for_stop);
    if (config->ca)
        curl_easy_setopt(handle, CURLOPT_CAINFO, config->ca);
    if (config->cert) {
        curl_easy_setopt(handle, CURLOPT_SSLCERT, config->cert);
        curl_easy_setopt(handle, CURLOPT_SSLKEY, config->key);
    }
}

/* Takes over the body.  The answer's object, or NULL, and `why`. */
static json_t *ask(const char *path, json_t *body)
{
    char *text = json_dumps(body, JSON_COMPACT);
    struct answer a = { .text = NULL };
    json_t *answer = NULL;
    CURLcode rc;
    long status = 0;

    json_decref(body);
    if (!text) {
        failed("the request cannot be written");
        return NULL;
    }
    set_up(requests, path, text);
    curl_easy_setopt(requests, CURLOPT_TIMEOUT_MS, REQUEST_MS);
    curl_easy_setopt(requests, CURLOPT_WRITEFUNCTION, take_answer);
    curl_easy_setopt(requests, CURLOPT_WRITEDATA, &a);
    rc = curl_easy_perform(requests);
    curl_easy_getinfo(requests, CURLINFO_RESPONSE_CODE, &status);
    free(text);

    if (!rc && a.used)
        answer = json_loadb(a.text, a.used, 0, NULL);
    if (rc) {
        failed("%s", curl_easy_strerror(rc));
    } else if (!json_is_object(answer)) {
        failed("status %ld, and what comes is not etcd's answer", status);
    } else if (status != 200) {
        const char *error = json_string_value(json_object_get(answer, "message"));

        failed("%s", error ? error : "refused");
    }
    free(a.text);
    if (rc || status != 200 || !json_is_object(answer)) {
        json_decref(answer);
        return NULL;
    }
    return answer;
}

static json_t *base64_json(const char *bytes, size_t num)
{
    char *text = base64_encode(bytes, num);
    json_t *json = json_string(text);

    free(text);
    return json;
}

/* A key or folder, with the prefix, in base64. */
static json_t *key_json(const char *key)
{
    char full[KEY_MAX + 128];
    int n = snprintf(full, sizeof(full), "%s%s", config->prefix, key);

    return base64_json(full, n);
}

/* What comes behind all keys of a folder, which ends with a slash. */
static json_t *end_json(const char *folder)
{
    char full[KEY_MAX + 128];
    int n = snprintf(full, sizeof(full), "%s%s", config->prefix, folder);

    full[n - 1]++;
    return base64_json(full, n);
}

static json_t *int64_json(int64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRId64, value);
    return json_string(text);
}

/* ---- the list ---- */

/* One page from a key on: what it had, and the key that the next one begins with. */
static int list_page(struct mirror *mirror, int64_t *revision, json_t **from, bool *more)
{
    json_t *request, *answer, *kv;
    const json_t *kvs;
    int64_t now;
    size_t i, num;
    char *last;

    request = json_pack("{s:O, s:o, s:s}", "key", *from, "range_end", end_json(""),
                        "limit", PAGE_KEYS);
    if (*revision)
        json_object_set_new(request, "revision", int64_json(*revision));
    answer = ask("/v3/kv/range", request);
    if (!answer)
        return -EIO;

    kvs = json_object_get(answer, "kvs");
    if (!json_int64(json_object_get(answer, "header"), "revision", &now) || !now)
        goto bad;
    if (!*revision)
        *revision = now;
    json_array_foreach (kvs, i, kv)
        if (!take_kv(kv, config->prefix, mirror, false))
            goto bad;
    *more = json_is_true(json_object_get(answer, "more"));
    if (*more) {
        kv = json_array_get(kvs, json_array_size(kvs) - 1);
        last = base64_decode(json_string_value(json_object_get(kv, "key")) ?: "", &num);
        if (!last || !num) {
            free(last);
            goto bad;
        }
        /* The 0 behind it makes the next one. */
        json_decref(*from);
        *from = base64_json(last, num + 1);
        free(last);
    }
    json_decref(answer);
    return 0;

bad:
    json_decref(answer);
    return failed("a list is none");
}

int etcd_list(struct mirror *mirror)
{
    json_t *from = key_json("");
    int64_t revision = 0;
    bool more;
    int rc;

    do {
        rc = list_page(mirror, &revision, &from, &more);
    } while (!rc && more);
    json_decref(from);
    mirror->revision = revision;
    return rc;
}

int etcd_get(const char *key, char **value, int64_t *revision)
{
    json_t *answer = ask("/v3/kv/range", json_pack("{s:o}", "key", key_json(key)));
    struct mirror mirror = { .num = 0 };
    const json_t *kv;
    bool ok;

    if (!answer)
        return -EIO;
    kv = json_array_get(json_object_get(answer, "kvs"), 0);
    ok = json_int64(json_object_get(answer, "header"), "revision", revision) &&
         (!kv || take_kv(kv, config->prefix, &mirror, false));
    *value = ok && mirror.num ? xstrdup(mirror.entries[0].value) : NULL;
    mirror_clear(&mirror);
    json_decref(answer);
    return ok ? 0 : failed("a value is none");
}

/* ---- leases ---- */

int etcd_lease_grant(unsigned int seconds, int64_t *lease)
{
    json_t *answer = ask("/v3/lease/grant",
                         json_pack("{s:o}", "TTL", int64_json(seconds)));
    bool ok;

    if (!answer)
        return -EIO;
    ok = json_int64(answer, "ID", lease) && *lease;
    json_decref(answer);
    return ok ? 0 : failed("no lease was granted");
}

int etcd_lease_keep(int64_t lease, bool *alive)
{
    json_t *answer = ask("/v3/lease/keepalive",
                         json_pack("{s:o}", "ID", int64_json(lease)));
    int64_t ttl;
    bool ok;

    if (!answer)
        return -EIO;
    ok = json_int64(json_object_get(answer, "result"), "TTL", &ttl);
    *alive = ttl > 0;
    json_decref(answer);
    return ok ? 0 : failed("no time is told of the lease");
}

/* ---- transactions ---- */

void etcd_txn_begin(struct etcd_txn *txn)
{
    txn->compare = json_array();
    txn->success = json_array();
}

static void compare(struct etcd_txn *txn, const char *key, const char *target,
                    const char *field, int64_t value, const char *result)
{
    json_array_append_new(txn->compare,
                          json_pack("{s:o, s:s, s:s, s:o}", "key", key_json(key),
                                    "target", target, "result", result,
                                    field, int64_json(value)));
}

void etcd_if_mod(struct etcd_txn *txn, const char *key, int64_t mod)
{
    compare(txn, key, "MOD", "mod_revision", mod, "EQUAL");
}

void etcd_if_there(struct etcd_txn *txn, const char *key)
{
    compare(txn, key, "MOD", "mod_revision", 0, "GREATER");
}

void etcd_if_lease(struct etcd_txn *txn, const char *key, int64_t lease)
{
    compare(txn, key, "LEASE", "lease", lease, "EQUAL");
}

void etcd_if_empty(struct etcd_txn *txn, const char *folder)
{
    compare(txn, folder, "CREATE", "create_revision", 0, "EQUAL");
    json_object_set_new(json_array_get(txn->compare, json_array_size(txn->compare) - 1),
                        "range_end", end_json(folder));
}

void etcd_put(struct etcd_txn *txn, const char *key, const char *value, int64_t lease)
{
    json_t *put = json_pack("{s:o, s:o}", "key", key_json(key), "value",
                            base64_json(value, strlen(value)));

    if (lease)
        json_object_set_new(put, "lease", int64_json(lease));
    json_array_append_new(txn->success, json_pack("{s:o}", "request_put", put));
}

void etcd_delete(struct etcd_txn *txn, const char *key)
{
    json_array_append_new(txn->success,
                          json_pack("{s:{s:o}}", "request_delete_range", "key",
                                    key_json(key)));
}

int etcd_commit(struct etcd_txn *txn, bool *done)
{
    json_t *answer = ask("/v3/kv/txn", json_pack("{s:o, s:o}", "compare", txn->compare,
                                                 "success", txn->success));

    *txn = (struct etcd_txn){ .compare = NULL };
    if (!answer)
        return -EIO;
    *done = json_is_true(json_object_get(answer, "succeeded"));
    json_decref(answer);
    return 0;
}

/* ---- the watch ---- */

static size_t take_stream(char *bytes, size_t size, size_t num, void *ctx)
{
    switch (stream_feed(&watch.stream, bytes, num)) {
    case STREAM_GOES_ON:
        return num;
    case STREAM_COMPACTED:
        watch.state = WATCH_COMPACTED;
        return 0;
    default:
        failed("%s", watch.stream.why);
        watch.state = WATCH_LOST;
        return 0;
    }
}

bool etcd_watch(struct mirror *mirror)
{
    json_t *request = json_pack("{s:{s:o, s:o, s:o}}", "create_request",
                                "key", key_json(""), "range_end", end_json(""),
                                "start_revision", int64_json(mirror->revision + 1));

    etcd_watch_end();
    watch.body = json_dumps(request, JSON_COMPACT);
    watch.handle = curl_easy_init();
    json_decref(request);
    if (!watch.body || !watch.handle) {
        failed("no watch can be begun");
        etcd_watch_end();
        return false;
    }
    stream_begin(&watch.stream, config->prefix, mirror);
    set_up(watch.handle, "/v3/watch", watch.body);
    curl_easy_setopt(watch.handle, CURLOPT_WRITEFUNCTION, take_stream);
    curl_easy_setopt(watch.handle, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_multi_add_handle(multi, watch.handle);
    watch.state = WATCH_OPEN;
    return true;
}

void etcd_watch_end(void)
{
    if (watch.handle) {
        curl_multi_remove_handle(multi, watch.handle);
        curl_easy_cleanup(watch.handle);
    }
    free(watch.body);
    stream_end(&watch.stream);
    memset(&watch, 0, sizeof(watch));
}

/* Has the request ended, which it never should? */
static void look_for_end(void)
{
    const CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(multi, &left)))
        if (message->msg == CURLMSG_DONE && watch.state == WATCH_OPEN) {
            failed("the watch has ended: %s",
                   message->data.result ? curl_easy_strerror(message->data.result)
                                        : "etcd has closed it");
            watch.state = WATCH_LOST;
        }
}

enum watch_state etcd_wait(int milliseconds)
{
    int running;

    curl_multi_perform(multi, &running);
    look_for_end();
    if (watch.state != WATCH_COMPACTED && watch.state != WATCH_LOST) {
        curl_multi_poll(multi, NULL, 0, milliseconds, NULL);
        curl_multi_perform(multi, &running);
        look_for_end();
    }
    return watch.state;
}
