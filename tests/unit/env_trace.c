/* SPDX-License-Identifier: GPL-2.0-only */
/* The fake environment: trace records, counted by event. */
#include "env_private.h"

#define TRACE_EVENTS    32

static struct {
    pthread_mutex_t lock;
    bool on;                        /* atomic */
    unsigned int num;
    struct {
        uint32_t event;
        unsigned int count;
        uint32_t words[7];
    } events[TRACE_EVENTS];
} traced = { .lock = PTHREAD_MUTEX_INITIALIZER };

void env_test_trace(bool on)
{
    env_store(&traced.on, on);
}

bool env_tracing(void)
{
    return env_load(&traced.on);
}

/* Its place among the events seen, a new one at the end.  By traced.lock. */
static unsigned int trace_place(uint32_t event)
{
    unsigned int i;

    for ( i = 0; i < traced.num && traced.events[i].event != event; i++ )
        ;
    if ( i == TRACE_EVENTS )
        env_panic("too many kinds of trace records");
    return i;
}

void env_trace_write(uint32_t event, const uint32_t *words, size_t bytes)
{
    unsigned int i;

    if ( bytes > sizeof(traced.events[0].words) )
        env_panic("a trace record of %zu bytes", bytes);

    pthread_mutex_lock(&traced.lock);
    i = trace_place(event);
    if ( i == traced.num )
        traced.num++;
    traced.events[i].event = event;
    traced.events[i].count++;
    memset(traced.events[i].words, 0, sizeof(traced.events[i].words));
    env_raw_memcpy(traced.events[i].words, words, bytes);
    pthread_mutex_unlock(&traced.lock);
}

unsigned int env_test_traced(uint32_t event, uint32_t words[7])
{
    unsigned int i, count;

    pthread_mutex_lock(&traced.lock);
    i = trace_place(event);
    count = i < traced.num ? traced.events[i].count : 0;
    if ( count && words )
        env_raw_memcpy(words, traced.events[i].words,
                       sizeof(traced.events[i].words));
    pthread_mutex_unlock(&traced.lock);
    return count;
}
