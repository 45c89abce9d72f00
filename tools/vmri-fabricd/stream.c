/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What etcd sends.  The gateway leaves out what is 0 or empty, writes 64-bit numbers
 * as strings, and an event without a type is a PUT.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd.h"
#include "stream.h"

static const char digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *base64_encode(const char *bytes, size_t num)
{
    const unsigned char *p = (const unsigned char *)bytes;
    char *text = xcalloc(1, (num + 2) / 3 * 4 + 1), *to = text;
    size_t i;

    for (i = 0; i < num; i += 3) {
        uint32_t left = num - i, n = p[i] << 16;

        n |= left > 1 ? p[i + 1] << 8 : 0;
        n |= left > 2 ? p[i + 2] : 0;
        *to++ = digits[n >> 18];
        *to++ = digits[n >> 12 & 63];
        *to++ = left > 1 ? digits[n >> 6 & 63] : '=';
        *to++ = left > 2 ? digits[n & 63] : '=';
    }
    return text;
}

char *base64_decode(const char *text, size_t *num)
{
    size_t length = strlen(text), pad, i;
    char *bytes, *to;
    uint32_t n = 0;

    if (length % 4)
        return NULL;
    pad = length && text[length - 1] == '=' ? 1 + (text[length - 2] == '=') : 0;
    to = bytes = xcalloc(1, length / 4 * 3 + 1);
    for (i = 0; i < length - pad; i++) {
        const char *digit = strchr(digits, text[i]);

        if (!digit) {
            free(bytes);
            return NULL;
        }
        n = n << 6 | (digit - digits);
        if (i % 4)
            *to++ = n >> (6 - 2 * (i % 4));
    }
    *num = to - bytes;
    *to = '\0';
    return bytes;
}

bool json_int64(const json_t *object, const char *name, int64_t *value)
{
    const json_t *n = json_object_get(object, name);
    char *end;

    *value = 0;
    if (!n)
        return true;
    if (json_is_integer(n)) {
        *value = json_integer_value(n);
        return true;
    }
    if (!json_is_string(n) || !*json_string_value(n))
        return false;
    errno = 0;
    *value = strtoll(json_string_value(n), &end, 10);
    return !errno && !*end;
}

/* NULL: it is not base64.  What is left out is empty. */
static char *bytes_of(const json_t *kv, const char *name, size_t *num)
{
    const json_t *text = json_object_get(kv, name);

    if (!text)
        return base64_decode("", num);
    return json_is_string(text) ? base64_decode(json_string_value(text), num) : NULL;
}

/* What is no value of ours stands for garbage: it is there, and says nothing. */
static void take_value(struct mirror *mirror, const char *key, const char *value,
                       size_t num, int64_t mod)
{
    int rc = -EINVAL;

    if (strlen(value) == num)
        rc = mirror_set(mirror, key, value, mod);
    if (rc == -EINVAL || rc == -E2BIG)
        rc = mirror_set(mirror, key, "(too long, or with a zero byte)", mod);
    if (rc == -ENOSPC)
        report("there are more than %u keys: some are not looked at", MIRROR_MAX);
}

bool take_kv(const json_t *kv, const char *prefix, struct mirror *mirror, bool gone)
{
    size_t key_bytes, value_bytes, n = strlen(prefix);
    char *key = bytes_of(kv, "key", &key_bytes);
    char *value = bytes_of(kv, "value", &value_bytes);
    int64_t mod;
    bool ok = key && value && json_int64(kv, "mod_revision", &mod);

    /* A key that cannot be ours is not looked at. */
    if (ok && strlen(key) == key_bytes && key_in(key, prefix) &&
        key_bytes - n <= KEY_MAX) {
        if (gone)
            mirror_remove(mirror, key + n);
        else
            take_value(mirror, key + n, value, value_bytes, mod);
    }
    if (ok && mod > mirror->revision)
        mirror->revision = mod;
    free(key);
    free(value);
    return ok;
}

void stream_begin(struct stream *stream, const char *prefix, struct mirror *mirror)
{
    *stream = (struct stream){ .prefix = prefix, .mirror = mirror };
}

void stream_end(struct stream *stream)
{
    free(stream->line);
    *stream = (struct stream){ .line = NULL };
}

static enum stream_state broken(struct stream *stream, const char *why)
{
    snprintf(stream->why, sizeof(stream->why), "%s", why);
    return STREAM_BROKEN;
}

static enum stream_state take_events(struct stream *stream, const json_t *events)
{
    const json_t *event;
    size_t i;

    json_array_foreach (events, i, event) {
        const char *type = json_string_value(json_object_get(event, "type"));

        if (!take_kv(json_object_get(event, "kv"), stream->prefix, stream->mirror,
                     type && !strcmp(type, "DELETE")))
            return broken(stream, "an event of the watch is none");
    }
    return STREAM_GOES_ON;
}

static enum stream_state take_line(struct stream *stream, const char *line, size_t num)
{
    json_t *root = json_loadb(line, num, 0, NULL);
    const json_t *result = json_object_get(root, "result");
    enum stream_state state = STREAM_GOES_ON;
    const json_t *error = json_object_get(root, "error");
    const char *message = json_string_value(json_object_get(error, "message"));
    int64_t compacted;

    if (error)
        state = broken(stream, message ? message : "etcd ends the watch");
    else if (!json_is_object(result) ||
             !json_int64(result, "compact_revision", &compacted))
        state = broken(stream, "the watch sends what is not its answer");
    else if (compacted)
        state = STREAM_COMPACTED;
    else if (json_is_true(json_object_get(result, "canceled")))
        state = broken(stream, "etcd has cancelled the watch");
    else
        state = take_events(stream, json_object_get(result, "events"));
    json_decref(root);
    return state;
}

/* What belongs to a line that has not ended. */
static bool keep(struct stream *stream, const char *bytes, size_t num)
{
    if (num > LINE_BYTES_MAX - stream->used)
        return false;
    if (stream->used + num > stream->room) {
        stream->room = 2 * (stream->used + num);
        stream->line = xrealloc(stream->line, stream->room);
    }
    memcpy(stream->line + stream->used, bytes, num);
    stream->used += num;
    return true;
}

enum stream_state stream_feed(struct stream *stream, const char *bytes, size_t num)
{
    enum stream_state state = STREAM_GOES_ON;

    while (num && state == STREAM_GOES_ON) {
        const char *end = memchr(bytes, '\n', num);
        size_t n = end ? (size_t)(end - bytes) : num;

        if (!keep(stream, bytes, n))
            return broken(stream, "a line of the watch is too long");
        if (!end)
            break;
        if (stream->used)
            state = take_line(stream, stream->line, stream->used);
        stream->used = 0;
        bytes = end + 1;
        num -= n + 1;
    }
    return state;
}
