/* SPDX-License-Identifier: GPL-2.0-only */
/* config.c, and state.c, which reads a file of its own. */
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabricd.h"
#include "test.h"

static char folder[] = "/tmp/fabricd-test-XXXXXX";

/* A path below the folder of this test, in a static buffer. */
static const char *below(const char *name)
{
    static char path[512];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const char *text)
{
    FILE *f = fopen(below(name), "w");

    fputs(text, f);
    fclose(f);
}

static bool reads(struct config *c, const char *text)
{
    bool ok;

    write_file("conf", text);
    ok = config_read(c, below("conf"));
    if (!ok)
        config_free(c);
    return ok;
}

void test_config(void)
{
    static const struct {
        const char *text, *error;
    } bad[] = {
        { "endpoints", "conf:1: \"endpoints\" is not KEY = VALUE" },
        { "\n\nnonsense = 1", "conf:3: there is no setting \"nonsense\"" },
        { "host =", "host is empty" },
        { "host = a\nhost = b", "conf:2: host is set twice" },
        { "host = -a", "is not a name of up to 63" },
        { "host = a/b", "is not a name" },
        { "endpoints = ftp://a:1", "\"ftp://a:1\" is not an endpoint" },
        { "endpoints = http://a:1/v3", "is not an endpoint" },
        { "endpoints = http://", "is not an endpoint" },
        { "endpoints = ,", "no endpoint is named" },
        { "endpoints = http://a http://b http://c http://d http://e http://f http://g "
          "http://h http://i", "more than 8" },
        { "prefix = softib/", "does not begin and end" },
        { "prefix = /", "does not begin and end" },
        { "prefix = /a b/", "does not begin and end" },
        { "host-gid = 239.1.1.1", "is not the address of an adapter" },
        { "host-gid = ff02::1", "is not the address of an adapter" },
        { "host-gid = ::", "is not the address of an adapter" },
        { "host-gid = x", "is not the address of an adapter" },
        { "device = ../x", "is not the name of an RDMA device" },
        { "lease = 4", "out of range (5 to 3600)" },
        { "lease = 5s", "is not a number" },
        { "ca = x.pem", "is not the path of a file" },
        { "cert = /x", "cert and key go together" },
        { "device = a\nhost-gid = ::1", "set one of them" },
    };
    char line[2000];
    struct config c;
    size_t i;

    CHECK(mkdtemp(folder));
    CHECK(!config_read(&c, below("none")) && says("none: No such file"));
    config_free(&c);
    for (i = 0; i < ARRAY_SIZE(bad); i++)
        if (reads(&c, bad[i].text) || !says(bad[i].error)) {
            printf("%s\n", bad[i].text);
            CHECK(false);
        } else {
            CHECK(true);
        }
    memset(line, 'x', sizeof(line) - 1);
    line[sizeof(line) - 1] = '\0';
    CHECK(!reads(&c, line) && says("conf:1: the line is too long"));

    CHECK(reads(&c, "# nothing\n\n") && !*said());
    CHECK(!strcmp(c.endpoints[0], "http://127.0.0.1:2379") && !c.endpoints[1]);
    CHECK(!strcmp(c.prefix, "/softib/") && c.lease == 60 && *c.host && !c.layer2);
    CHECK(!strcmp(c.state, "/run/vmri-fabricd"));
    config_free(&c);
    CHECK(reads(&c, "endpoints = https://a:1,https://[::1]:2\n host=h1 \nlease = 5\n"
                    "host-gid = 192.0.2.1\nprefix = /x/y/\ncert = /c\nkey = /k\n"
                    "layer2 = /usr/sbin/vmri-bridge\nstate = /s"));
    CHECK(!strcmp(c.endpoints[0], "https://a:1"));
    CHECK(!strcmp(c.endpoints[1], "https://[::1]:2") && !c.endpoints[2]);
    CHECK(!strcmp(c.host, "h1") && c.lease == 5 && !strcmp(c.cert, "/c"));
    CHECK(c.has_gid && c.gid[10] == 0xff && c.gid[12] == 192 && c.gid[15] == 1);
    config_free(&c);
}

static void add_gid(unsigned int index, const char *type, const char *gid)
{
    char name[100];

    snprintf(name, sizeof(name), "class/infiniband/rxe0/ports/1/gid_attrs/types/%u", index);
    write_file(name, type);
    snprintf(name, sizeof(name), "class/infiniband/rxe0/ports/1/gids/%u", index);
    write_file(name, gid);
}

void test_config_gid(void)
{
    static const char *const folders[] = {
        "class", "class/infiniband", "class/infiniband/rxe0",
        "class/infiniband/rxe0/ports", "class/infiniband/rxe0/ports/1",
        "class/infiniband/rxe0/ports/1/gids", "class/infiniband/rxe0/ports/1/gid_attrs",
        "class/infiniband/rxe0/ports/1/gid_attrs/types",
    };
    struct config c;
    uint8_t gid[16];
    size_t i;

    for (i = 0; i < ARRAY_SIZE(folders); i++)
        mkdir(below(folders[i]), 0755);
    CHECK(reads(&c, "host = a") && !config_gid(&c, folder, gid) && says("neither"));
    config_free(&c);
    CHECK(reads(&c, "device = rxe0") && !config_gid(&c, folder, gid) && says("rxe0"));
    add_gid(0, "RoCE v2\n", "fe80:0000:0000:0000:5054:00ff:fe12:3456\n");
    add_gid(1, "IB/RoCE v1\n", "0000:0000:0000:0000:0000:ffff:c000:0207\n");
    CHECK(!config_gid(&c, folder, gid) && says("but link-local"));
    add_gid(4, "RoCE v2\n", "0000:0000:0000:0000:0000:ffff:c000:0208\n");
    CHECK(config_gid(&c, folder, gid) && gid[12] == 192 && gid[15] == 8);
    config_free(&c);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

void test_state(void)
{
    struct local_gid routes[] = { { 7, { 0xfe, 0x80, [15] = 2 } },
                                  { 7, { 0xfe, 0x80, [15] = 3 } } };
    struct fabric fabrics[] = { { .name = "blue", .id = 8 }, { .name = "red", .id = 7 } };
    struct map map = { .fabrics = fabrics, .num_fabrics = 2 };
    struct held held = { .routes = routes, .num = 2 };
    struct history now = { "", 12 };
    struct state s;
    int lock;

    write_file("state", "history x y");
    state_load(folder, &s);
    CHECK(!*s.history.id && !s.map.num_fabrics && !history_continues(&s.history, &now));

    history_draw(now.id);
    CHECK(strlen(now.id) == HISTORY_SIZE - 1);
    state_save(folder, &now, &map, &held);
    state_load(folder, &s);
    CHECK(history_continues(&s.history, &now) && s.history.revision == 12);
    CHECK(s.map.num_fabrics == 2 && map_fabric(&s.map, "red")->id == 7);
    CHECK(s.held.num == 2 && !compare_gids(&s.held.routes[1], &routes[1]));
    now.revision = 11;
    CHECK(!history_continues(&s.history, &now));
    now.revision = 13;
    CHECK(history_continues(&s.history, &now));
    now.id[0] ^= 1;
    CHECK(!history_continues(&s.history, &now));
    map_free(&s.map);
    held_free(&s.held);

    lock = state_lock(folder);
    CHECK(lock >= 0 && state_lock(folder) < 0 && says("another vmri-fabricd runs"));
    close(lock);
    CHECK(state_lock(below("no/folder")) < 0 && says("cannot make the folder"));
    CHECK(!nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS));
}
