/* SPDX-License-Identifier: GPL-2.0-only */
/* What etcd sends: stream.c and mirror.c; and log.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd.h"
#include "stream.h"
#include "test.h"

void test_base64(void)
{
    static const char *const texts[][2] = {
        { "", "" }, { "a", "YQ==" }, { "ab", "YWI=" }, { "abc", "YWJj" },
        { "\xff\xfe\xfd\xfc", "//79/A==" },
    };
    size_t i, n;
    char *p;

    for (i = 0; i < ARRAY_SIZE(texts); i++) {
        p = base64_encode(texts[i][0], strlen(texts[i][0]));
        CHECK(!strcmp(p, texts[i][1]));
        free(p);
        p = base64_decode(texts[i][1], &n);
        CHECK(p && n == strlen(texts[i][0]) && !memcmp(p, texts[i][0], n + 1));
        free(p);
    }
    CHECK(!base64_decode("YQ=", &n) && !base64_decode("Y!==", &n));
    CHECK(!base64_decode("=", &n) && !base64_decode("Y===", &n));
    CHECK(!base64_decode("====", &n) && !base64_decode("YWJ\n", &n));
}

/* /softib/a, /softib/b, and /other/a */
#define KEY_A "L3NvZnRpYi9h"
#define KEY_B "L3NvZnRpYi9i"
#define KEY_O "L290aGVyL2E="

static const char events[] =
    "{\"result\":{\"header\":{\"revision\":\"900\"},\"created\":true}}\n"
    "{\"result\":{\"header\":{\"revision\":\"7\"},\"events\":["
    "{\"kv\":{\"key\":\"" KEY_A "\",\"value\":\"eA==\",\"mod_revision\":\"6\"}},"
    "{\"kv\":{\"key\":\"" KEY_B "\",\"mod_revision\":\"7\"}},"
    "{\"kv\":{\"key\":\"" KEY_O "\",\"mod_revision\":\"7\"}}]}}\n\n"
    "{\"result\":{\"events\":[{\"type\":\"DELETE\",\"kv\":{\"key\":\"" KEY_A "\","
    "\"mod_revision\":\"9\"}}]}}\n";

/* However the bytes come. */
void test_stream(void)
{
    size_t step, at, length = sizeof(events) - 1;

    for (step = 1; step <= length; step += step < 70 ? 1 : 97) {
        struct mirror m = { .num = 0 };
        bool saw_a = false;
        struct stream s;

        stream_begin(&s, "/softib/", &m);
        for (at = 0; at < length; at += step) {
            size_t n = length - at < step ? length - at : step;

            if (stream_feed(&s, events + at, n) != STREAM_GOES_ON)
                break;
            saw_a |= mirror_find(&m, "a") && !strcmp(mirror_find(&m, "a")->value, "x") &&
                     mirror_find(&m, "a")->mod == 6;
        }
        CHECK(at >= length && (saw_a || step > 70));
        CHECK(m.num == 1 && mirror_find(&m, "b") && !*mirror_find(&m, "b")->value);
        CHECK(m.revision == 9);
        stream_end(&s);
        mirror_clear(&m);
    }
}

static enum stream_state feed(const char *line, struct mirror *m, char why[200])
{
    enum stream_state state;
    struct stream s;

    stream_begin(&s, "/softib/", m);
    state = stream_feed(&s, line, strlen(line));
    strcpy(why, s.why);
    stream_end(&s);
    return state;
}

void test_stream_bad(void)
{
    static const char *const bad[] = {
        "nonsense\n", "[]\n", "{}\n", "{\"result\":1}\n",
        "{\"result\":{\"compact_revision\":\"x\"}}\n",
        "{\"result\":{\"canceled\":true}}\n",
        "{\"result\":{\"events\":[{}]}}\n\n{}\n",
        "{\"result\":{\"events\":[{\"kv\":{\"key\":\"!\"}}]}}\n",
        "{\"result\":{\"events\":[{\"kv\":{\"key\":7}}]}}\n",
        "{\"result\":{\"events\":[{\"kv\":{\"key\":\"" KEY_A "\",\"mod_revision\":\"9x\"}}]}}\n",
        "{\"result\":{\"events\":[{\"kv\":{\"key\":\"" KEY_A "\",\"mod_revision\":\"99999999999999999999\"}}]}}\n",
    };
    struct mirror m = { .num = 0 };
    struct stream s;
    char why[200], *text;
    size_t i;

    for (i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK(feed(bad[i], &m, why) == STREAM_BROKEN && *why);
    CHECK(!m.num);
    CHECK(feed("{\"error\":{\"message\":\"no leader\"}}\n", &m, why) == STREAM_BROKEN);
    CHECK(!strcmp(why, "no leader"));
    CHECK(feed("{\"result\":{\"canceled\":true,\"compact_revision\":\"5\"}}\n", &m, why) ==
          STREAM_COMPACTED);

    /* A zero byte makes garbage of a value, and no key of a key. */
    CHECK(feed("{\"result\":{\"events\":[{\"kv\":{\"key\":\"" KEY_A
               "\",\"value\":\"YQBi\",\"mod_revision\":3}}]}}\n", &m, why) == STREAM_GOES_ON);
    CHECK(m.num == 1 && strstr(mirror_find(&m, "a")->value, "zero byte"));
    CHECK(feed("{\"result\":{\"events\":[{\"kv\":{\"key\":\"L3NvZnRpYi8AYQ==\"}}]}}\n", &m,
               why) == STREAM_GOES_ON && m.num == 1);

    stream_begin(&s, "/softib/", &m);
    text = malloc(1 << 20);
    memset(text, ' ', 1 << 20);
    for (i = 0; i < 16; i++)
        CHECK(stream_feed(&s, text, 1 << 20) == STREAM_GOES_ON);
    CHECK(stream_feed(&s, text, 1) == STREAM_BROKEN && strstr(s.why, "too long"));
    free(text);
    stream_end(&s);
    mirror_clear(&m);
}

void test_mirror(void)
{
    static char long_key[KEY_MAX + 2], long_value[VALUE_MAX + 2];
    struct mirror m = { .num = 0 };
    char key[16];
    unsigned int i;

    for (i = 0; i < 1000; i++) {
        snprintf(key, sizeof(key), "k/%u", i * 7 % 1000);
        CHECK(!mirror_set(&m, key, "v", i));
    }
    CHECK(m.num == 1000 && mirror_find(&m, "k/7")->mod == 1 && !mirror_find(&m, "k/"));
    CHECK(m.changes == 1000 && !mirror_set(&m, "k/7", "w", 5000) && m.num == 1000);
    CHECK(!strcmp(mirror_find(&m, "k/7")->value, "w"));
    for (i = 1; i < m.num; i++)
        if (strcmp(m.entries[i - 1].key, m.entries[i].key) >= 0)
            CHECK(false);
    mirror_remove(&m, "k/7");
    mirror_remove(&m, "k/7");
    CHECK(m.num == 999 && !mirror_find(&m, "k/7") && mirror_find(&m, "k/8"));
    memset(long_key, 'k', KEY_MAX + 1);
    memset(long_value, 'v', VALUE_MAX + 1);
    CHECK(mirror_set(&m, long_key, "", 1) == -E2BIG);
    CHECK(mirror_set(&m, "a", long_value, 1) == -E2BIG && m.num == 999);
    mirror_clear(&m);
}

void test_complaints(void)
{
    struct complaints set = { .num = 0 };
    unsigned int i, round;

    said();
    for (round = 0; round < 3; round++) {
        complaints_begin(&set);
        report_about("a/b");
        report("it is %s", "wrong");
        report_about("");
        if (round == 1)
            report("another\x1b");
        complaints_end(&set);
        CHECK(!strcmp(said(), round == 0 ? "vmri-fabricd: a/b: it is wrong\n"
                            : round == 1 ? "vmri-fabricd: another?\n" : ""));
    }
    complaints_begin(&set);
    complaints_end(&set);
    CHECK(!set.num);
    for (round = 0; round < 2; round++) {
        complaints_begin(&set);
        for (i = 0; i < 300; i++)
            report("number %u", i);
        complaints_end(&set);
        CHECK(round ? !*said() : says("there is more, which is not told"));
    }
    complaints_begin(&set);
    report("number 7");
    complaints_end(&set);
    CHECK(set.num == 1 && !*said());
    complaints_free(&set);
}
