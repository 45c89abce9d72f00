/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs xl-vmri's commands, as main() would, against a hypervisor and a xenstore
 * made for the purpose, and looks at what they print, return and leave.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vmri/ring.h>

#include "fake.h"
#include "xl-vmri.h"

#define FRONT1 "/local/domain/1/device/vmri/0"
#define BACK1 "/local/domain/0/backend/vmri/1/0"

int xl_vmri_main(int argc, char **argv);

static unsigned int passed, failed;
static char *out, *err;         /* what the last command printed */

static void check(bool good, const char *what, const char *file, int line)
{
    if (good) {
        passed++;
        return;
    }
    failed++;
    printf("%s:%d: %s\n  stdout: %s\n  stderr: %s\n", file, line, what,
           out ? out : "", err ? err : "");
}

#define CHECK(condition) check(condition, #condition, __FILE__, __LINE__)

/* Run one command line, words separated by single blanks. */
static int run(const char *line)
{
    char *words = strdup(line), *next = words, *argv[16] = { "xl-vmri" };
    FILE *old_out = stdout, *old_err = stderr;
    size_t out_size, err_size;
    int argc = 1, rc;

    while (next && *next)
        argv[argc++] = strsep(&next, " ");

    free(out);
    free(err);
    stdout = open_memstream(&out, &out_size);
    stderr = open_memstream(&err, &err_size);
    optind = 0;
    rc = xl_vmri_main(argc, argv);
    fclose(stdout);
    fclose(stderr);
    stdout = old_out;
    stderr = old_err;
    free(words);

    CHECK(!fake_call.handles && !fake_call.buffers);
    CHECK(!fake_store.handles && !fake_store.watches);
    return rc;
}

static bool says(const char *text)
{
    return strstr(err, text);
}

static bool prints(const char *text)
{
    return strstr(out, text);
}

static bool node_is(const char *path, const char *value)
{
    const char *found = fake_store_get(path);

    return found && !strcmp(found, value);
}

/* dom0 and two guests. */
static void reset(void)
{
    fake_call_reset();
    fake_store_reset();
    fake_store_set("/local/domain/0/name", "Domain-0");
    fake_store_set("/local/domain/1/name", "d1");
    fake_store_set("/local/domain/7/name", "d2");
}

static void test_bad_usage(void)
{
    static const struct {
        const char *line, *error;
    } cases[] = {
        { "", "no command given" },
        { "frobnicate", "there is no command \"frobnicate\"" },
        { "--frobnicate list", "unrecognized option" },
        { "attach", "too few arguments: attach DOMAIN" },
        { "attach d1 fabric=1 lid=1 guid=1 id=1 group=1 sm=1 id=1", "too many" },
        { "detach d1", "too few arguments: detach DOMAIN ID" },
        { "list d1 d2", "too many arguments: list [DOMAIN]" },
        { "info d1 0 0", "too many arguments" },
        { "list --force", "list does not take this option" },
        { "attach d1 --timeout 3", "attach does not take this option" },
        { "list -1", "invalid option" },
        { "detach d1 0 --timeout", "requires an argument" },
        { "detach d1 0 --timeout soon", "timeout: \"soon\" is not a number" },
        { "detach d1 0 --timeout 3601", "timeout: 3601 is out of range" },
        { "detach d1 x", "id: \"x\" is not a number" },
        { "detach d1 64", "id: 64 is out of range (0 to 63)" },
        { "info d1 0x40", "id: 0x40 is out of range (0 to 63)" },
        { "attach d1 fabric", "\"fabric\" is not one of" },
        { "attach d1 =1", "\"=1\" is not one of" },
        { "attach d1 fab=1", "\"fab=1\" is not one of" },
        { "attach d1 fabrics=1", "\"fabrics=1\" is not one of" },
        { "attach d1 fabric=", "fabric: \"\" is neither a number nor a name" },
        { "attach d1 fabric=-1", "fabric: \"-1\" is neither a number nor" },
        { "attach d1 fabric=a/b", "fabric: \"a/b\" is neither a number nor" },
        { "attach d1 fabric=aaaaaaaaaabbbbbbbbbbccccccccccdd", "is neither" },
        { "fabric", "too few arguments: fabric" },
        { "fabric create", "not one of: fabric create" },
        { "fabric make a", "not one of: fabric create" },
        { "fabric list a", "not one of: fabric create" },
        { "fabric delete a b", "fabric delete takes one fabric" },
        { "fabric create -", "fabric: \"-\" is neither" },
        { "fabric create a b", "\"b\" is not one of link=ib, link=roce, id=N" },
        { "fabric create 7 id=7", "\"id=7\" is not one of link=ib, link=roce" },
        { "fabric create a id=1 id=2", "id is given twice" },
        { "fabric create a link=ib link=ib", "link is given twice" },
        { "fabric create a id=16777216", "id: 16777216 is out of range" },
        { "fabric create 16777216", "fabric: 16777216 is out of range" },
        { "attach d1 fabric=0x", "fabric: \"0x\" is not a number" },
        { "attach d1 fabric=0x0x1", "fabric: \"0x0x1\" is not a number" },
        { "attach d1 fabric=1k", "fabric: \"1k\" is not a number" },
        { "attach d1 fabric=16777216", "out of range (0 to 16777215)" },
        { "attach d1 fabric=18446744073709551616", "out of range" },
        { "attach d1 fabric=1 fabric=1", "fabric is given twice" },
        { "attach d1 lid=0", "lid: 0 is out of range (1 to 49151)" },
        { "attach d1 lid=0xc000", "lid: 0xc000 is out of range" },
        { "attach d1 id=64", "id: 64 is out of range" },
        { "attach d1 id=4294967295", "id: 4294967295 is out of range" },
        { "attach d1 guid=", "guid: \"\" is not 16 hexadecimal digits" },
        { "attach d1 guid=123", "is not 16 hexadecimal digits" },
        { "attach d1 guid=00112233445566778", "is not 16 hexadecimal" },
        { "attach d1 guid=0011:2233:4455:667", "is not 16 hexadecimal" },
        { "attach d1 guid=0011:2233:4455:6677:", "is not 16 hexadecimal" },
        { "attach d1 guid=001:12233:4455:6677", "is not 16 hexadecimal" },
        { "attach d1 guid=001122334455667g", "is not 16 hexadecimal" },
        { "attach d1 guid=0000000000000000", "a GUID is not zero" },
        { "route", "too few arguments: route add" },
        { "route add 1 ::1", "not one of: route add" },
        { "route del 1", "not one of: route add" },
        { "route list", "not one of: route add" },
        { "route add 1 x ::1", "gid: \"x\" is not an address" },
        { "route add 1 ::1 x", "host gid: \"x\" is not an address" },
        { "rule", "too few arguments: rule add" },
        { "rule add", "not one of: rule add" },
        { "rule del 1", "not one of: rule add" },
        { "rule list", "not one of: rule add" },
        { "rule flush 1 1", "not one of: rule add" },
        { "rule list /", "fabric: \"/\" is neither" },
        { "rule del 1 0", "rule: 0 is out of range (1 to 512)" },
        { "rule add 1", "a rule begins with ingress or egress" },
        { "rule add 1 in", "a rule begins with ingress or egress" },
        { "rule add 1 ingress x", "\"x\" is not one of group=N" },
        { "rule add 1 ingress group=0", "group: 0 is out of range" },
        { "rule add 1 ingress group=1 group=1", "group is given twice" },
        { "rule add 1 ingress proto=tcp", "proto: \"tcp\" is not one of" },
        { "rule add 1 ingress remote=", "remote: \"\" is not an address" },
        { "rule add 1 ingress remote=1.2.3", "\"1.2.3\" is not an address" },
        { "rule add 1 ingress remote=::/", "remote: length: \"\" is not" },
        { "rule add 1 ingress remote=::/129", "129 is out of range (0 to 128)" },
        { "rule add 1 ingress remote=1.2.3.4/33", "33 is out of range (0 to 32)" },
        { "rule add 1 ingress remote=1.2.3.5/31", "1.2.3.5/31 has bits beyond" },
        { "rate", "too few arguments: rate DOMAIN" },
        { "rate d1 64", "id: 64 is out of range" },
        { "rate d1 0 10G", "\"10G\" is not a rate" },
        { "rate d1 0 Gb/s", "\"Gb/s\" is not a rate" },
        { "rate d1 0 1.2.3Gb/s", "\"1.2.3Gb/s\" is not a rate" },
        { "rate d1 0 .Gb/s", "\".Gb/s\" is not a rate" },
        { "rate d1 0 999kb/s", "a rate is 1Mb/s to 1Tb/s" },
        { "rate d1 0 1.1Tb/s", "a rate is 1Mb/s to 1Tb/s" },
        { "rate d1 0 1Gb/s 1Gb/s", "the rate is given twice" },
        { "rate d1 0 1Gb/s burst=8K burst=8K", "burst is given twice" },
        { "rate d1 0 1Gb/s sl=1 sl=1", "sl is given twice" },
        { "rate d1 0 1Gb/s burst=8191", "burst: 8192 bytes at the least" },
        { "rate d1 0 1Gb/s burst=2G", "burst: 2 is out of range" },
        { "rate d1 0 burst=8K", "burst needs a rate" },
        { "rate d1 0 1Gb/s sl=16", "sl: 16 is out of range" },
        { "attach d1 sm=2", "sm: 2 is out of range (0 to 1)" },
        { "attach d1 sm", "\"sm\" is not one of" },
        { "limits", "too few arguments: limits DOMAIN" },
        { "limits d1 qps", "\"qps\" is not NAME=VALUE" },
        { "limits d1 =5", "\"=5\" is not NAME=VALUE" },
        { "limits d1 qp=5", "\"qp=5\" is not NAME=VALUE" },
        { "limits d1 qpss=5", "\"qpss=5\" is not NAME=VALUE" },
        { "limits d1 qps=", "qps: \"\" is not a number" },
        { "limits d1 qps=K", "qps: \"\" is not a number" },
        { "limits d1 qps=-1", "qps: \"-1\" is not a number" },
        { "limits d1 qps=1KK", "qps: \"1K\" is not a number" },
        { "limits d1 qps=1111111111111111111111111", "is not a number" },
        { "limits d1 bytes=281474976710657", "bytes: 281474976710657 is out" },
        { "limits d1 bytes=257T", "bytes: 257 is out of range (0 to 256)" },
        { "limits d1 qps=1 qps=2", "qps is given twice" },
        { "limits d1 --batch", "limits does not take this option" },
        { "port", "too few arguments: port DOMAIN" },
        { "port d1 64", "id: 64 is out of range (0 to 63)" },
        { "port d1 sideways", "\"sideways\" is not one of up, down" },
        { "port d1 lid", "\"lid\" is not one of" },
        { "port d1 up=1", "\"up=1\" is not one of" },
        { "port d1 up 0", "\"0\" is not one of" },
        { "port d1 up down", "the state is given twice" },
        { "port d1 lid=1 lid=2", "lid is given twice" },
        { "port d1 lid=0", "lid: 0 is out of range (1 to 49151)" },
        { "port d1 sm-lid=0xc000", "sm-lid: 0xc000 is out of range" },
        { "port d1 pkeys=0x8000", "pkeys: 0x8000 names no partition" },
        { "port d1 pkeys=", "pkeys: \"\" is not a number" },
        { "port d1 pkeys=1,,2", "pkeys: \"\" is not a number" },
        { "port d1 pkeys=0xffff,0x10000", "pkeys: 0x10000 is out of range" },
        { "port d1 pkeys=0x8001,2,1", "pkeys: partition 0x0001 is given twice" },
        { "port d1 pkeys=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,"
          "21,22,23,24,25,26,27,28,29,30,31,32,33", "a port has 32 at the most" },
        { "port d1 pkeys=0x000000000000000000000000000000000000000000000000000"
          "00000000000000000000000000000000000000000000000000000000000000000000"
          "00000000000000000000000000000000000000000000000000000000000000000000"
          "000000000000000000000000000000000000000000000000000000000000000000001",
          "pkeys: too long" },
        { "port d1 gid-prefix=0xff00000000000000", "is out of range" },
        { "stats d1 0 0", "too many arguments: stats [DOMAIN [ID]]" },
        { "stats d1 64", "id: 64 is out of range (0 to 63)" },
        { "dump", "too few arguments: dump DOMAIN [ID]" },
        { "dump d1 x", "id: \"x\" is not a number" },
        { "top d1 0", "too many arguments: top [DOMAIN]" },
        { "top --delay 0.09", "delay: \"0.09\" is not a number of seconds" },
        { "top --delay 3601", "delay: \"3601\" is not a number of seconds" },
        { "top --delay 1.5.", "delay: \"1.5.\" is not a number of seconds" },
        { "top -d nan", "delay: \"nan\" is not a number of seconds" },
        { "top -i 0", "iterations: 0 is out of range" },
        { "list -d 1", "list does not take this option" },
    };
    size_t i;

    for (i = 0; i < ARRAY_SIZE(cases); i++) {
        reset();
        CHECK(run(cases[i].line) == RC_USAGE);
        CHECK(says(cases[i].error));
        /* One message, and nothing done. */
        CHECK(!strncmp(err, "xl-vmri: ", 9) && !strstr(err + 1, "xl-vmri: "));
        CHECK(!*out && !fake_call.num_devices && !fake_store_get(FRONT1));
    }
}

static void test_help(void)
{
    reset();
    CHECK(run("--help") == RC_OK && prints("attach DOMAIN") && !*err);
    CHECK(run("detach --help") == RC_OK && prints("detach DOMAIN ID"));
    CHECK(run("--version") == RC_OK && prints("xl-vmri ") && prints("ABI 1"));
}

static void test_no_host(void)
{
    static const struct {
        int error;
        const char *text;
    } cases[] = {
        { EACCES, "run this as root" },
        { ENOENT, "run this in dom0 of a Xen host" },
        { EIO, "cannot open /dev/xen/privcmd: " },
    };
    size_t i;

    for (i = 0; i < ARRAY_SIZE(cases); i++) {
        reset();
        fake_call.open_errno = cases[i].error;
        CHECK(run("list") == RC_FAILURE && says(cases[i].text));
    }

    reset();
    fake_store.fail_open = true;
    CHECK(run("list") == RC_FAILURE && says("cannot reach xenstored"));

    reset();
    fake_call.no_vmri = true;
    CHECK(run("attach d1") == RC_FAILURE && says("no VMRI (boot a patched"));
    CHECK(run("info") == RC_FAILURE && says("no VMRI"));
    CHECK(prints("xen") && prints("4.17") && !prints("hypercall"));

    /* The number has another use here. */
    reset();
    fake_call.magic = 1;
    CHECK(run("list") == RC_FAILURE && says("no VMRI"));

    reset();
    fake_call.abi_version = 99;
    CHECK(run("list") == RC_FAILURE && says("ABI version 99"));
}

static void test_domains(void)
{
    reset();
    CHECK(run("attach 1") == RC_OK && prints("d1 (1): device 0"));
    CHECK(run("attach d1") == RC_OK && prints("d1 (1): device 1"));
    CHECK(run("attach Domain-0") == RC_OK && prints("Domain-0 (0): device 0"));
    CHECK(run("attach d") == RC_FAILURE && says("no domain named \"d\""));
    CHECK(run("attach 2") == RC_FAILURE && says("no domain with id 2"));
    CHECK(run("attach 99999") == RC_FAILURE && says("named \"99999\""));
    CHECK(run("detach d3 0") == RC_FAILURE && says("named \"d3\""));
    CHECK(run("list d3") == RC_FAILURE && says("named \"d3\""));

    fake_store_remove("/local/domain/0/name");
    CHECK(run("attach Domain-0") == RC_OK && prints("domain 0: device 1"));
}

static void test_attach(void)
{
    reset();
    CHECK(run("attach d1 fabric=0x10 lid=5 guid=0x0123456789abcdef") == RC_OK);
    CHECK(!strcmp(out, "d1 (1): device 0, fabric 16, LID 5, "
                       "GUID 0123:4567:89ab:cdef\n"));

    CHECK(node_is(FRONT1 "/backend", BACK1));
    CHECK(node_is(FRONT1 "/backend-id", "0"));
    CHECK(node_is(FRONT1 "/state", "1"));
    CHECK(node_is(FRONT1 "/hypercall", "43"));
    CHECK(node_is(FRONT1 "/dev-id", "0"));
    CHECK(!strcmp(fake_store_perms(FRONT1), "1:0"));
    CHECK(!strcmp(fake_store_perms(FRONT1 "/state"), "1:0"));

    CHECK(node_is(BACK1 "/frontend", FRONT1));
    CHECK(node_is(BACK1 "/frontend-id", "1"));
    CHECK(node_is(BACK1 "/state", "4"));
    CHECK(node_is(BACK1 "/online", "1"));
    CHECK(node_is(BACK1 "/fabric", "16"));
    CHECK(node_is(BACK1 "/lid", "5"));
    CHECK(node_is(BACK1 "/guid", "0123:4567:89ab:cdef"));
    CHECK(!strcmp(fake_store_perms(BACK1 "/state"), "0:1"));

    CHECK(fake_call.attach_flags == 0);
    CHECK(run("attach Domain-0 fabric=1 sm=1") == RC_OK);
    CHECK(fake_call.attach_flags == VMRI_ATTACH_SM);
    CHECK(run("attach d1 id=9 fabric=1 sm=0") == RC_OK);
    CHECK(fake_call.attach_flags == 0);

    CHECK(run("--json attach d2 id=3 guid=0123:4567:89ab:cdee") == RC_OK);
    CHECK(!strcmp(out, "{\n  \"domid\": 7,\n  \"id\": 3,\n  \"fabric\": 0,\n"
                       "  \"lid\": 1,\n"
                       "  \"guid\": \"0123:4567:89ab:cdee\"\n}\n"));
}

static void test_attach_conflicts(void)
{
    reset();
    CHECK(run("attach d1 id=2 fabric=3 lid=4 guid=00000000000000aa") == RC_OK);
    CHECK(run("attach d1 id=2") == RC_FAILURE);
    CHECK(says("d1 (1) has a device 2 already"));
    CHECK(run("attach d2 fabric=3 lid=4") == RC_FAILURE);
    CHECK(says("LID 4 on fabric 3 belongs to device 2 of d1 (1)"));
    CHECK(run("attach d2 fabric=3 guid=00000000000000aa") == RC_FAILURE);
    CHECK(says("the GUID belongs to device 2 of d1 (1) on fabric 3"));
    CHECK(fake_call.num_devices == 1);
    CHECK(!fake_store_get("/local/domain/7/device/vmri/0"));

    fake_call.attach_errno = ESRCH;
    CHECK(run("attach d2") == RC_FAILURE && says("d2 (7) is going away"));
    fake_call.attach_errno = ENOSPC;
    CHECK(run("attach d2") == RC_FAILURE && says("can have no more devices"));
    fake_call.attach_errno = EBUSY;
    CHECK(run("attach d2 fabric=3 sm=1") == RC_FAILURE &&
          says("fabric 3 has a device with sm=1 already"));
    fake_call.attach_errno = EPERM;
    CHECK(run("attach d2") == RC_FAILURE && says("does not let this domain"));
}

static void test_fabric(void)
{
    reset();
    CHECK(run("fabric list") == RC_OK && !strncmp(out, "  FABRIC NAME", 13));
    CHECK(run("fabric create red") == RC_OK && prints("fabric red (1)\n"));
    CHECK(run("fabric create red") == RC_FAILURE && says("a fabric red already"));
    CHECK(run("fabric create 1") == RC_FAILURE && says("fabric 1 already"));
    CHECK(run("fabric create 9") == RC_OK && !strcmp(out, "fabric 9\n"));
    CHECK(run("fabric create blue id=5 link=ib --json") == RC_OK);
    CHECK(prints("\"fabric\": 5,\n  \"name\": \"blue\",\n  \"link\": \"ib\""));
    CHECK(run("fabric create r link=roce") == RC_FAILURE);
    CHECK(says("link layer roce are not built yet"));

    CHECK(run("attach d1 fabric=blue") == RC_OK && prints("fabric 5, LID 1"));
    CHECK(node_is(BACK1 "/fabric", "5"));
    CHECK(run("attach d1 fabric=green") == RC_FAILURE);
    CHECK(says("there is no fabric green"));
    CHECK(run("attach d2 fabric=12") == RC_OK && prints("fabric 12, LID 1"));
    CHECK(run("fabric list") == RC_OK && prints("\n       5 blue "));
    CHECK(prints(" yes           1     0\n") && prints("\n       9 - "));
    CHECK(run("fabric list -j") == RC_OK && prints("\"name\": null"));

    CHECK(run("fabric delete blue") == RC_FAILURE);
    CHECK(says("devices are attached to fabric blue (5)"));
    CHECK(run("fabric delete green") == RC_FAILURE && says("there is no fabric"));
    CHECK(run("fabric delete 12") == RC_FAILURE && says("12 was not created"));
    CHECK(run("detach d1 0") == RC_OK && run("fabric delete blue") == RC_OK);
    CHECK(run("fabric delete 9 --json") == RC_OK && prints("\"fabric\": 9"));
    CHECK(fake_call.num_fabrics == 1);
}

static void test_route(void)
{
    reset();
    CHECK(run("route add 1 fe80::2 2001:db8::1") == RC_FAILURE);
    CHECK(says("fabric 1 was not created"));
    CHECK(run("fabric create red") == RC_OK);
    CHECK(run("route add red fe80::2 2001:db8::1") == RC_OK && !*out);
    CHECK(run("route add red fe80::2 ::1") == RC_FAILURE);
    CHECK(says("fabric red (1) has a route for this GID already"));
    CHECK(run("route add red 10.0.0.1 192.0.2.1") == RC_OK);
    CHECK(run("route add red ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ::1") ==
          RC_OK);
    CHECK(run("route list red") == RC_OK && !strncmp(out, "  FABRIC GID", 12));
    CHECK(prints("\n       1 ::ffff:10.0.0.1 ") && prints(" ::ffff:192.0.2.1 "));
    CHECK(prints("\n       1 fe80::2 ") && prints(" 2001:db8::1 "));
    CHECK(run("route list 1 --json") == RC_OK);
    CHECK(prints("\"gid\": \"fe80::2\",\n    \"host_gid\": \"2001:db8::1\""));
    CHECK(run("route del red fe80::2") == RC_OK && fake_call.num_routes == 2);
    CHECK(run("route del red fe80::2") == RC_FAILURE && says("no such route"));
}

static bool prefix_is(unsigned int bits, unsigned int byte, uint8_t value)
{
    const struct vmri_ctl_rule *r = &fake_call.rules[fake_call.num_rules - 1];

    return r->bits == bits && r->prefix[byte] == value;
}

static void test_rule(void)
{
    reset();
    CHECK(run("rule add red ingress") == RC_FAILURE && says("no fabric red"));
    CHECK(run("rule add 1 ingress") == RC_FAILURE && says("was not created"));
    CHECK(run("fabric create red") == RC_OK);
    CHECK(run("rule add red ingress group=7 remote-group=8") == RC_OK);
    CHECK(!strcmp(out, "fabric red (1): rule 1\n"));
    CHECK(run("rule add 1 egress remote=fe80::/10 proto=ib --json") == RC_OK);
    CHECK(prints("\"direction\": \"egress\"") && prefix_is(10, 1, 0x80));
    CHECK(prints("\"remote\": \"fe80::/10\""));
    CHECK(run("rule add red ingress remote=192.0.2.128/25") == RC_OK);
    CHECK(prefix_is(121, 15, 128) && prefix_is(121, 10, 0xff));
    CHECK(run("rule add red ingress remote=192.0.2.1") == RC_OK);
    CHECK(prefix_is(128, 12, 192));
    CHECK(run("rule add red ingress remote=::/0") == RC_OK);
    CHECK(prefix_is(0, 0, 0));
    CHECK(run("rule add red ingress remote=0.0.0.0/0") == RC_OK);
    CHECK(prefix_is(96, 11, 0xff));
    CHECK(run("rule add red ingress proto=roce") == RC_FAILURE);
    CHECK(says("has no devices of that protocol"));

    CHECK(run("rule list red") == RC_OK);
    CHECK(prints("    1 ingress          7 any "));
    CHECK(prints("    2 egress         any fe80::/10 "));
    CHECK(prints(" 192.0.2.128/25 ") && prints(" 192.0.2.1/32 "));
    CHECK(prints(" 0.0.0.0/0 "));
    CHECK(run("rule del red 5") == RC_FAILURE && says("has no such rule"));
    CHECK(run("rule del red 6") == RC_OK && fake_call.num_rules == 5);
    CHECK(run("rule flush 1") == RC_OK && !fake_call.num_rules);
    CHECK(run("rule list 1 --json") == RC_OK && !strcmp(out, "[]\n"));

    CHECK(run("attach d1 fabric=red group=9") == RC_OK);
    CHECK(fake_call.devices[0].group == 9);
    CHECK(run("info d1 0 -j") == RC_OK && prints("\"group\": 9"));
}

static void kill_d1(void)
{
    fake_store_remove("/local/domain/1");
    fake_call_destroy_domain(1);
}

/* What goes wrong after the hypercall is undone. */
static void test_attach_undone(void)
{
    unsigned int n;

    for (n = 1; n <= 12; n++) {
        reset();
        fake_store.fail_writes = n;
        CHECK(run("attach d1") == RC_FAILURE);
        CHECK(says("cannot write device 0 of d1 (1) to xenstore"));
        CHECK(!fake_call.num_devices);
        CHECK(!fake_store_get(FRONT1) && !fake_store_get(BACK1));
    }

    reset();
    fake_store.conflicts = 1;
    CHECK(run("attach d1") == RC_OK && fake_store_get(BACK1 "/state"));

    /* A guest that disturbs for ever. */
    reset();
    fake_store.conflicts = 1000;
    CHECK(run("attach d1") == RC_FAILURE && says("too busy"));
    CHECK(!fake_call.num_devices && !fake_store_get(BACK1));

    /* The domain dies in between, and its path must not come back. */
    reset();
    fake_store.conflicts = 1;
    fake_store.on_conflict = kill_d1;
    CHECK(run("attach d1") == RC_FAILURE && says("domain 1 is going away"));
    CHECK(!fake_call.num_devices && !fake_store_get("/local/domain/1"));
    CHECK(!fake_store_get(BACK1));
}

static void attach_d1(const char *state)
{
    reset();
    CHECK(run("attach d1") == RC_OK);
    fake_store_set(FRONT1 "/state", state);
}

static bool d1_is_clean(void)
{
    return !fake_call.num_devices && !fake_store_get(FRONT1) &&
           !fake_store_get("/local/domain/0/backend/vmri/1");
}

static void test_detach(void)
{
    /* No driver, and one that has closed: nothing to wait for. */
    attach_d1("1");
    CHECK(run("detach d1 0") == RC_OK && !*out && d1_is_clean());
    CHECK(run("detach d1 0") == RC_FAILURE && says("d1 (1) has no device 0"));

    attach_d1("4");
    fake_store.driver = DRIVER_CLOSES;
    CHECK(run("detach 1 0 --json") == RC_OK && d1_is_clean());
    CHECK(!strcmp(out, "{\n  \"domid\": 1,\n  \"id\": 0\n}\n"));

    attach_d1("4");
    fake_store.driver = DRIVER_CLOSES_LATER;
    CHECK(run("detach d1 0") == RC_OK && d1_is_clean());

    /* One that does not, and one that lies. */
    attach_d1("4");
    CHECK(run("detach d1 0 --timeout 0") == RC_FAILURE);
    CHECK(says("still uses device 0 after 0 s (its state is Connected)"));
    CHECK(fake_call.num_devices == 1 && node_is(BACK1 "/state", "5"));
    CHECK(node_is(BACK1 "/online", "0"));
    fake_store_set(FRONT1 "/state", "7");
    CHECK(run("detach d1 0 -t 1") == RC_FAILURE && says("state is Unknown"));
    CHECK(run("detach d1 0 --force") == RC_OK && d1_is_clean());

    attach_d1("4");
    fake_store.driver = DRIVER_DIES;
    CHECK(run("detach d1 0") == RC_OK && d1_is_clean());

    /* The guest removes its own nodes. */
    attach_d1("4");
    fake_store_remove(FRONT1);
    CHECK(run("detach d1 0") == RC_OK && d1_is_clean());

    /* Nobody wrote the nodes. */
    attach_d1("4");
    fake_store_remove(FRONT1);
    fake_store_remove(BACK1);
    CHECK(run("detach d1 0") == RC_OK && !fake_call.num_devices);

    /* Other devices of the domain stay. */
    attach_d1("1");
    CHECK(run("attach d1") == RC_OK && run("detach d1 0") == RC_OK);
    CHECK(fake_call.num_devices == 1 && !fake_store_get(BACK1));
    CHECK(fake_store_get("/local/domain/0/backend/vmri/1/1/state"));
}

static void attach_again(void)
{
    struct vmri_ctl_info *dev = &fake_call.devices[fake_call.num_devices++];

    memset(dev, 0, sizeof(*dev));
    dev->domid = 1;
}

static void test_sweep(void)
{
    /* A domain that died: its backend is left, and goes at the next command. */
    attach_d1("4");
    kill_d1();
    CHECK(fake_store_get(BACK1 "/state"));
    CHECK(run("list") == RC_OK && !prints("d1"));
    CHECK(!fake_store_get("/local/domain/0/backend/vmri/1"));

    /* A device that another xl-vmri attaches meanwhile stays. */
    attach_d1("4");
    fake_call_destroy_domain(1);
    fake_store.conflicts = 1;
    fake_store.on_conflict = attach_again;
    CHECK(run("list") == RC_OK && fake_store_get(BACK1 "/state"));
    CHECK(fake_store_get(FRONT1 "/state"));

    /* What is not ours to understand is left alone. */
    reset();
    fake_store_set("/local/domain/0/backend/vmri/x/0/state", "4");
    fake_store_set("/local/domain/0/backend/vmri/1/x", "4");
    CHECK(run("list") == RC_OK);
    CHECK(fake_store_get("/local/domain/0/backend/vmri/x/0/state"));
    CHECK(fake_store_get("/local/domain/0/backend/vmri/1/x"));
}

static void test_list(void)
{
    reset();
    CHECK(run("list") == RC_OK && !strncmp(out, "DOMAIN ", 7));
    CHECK(!strchr(strchr(out, '\n') + 1, '\n'));
    CHECK(run("list --json") == RC_OK && !strcmp(out, "[]\n"));

    run("attach d1 guid=0123456789abcdef");
    run("attach d2");
    fake_call.devices[0].in_use = 1;
    fake_call.devices[0].counters.tx_msgs = 11;
    fake_call.devices[0].counters.tx_bytes = 12;
    fake_call.devices[0].counters.rx_msgs = 13;
    fake_call.devices[0].counters.rx_bytes = 1ULL << 63;
    CHECK(run("list") == RC_OK && prints("\nd1 ") && prints("\nd2 "));
    CHECK(prints("9223372036854775808\n") && prints("Initialising"));
    CHECK(run("list d2") == RC_OK && !prints("d1 ") && prints("\nd2 "));

    CHECK(run("-j list d1") == RC_OK);
    CHECK(!strcmp(out, "[\n  {\n"
                       "    \"domain\": \"d1\",\n"
                       "    \"domid\": 1,\n"
                       "    \"id\": 0,\n"
                       "    \"fabric\": 0,\n"
                       "    \"lid\": 1,\n"
                       "    \"guid\": \"0123:4567:89ab:cdef\",\n"
                       "    \"group\": 0,\n"
                       "    \"state\": \"Initialising\",\n"
                       "    \"in_use\": true,\n"
                       "    \"tx_msgs\": 11,\n"
                       "    \"tx_bytes\": 12,\n"
                       "    \"rx_msgs\": 13,\n"
                       "    \"rx_bytes\": 9223372036854775808\n"
                       "  }\n]\n"));

    fake_store_set("/local/domain/1/name", "a\"b\\c\n");
    CHECK(run("-j list 1") == RC_OK && prints("\"a\\\"b\\\\c\\u000a\""));

    /* Dying, and not yet gone from the hypervisor. */
    fake_store_remove("/local/domain/1");
    CHECK(run("-j list") == RC_OK && prints("\"domain\": null"));
    CHECK(prints("\"state\": null"));
}

static void test_info(void)
{
    reset();
    CHECK(run("info") == RC_OK && prints("abi_version             1\n"));
    CHECK(run("info --json") == RC_OK && prints("\"vmri\": true"));
    CHECK(run("info d1") == RC_FAILURE && says("d1 (1) has no device"));

    run("attach d1");
    run("attach d1 id=9");
    run("attach d2");
    fake_call.devices[1].usage.n[VMRI_RES_QP] = 21;
    fake_call.devices[1].usage.n[VMRI_RES_BYTES] = 22;
    fake_call.devices[1].counters.qkey_violations = 24;
    fake_call.devices[1].counters.pkey_violations = 25;
    CHECK(run("info d1 1") == RC_FAILURE && says("d1 (1) has no device 1"));
    CHECK(run("info d1 9") == RC_OK);
    CHECK(prints("\n  qps                   21\n"));
    CHECK(prints("\n  bytes                 22\n"));
    CHECK(prints("\n  qkey_violations       24\n") && !prints("\n\n"));
    CHECK(prints("\n  pkey_violations       25\n"));
    CHECK(!prints("  devices "));
    CHECK(run("info d1") == RC_OK && prints("\n\ndomain "));
    CHECK(!prints("d2"));
    CHECK(run("info d1 9 --json") == RC_OK && prints("\"qps\": 21,"));
    CHECK(out[0] == '{' && run("info d1 -j") == RC_OK && out[0] == '[');
}

static void test_port(void)
{
    reset();
    fake_call.port = (struct vmri_ctl_port){
        .state = 4, .lid = 1, .sm_lid = 1, .pkeys = { 0xffff },
        .gid_prefix = 0xfe80000000000000,
    };

    CHECK(run("port d1") == RC_FAILURE && says("d1 (1) has no device\n"));
    CHECK(run("attach d1") == RC_OK && run("attach d2") == RC_OK);
    CHECK(run("port d1") == RC_OK && fake_call.port.mask == 0);
    CHECK(prints("d1 (1): device 0, port active, LID 1, SM LID 1, P_Keys 0xffff, "
                 "GID prefix fe80:0000:0000:0000\n"));

    CHECK(run("port d1 down") == RC_OK && prints("port down"));
    CHECK(fake_call.port.mask == VMRI_PORTA_STATE);
    CHECK(run("port 1 0 up lid=7 sm-lid=0 pkeys=0x7fff,0x8001 gid-prefix=5 "
              "reregister") == RC_OK);
    CHECK(fake_call.port.mask == VMRI_PORTA_ALL);
    CHECK(prints("port active, LID 7, SM LID 0, P_Keys 0x7fff 0x8001, "
                 "GID prefix 0000:0000:0000:0005\n"));
    CHECK(run("-j port d1 sm-lid=9") == RC_OK && out[0] == '{');
    CHECK(prints("\"state\": \"active\"") && prints("\"sm_lid\": 9"));
    CHECK(prints("\"pkeys\": [\n    32767,\n    32769\n  ]"));
    CHECK(prints("\"gid_prefix\": \"0000:0000:0000:0005\""));

    CHECK(run("port d1 lid=2") == RC_FAILURE && says("LID 2 belongs to another"));
    CHECK(run("port d1 3 up") == RC_FAILURE && says("d1 (1) has no device 3"));
    CHECK(run("attach d1") == RC_OK);
    CHECK(run("port d1 up") == RC_FAILURE && says("more than one device"));
    CHECK(run("port d1 1 up") == RC_OK && prints("device 1"));
    fake_call.port_errno = ESRCH;
    CHECK(run("port d1 1 up") == RC_FAILURE && says("is going away"));
    fake_call.port_errno = EPERM;
    CHECK(run("port d1 1 up") == RC_FAILURE && says("cannot change the port"));
    CHECK(run("port d1 1") == RC_FAILURE && says("cannot look up the port"));
}

static void test_rate(void)
{
    reset();
    CHECK(run("rate d1") == RC_FAILURE && says("d1 (1) has no device\n"));
    CHECK(run("attach d1") == RC_OK && run("attach d1") == RC_OK);
    CHECK(run("rate d1") == RC_FAILURE && says("more than one device"));
    CHECK(run("rate d1 0") == RC_OK);
    CHECK(!strcmp(out, "d1 (1): device 0, unlimited\n"));

    CHECK(run("rate d1 0 10Gb/s") == RC_OK);
    CHECK(!strcmp(out, "d1 (1): device 0, 10Gb/s, burst 25000000 bytes\n"));
    CHECK(fake_call.rates[VMRI_RATE_DEVICE].rate == 1250000000);
    CHECK(run("rate d1 1 2.5mb/s burst=64K sl=3") == RC_OK);
    CHECK(!strcmp(out, "d1 (1): device 1, SL 3, 2.5Mb/s, burst 65536 bytes\n"));
    CHECK(fake_call.rates[3].rate == 312500);
    CHECK(run("rate d1 1 sl=4") == RC_OK && prints("SL 4, unlimited\n"));
    CHECK(run("rate d1 1") == RC_OK);
    CHECK(!strcmp(out, "d1 (1): device 1, SL 3, 2.5Mb/s, burst 65536 bytes\n"
                       "d1 (1): device 1, 10Gb/s, burst 25000000 bytes\n"));
    CHECK(run("rate d1 1 --json") == RC_OK && prints("\"sl\": 3"));
    CHECK(prints("\"sl\": null,\n    \"bytes_per_second\": 1250000000"));
    CHECK(run("rate d1 1 unlimited") == RC_OK && prints("unlimited"));
    CHECK(!fake_call.rates[VMRI_RATE_DEVICE].rate && fake_call.rates[3].rate);

    CHECK(run("rate d1 5") == RC_FAILURE && says("d1 (1) has no device 5"));
    fake_call.rate_errno = ESRCH;
    CHECK(run("rate d1 0 1Tb/s") == RC_FAILURE && says("cannot set the rate"));
    CHECK(says("it is going away"));
}

static void test_limits(void)
{
    reset();
    fake_call.limits.limit.n[VMRI_RES_QP] = 16384;
    fake_call.limits.usage.n[VMRI_RES_QP] = 12;
    fake_call.limits.limit.n[VMRI_RES_BYTES] = VMRI_LIMIT_MAX;

    /* No device is needed. */
    CHECK(run("limits d1") == RC_OK);
    CHECK(!strncmp(out, "NAME                     LIMIT            USED\n"
                        "pds ", 50));
    CHECK(prints("\nqps                      16384              12\n"));
    CHECK(prints("\nbytes          281474976710656               0\n"));
    CHECK(prints("\nmcg_qps ") && prints("\ndevices "));

    CHECK(run("limits 1 qps=5 bytes=0x40M pinned_pages=2g devices=0") == RC_OK);
    CHECK(prints("\nqps                          5              12\n"));
    CHECK(prints("\nbytes                 67108864               0\n"));
    CHECK(prints("\npinned_pages        2147483648               0\n"));
    CHECK(prints("\ndevices                      0               0\n"));
    CHECK(fake_call.limits.limit.n[VMRI_RES_QP] == 5);

    CHECK(run("limits d1 bytes=256T --json") == RC_OK);
    CHECK(!strncmp(out, "{\n  \"domid\": 1,\n  \"limits\": {\n", 30));
    CHECK(prints("\"bytes\": 281474976710656\n  },\n  \"usage\": {\n"));
    CHECK(prints("    \"qps\": 12,\n"));

    CHECK(run("limits d3") == RC_FAILURE && says("no domain named \"d3\""));
    fake_call.limits_errno = ESRCH;
    CHECK(run("limits d1") == RC_FAILURE);
    CHECK(says("cannot look up the limits of d1 (1): it is going away"));
    fake_call.limits_errno = EPERM;
    CHECK(run("limits d1 qps=1") == RC_FAILURE);
    CHECK(says("cannot set the limits of d1 (1): the hypervisor does not let"));
}

static void test_stats(void)
{
    reset();
    CHECK(run("stats") == RC_OK && !*out);
    CHECK(run("stats --json") == RC_OK && !strcmp(out, "[]\n"));
    CHECK(run("stats d1") == RC_FAILURE && says("d1 (1) has no device"));

    run("attach d1");
    run("attach d2");
    fake_call.devices[0].counters.doorbells = 31;
    fake_call.devices[0].usage.n[VMRI_RES_CQ] = 32;
    fake_call.types[VMRI_STAT_UD].rx_msgs = 33;
    CHECK(run("stats d1 0") == RC_OK);
    CHECK(prints("\n  doorbells             31\n"));
    CHECK(prints("\nusage\n") && prints("\n  cqs                   32\n"));
    CHECK(prints("\ntypes\n  UD\n    tx_msgs             0\n"));
    CHECK(prints("\n    rx_msgs             33\n") && !prints("RC"));
    CHECK(run("stats d1 -j") == RC_OK && prints("\"XRC_TGT\": {"));
    CHECK(prints("\"rx_msgs\": 33,") && !prints("\"d2\""));
    CHECK(run("stats") == RC_OK && prints("d1\n") && prints("d2\n"));

    /* It goes in between. */
    fake_call.stats_errno = ENODEV;
    CHECK(run("stats d1 0") == RC_FAILURE && says("d1 (1) has no device 0"));
    CHECK(run("stats --json") == RC_OK && !strcmp(out, "[]\n"));
    fake_call.stats_errno = EPERM;
    CHECK(run("stats") == RC_FAILURE);
    CHECK(says("cannot look up the devices of all domains: the hypervisor"));
    CHECK(run("stats d1") == RC_FAILURE && says("devices of d1 (1): the hyp"));
}

static void test_dump(void)
{
    static const struct vmri_ctl_dump objects[] = {
        { .kind = VMRI_RES_QP, .handle = 0x20002,
          .u.qp = { .type = VMRI_QPT_XRC_INI, .state = VMRI_QPS_RTS,
                    .parked = VMRI_PARKED_RECEIVE, .kernel = 1, .pd = 0x100001,
                    .sq_entries = 64, .sq_posted = 3, .peer_lid = 5 } },
        { .kind = VMRI_RES_PD, .handle = 0x100001, .users = 4 },
        { .kind = VMRI_RES_QP, .handle = 0x20003,
          .u.qp = { .type = 99, .state = 99, .parked = 99 } },
        { .kind = VMRI_RES_MR, .handle = 0x103,
          .u.mr = { .length = 1ULL << 33, .access = 7 } },
        { .kind = VMRI_RES_CQ, .handle = 0x200001,
          .u.cq = { .arm = VMRI_ARM_NEXT, .overflow = 1 } },
        { .kind = VMRI_RES_MCG, .handle = 0xc000,
          .u.mcg = { .mgid = { 0xff, 0x12, 0x40, [15] = 0xa1 }, .qps = 2 } },
    };

    reset();
    CHECK(run("dump d1") == RC_FAILURE && says("d1 (1) has no device"));
    run("attach d1");
    memcpy(fake_call.objects, objects, sizeof(objects));
    fake_call.num_objects = ARRAY_SIZE(objects);
    CHECK(run("dump d1 0") == RC_OK && prints("domain                  d1\n"));
    CHECK(prints("\n  pd   0x100001   users=4\n"));
    CHECK(prints("\n  qp   0x20002    users=0 type=XRC_INI state=RTS "
                 "parked=receive kernel=yes pd=0x100001 send_cq=0 "));
    CHECK(prints(" sq_entries=64 sq_posted=3 "));
    CHECK(prints("\n  qp   0x20003    users=0 type=99 state=99 parked=99 "));
    CHECK(prints(" access=0x7 length=8589934592 "));
    CHECK(prints(" arm=next overflow=yes\n"));
    CHECK(prints("\n  mcg  0xc000     users=0 mgid=ff12:4000:0000:0000:0000:"
                 "0000:0000:00a1 joined=no qps=2\n"));

    CHECK(run("dump d1 0 --json") == RC_OK && prints("\"eqs\": [],"));
    CHECK(prints("\"pds\": [\n    {\n      \"handle\": 1048577,\n"
                 "      \"users\": 4\n    }\n  ],"));
    CHECK(prints("\"type\": \"XRC_INI\",") && prints("\"kernel\": true,"));
    CHECK(prints("\"type\": 99,") && prints("\"length\": 8589934592,"));

    fake_call.dump_errno = EPERM;
    CHECK(run("dump d1") == RC_FAILURE && says("the hypervisor does not let"));
}

static void two_seconds_of_work(void)
{
    fake_call.devices[0].counters.tx_msgs += 20;
    fake_call.devices[0].counters.rx_bytes += 5000000;
    fake_call.devices[0].usage.n[VMRI_RES_QP] = 17;
}

static void attached_anew(void)
{
    fake_call.devices[0].guid++;
    fake_call.devices[0].counters.tx_msgs = 6;
}

static void test_top(void)
{
    reset();
    CHECK(run("top -i 1") == RC_OK && !strncmp(out, "DOMAIN ", 7));
    CHECK(fake_call.clock == 2);

    run("attach d1");
    run("attach d2");
    fake_call.devices[0].counters.tx_msgs = 1000;
    fake_call.on_sleep = two_seconds_of_work;
    CHECK(run("top --iterations 2") == RC_OK);
    CHECK(prints("\nd1                   1  0         10             0"
                 "          0       2500000 "));
    CHECK(prints("      17          0\nd2                   7  0          0"));
    CHECK(!prints("\033") && strstr(strstr(out, "ERR/s") + 1, "ERR/s"));
    CHECK(run("top -b -d 0.5 -i 1 d1") == RC_OK && !prints("d2"));
    CHECK(prints("\nd1                   1  0         40 "));
    CHECK(run("top d2 -i 1 --json") == RC_OK && out[0] == '[');
    CHECK(prints("\"rx_bytes\": 0,") && !prints("\"d1\""));

    fake_call.on_sleep = attached_anew;
    CHECK(run("top -i 1 --delay 1") == RC_OK);
    CHECK(prints("\nd1                   1  0          6 "));
    CHECK(run("top d3") == RC_FAILURE && says("no domain named \"d3\""));
}

int main(void)
{
    test_bad_usage();
    test_help();
    test_no_host();
    test_domains();
    test_attach();
    test_attach_conflicts();
    test_fabric();
    test_route();
    test_rule();
    test_attach_undone();
    test_detach();
    test_sweep();
    test_list();
    test_info();
    test_rate();
    test_limits();
    test_port();
    test_stats();
    test_dump();
    test_top();
    free(out);
    free(err);
    printf("%u passed, %u failed\n", passed, failed);
    return failed != 0;
}
