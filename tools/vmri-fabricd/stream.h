/* SPDX-License-Identifier: GPL-2.0-only */
/* What etcd sends: keys and values in base64, and a watch's lines of JSON. */
#ifndef FABRICD_STREAM_H
#define FABRICD_STREAM_H

#include <jansson.h>

#include "mirror.h"

/* A line holds all changes that were made at once. */
#define LINE_BYTES_MAX  (16U << 20)

enum stream_state {
    STREAM_GOES_ON,
    STREAM_COMPACTED,
    STREAM_BROKEN,              /* what it says cannot be understood, or is an error */
};

struct stream {
    char *line;
    size_t used, room;
    const char *prefix;         /* of keys, which the mirror has without it */
    struct mirror *mirror;
    char why[200];              /* it is broken */
};

void stream_begin(struct stream *stream, const char *prefix, struct mirror *mirror);
void stream_end(struct stream *stream);
/* Bytes as they come, of any number. */
enum stream_state stream_feed(struct stream *stream, const char *bytes, size_t num);

/* To be freed; NULL: it is not base64.  A 0 follows the bytes. */
char *base64_decode(const char *text, size_t *num);
char *base64_encode(const char *bytes, size_t num);
/* A number, which the gateway writes as a string; 0 when it is left out.  false: bad. */
bool json_int64(const json_t *object, const char *name, int64_t *value);
/* Take over the "kv" of an answer.  false: it is none. */
bool take_kv(const json_t *kv, const char *prefix, struct mirror *mirror, bool gone);

#endif /* FABRICD_STREAM_H */
