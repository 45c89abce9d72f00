/* SPDX-License-Identifier: GPL-2.0-only */
/* Devices that come and go: attach, detach, and what is left when it fails. */
#include <errno.h>
#include <string.h>

#include "fake.h"
#include "test.h"
#include "xl-vmri.h"

void test_attach(void)
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

    CHECK(fake_call.attach_uplink == 0);
    CHECK(run("attach d1 id=10 fabric=1 uplink=1") == RC_OK);
    CHECK(fake_call.attach_uplink == 1);

    CHECK(run("--json attach d2 id=3 guid=0123:4567:89ab:cdee") == RC_OK);
    CHECK(!strcmp(out, "{\n  \"domid\": 7,\n  \"id\": 3,\n  \"fabric\": 0,\n"
                       "  \"lid\": 1,\n"
                       "  \"guid\": \"0123:4567:89ab:cdee\"\n}\n"));
}

void test_attach_conflicts(void)
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

    CHECK(run("attach d2 uplink=2") == RC_FAILURE &&
          says("there is no uplink 2"));

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

static void kill_d1(void)
{
    fake_store_remove("/local/domain/1");
    fake_call_destroy_domain(1);
}

/* What goes wrong after the hypercall is undone. */
void test_attach_undone(void)
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

static bool d1_nodes_are_gone(void)
{
    return !fake_store_get(FRONT1) &&
           !fake_store_get("/local/domain/0/backend/vmri/1");
}

static bool d1_is_clean(void)
{
    return !fake_call.num_devices && d1_nodes_are_gone();
}

void test_detach(void)
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

void test_sweep(void)
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

    /* Another xl-vmri removes the same nodes. */
    attach_d1("4");
    kill_d1();
    fake_store.removed_by_others = 2;
    CHECK(run("list") == RC_OK && d1_nodes_are_gone());
    CHECK(!fake_store.removed_by_others);

    /* One that XSM hides stays, as far as we know.  Once it is seen to be gone it goes. */
    attach_d1("4");
    CHECK(run("attach d2") == RC_OK);
    fake_call.hidden_domid = 1;
    CHECK(run("list") == RC_OK && prints("d2") && !prints("d1"));
    CHECK(node_is(BACK1 "/state", "4") && node_is(FRONT1 "/state", "4"));
    CHECK(run("info d1 0") == RC_FAILURE && says("does not let this domain"));
    CHECK(run("detach d1 0") == RC_FAILURE && says("does not let this domain"));
    CHECK(node_is(BACK1 "/state", "4") && fake_call.num_devices == 2);
    fake_call_destroy_domain(1);
    CHECK(run("list") == RC_OK && d1_nodes_are_gone());

    /* What is not ours to understand is left alone. */
    reset();
    fake_store_set("/local/domain/0/backend/vmri/x/0/state", "4");
    fake_store_set("/local/domain/0/backend/vmri/1/x", "4");
    CHECK(run("list") == RC_OK);
    CHECK(fake_store_get("/local/domain/0/backend/vmri/x/0/state"));
    CHECK(fake_store_get("/local/domain/0/backend/vmri/1/x"));
}
