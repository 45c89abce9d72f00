/* SPDX-License-Identifier: GPL-2.0-only */
/* What is set for fabrics and devices: fabric, route, rule, rate, limits, port. */
#include <errno.h>
#include <string.h>

#include "fake.h"
#include "test.h"
#include "xl-vmri.h"

void test_fabric(void)
{
    reset();
    CHECK(run("fabric list") == RC_OK && !strncmp(out, "  FABRIC NAME", 13));
    CHECK(run("fabric create red") == RC_OK && prints("fabric red (1)\n"));
    CHECK(run("fabric create red") == RC_FAILURE && says("a fabric red already"));
    CHECK(run("fabric create 1") == RC_FAILURE && says("fabric 1 already"));
    CHECK(run("fabric create 9") == RC_OK && !strcmp(out, "fabric 9\n"));
    CHECK(run("fabric create blue id=5 link=ib --json") == RC_OK);
    CHECK(prints("\"fabric\": 5,\n  \"name\": \"blue\",\n  \"link\": \"ib\""));

    CHECK(run("attach d1 fabric=blue") == RC_OK && prints("fabric 5, LID 1"));
    CHECK(node_is(BACK1 "/fabric", "5"));
    CHECK(run("attach d1 fabric=green") == RC_FAILURE);
    CHECK(says("there is no fabric green"));
    CHECK(run("attach d2 fabric=12") == RC_OK && prints("fabric 12, LID 1"));
    CHECK(run("fabric list") == RC_OK && prints("\n       5 blue "));
    CHECK(prints(" yes           1  open\n") && prints("\n       9 - "));
    CHECK(run("fabric list -j") == RC_OK && prints("\"name\": null"));

    CHECK(run("fabric delete blue") == RC_FAILURE);
    CHECK(says("devices are attached to fabric blue (5)"));
    CHECK(run("fabric delete green") == RC_FAILURE && says("there is no fabric"));
    CHECK(run("fabric delete 12") == RC_FAILURE && says("12 was not created"));
    CHECK(run("detach d1 0") == RC_OK && run("fabric delete blue") == RC_OK);
    CHECK(run("fabric delete 9 --json") == RC_OK && prints("\"fabric\": 9"));
    CHECK(fake_call.num_fabrics == 1);
}

/* Devices of RoCE fabrics belong to network interfaces. */
void test_roce(void)
{
    reset();
    CHECK(run("attach d2 fabric=3") == RC_OK);
    CHECK(run("fabric create 3 link=roce") == RC_FAILURE);
    CHECK(says("devices of link layer ib are attached to fabric 3"));
    CHECK(run("fabric create red link=roce") == RC_OK);
    CHECK(run("fabric list") == RC_OK && prints(" roce yes "));

    CHECK(run("attach d1 fabric=red") == RC_FAILURE);
    CHECK(says("has no network interface that the device could belong to"));
    fake_store_set(VIF1 "/2/mac", "00:16:3e:00:00:02");
    fake_store_set(VIF1 "/10/mac", "00:16:3e:00:00:10");
    CHECK(run("attach d1 fabric=red") == RC_OK);
    CHECK(node_is(FRONT1 "/mac", "00:16:3e:00:00:02"));
    CHECK(run("detach d1 0") == RC_OK);
    CHECK(run("attach d1 fabric=1 mac=00:16:3e:AB:00:10") == RC_OK);
    CHECK(node_is(FRONT1 "/mac", "00:16:3e:AB:00:10"));
    CHECK(run("detach d1 0") == RC_OK);
    fake_store_set(VIF1 "/2/mac", "00:16:3e:00:00:2");
    CHECK(run("attach d1 fabric=red") == RC_FAILURE);
    CHECK(says("cannot read the MAC address of d1"));

    CHECK(run("attach d1 mac=00:16:3e:00:00:10") == RC_FAILURE);
    CHECK(says("mac is for fabrics of link=roce, which fabric 0 is not"));
    CHECK(run("attach d1") == RC_OK && !node_is(FRONT1 "/mac", ""));
    fake_call.attach_errno = EOPNOTSUPP;
    CHECK(run("attach d1 fabric=red mac=00:16:3e:00:00:10 sm=1") == RC_FAILURE);
    CHECK(says("has no subnet to manage: its link is roce"));

    CHECK(run("rule add red ingress proto=roce") == RC_OK);
    CHECK(run("rule add red ingress proto=ib") == RC_FAILURE);
    CHECK(says("has no devices of that protocol"));
}

void test_route(void)
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

void test_rule(void)
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
    CHECK(run("fabric list") == RC_OK && strstr(out, "0     0\n"));
    CHECK(run("fabric list --json") == RC_OK && strstr(out, "\"closed\": true"));
    CHECK(run("rule flush 1") == RC_OK && !fake_call.num_rules);
    CHECK(run("fabric list") == RC_OK && strstr(out, "0  open\n"));
    CHECK(run("rule list 1 --json") == RC_OK && !strcmp(out, "[]\n"));

    CHECK(run("attach d1 fabric=red group=9") == RC_OK);
    CHECK(fake_call.devices[0].group == 9);
    CHECK(run("info d1 0 -j") == RC_OK && prints("\"group\": 9"));
}

void test_rate(void)
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

void test_limits(void)
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
    CHECK(prints("\"bytes\": 281474976710656,\n    \"services\": 0\n  },\n"
                 "  \"usage\": {\n"));
    CHECK(prints("    \"qps\": 12,\n"));

    CHECK(run("limits d3") == RC_FAILURE && says("no domain named \"d3\""));
    fake_call.limits_errno = ESRCH;
    CHECK(run("limits d1") == RC_FAILURE);
    CHECK(says("cannot look up the limits of d1 (1): it is going away"));
    fake_call.limits_errno = EPERM;
    CHECK(run("limits d1 qps=1") == RC_FAILURE);
    CHECK(says("cannot set the limits of d1 (1): the hypervisor does not let"));
}

void test_port(void)
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
