/* SPDX-License-Identifier: GPL-2.0-only */
/* What is only looked at: list, info, stats, dump, top. */
#include <errno.h>
#include <string.h>

#include <vmri/ring.h>

#include "fake.h"
#include "test.h"
#include "xl-vmri.h"

void test_list(void)
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
                       "    \"uplink\": 0,\n"
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

void test_info(void)
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

void test_stats(void)
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

void test_dump(void)
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
        { .kind = VMRI_DUMP_GID, .handle = 3,
          .u.gid = { .gid = { 0xfe, 0x80, [15] = 0x12 } } },
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
    CHECK(prints("\n  gid  0x3        users=0 gid=fe80:0000:0000:0000:0000:"
                 "0000:0000:0012\n"));

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

void test_top(void)
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
