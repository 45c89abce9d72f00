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

#include "fake.h"
#include "test.h"
#include "xl-vmri.h"

int xl_vmri_main(int argc, char **argv);

static unsigned int passed, failed;
char *out, *err;

void check(bool good, const char *what, const char *file, int line)
{
    if (good) {
        passed++;
        return;
    }
    failed++;
    printf("%s:%d: %s\n  stdout: %s\n  stderr: %s\n", file, line, what,
           out ? out : "", err ? err : "");
}

int run(const char *line)
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

bool says(const char *text)
{
    return strstr(err, text);
}

bool prints(const char *text)
{
    return strstr(out, text);
}

bool node_is(const char *path, const char *value)
{
    const char *found = fake_store_get(path);

    return found && !strcmp(found, value);
}

void reset(void)
{
    fake_call_reset();
    fake_store_reset();
    fake_store_set("/local/domain/0/name", "Domain-0");
    fake_store_set("/local/domain/1/name", "d1");
    fake_store_set("/local/domain/7/name", "d2");
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

int main(void)
{
    test_bad_usage();
    test_help();
    test_no_host();
    test_domains();
    test_attach();
    test_attach_conflicts();
    test_fabric();
    test_roce();
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
