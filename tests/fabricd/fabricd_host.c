/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A host: VMRI in the fake machine, and a socket at which dom0's hypercalls come in.
 * Guests are told what to do by lines of words:
 *
 *   attach DOMID FABRIC        give it a device, with an uplink, and have it used
 *   attach-local DOMID FABRIC  one without
 *   detach DOMID
 *   gid DOMID INDEX ADDRESS    claim a GID, as its interface's addresses are
 *
 * host SOCKET: until it is killed; it lives as long as its Xen would.
 */
#include "nic.h"
#include "wire.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#undef memcpy
#undef memset

static struct guest *guests[ENV_DOMAINS];
static uint32_t uplink;

void test_over(void)
{
    exit(1);
}

static long attach(unsigned int domid, uint32_t fabric, uint32_t by)
{
    struct vmri_ctl_attach arg = { .domid = domid, .fabric = fabric, .uplink = by };
    long rc;

    env_test_domain(domid);
    rc = dom0_call(VMRI_OP_ctl_attach, &arg, sizeof(arg));
    if ( rc )
        return rc;
    guests[domid] = guest_bare(domid);
    guest_start(guests[domid]);
    return 0;
}

static long detach(unsigned int domid)
{
    guests[domid] = NULL;
    return dom0_detach(domid, 0);
}

static long set_gid(unsigned int domid, uint32_t index, const char *text)
{
    struct vmri_gid_set arg = { .index = index };

    if ( inet_pton(AF_INET6, text, arg.gid) != 1 || !guests[domid] )
        return -EINVAL;
    return guest_call(guests[domid], VMRI_OP_gid_set, &arg, sizeof(arg));
}

static long obey(const char *line)
{
    char what[16], address[64];
    unsigned int domid, number;
    int words = sscanf(line, "%15s %u %u %63s", what, &domid, &number, address);

    if ( words < 2 || !domid || domid >= ENV_DOMAINS )
        return -EINVAL;
    if ( words == 3 && !strcmp(what, "attach") )
        return attach(domid, number, uplink);
    if ( words == 3 && !strcmp(what, "attach-local") )
        return attach(domid, number, 0);
    if ( words == 2 && !strcmp(what, "detach") )
        return detach(domid);
    if ( words == 4 && !strcmp(what, "gid") )
        return set_gid(domid, number, address);
    return -EINVAL;
}

/* One packet and its answer; false: the program has gone. */
static bool serve(int fd)
{
    struct wire_call call;
    struct wire_answer answer = { .rc = -EINVAL };
    ssize_t n = recv(fd, &call, sizeof(call), 0);

    if ( n <= 0 )
        return false;
    if ( (size_t)n < offsetof(struct wire_call, args) || call.size > WIRE_MAX )
        return false;
    if ( call.cmd == WIRE_SAY )
    {
        call.args[WIRE_MAX - 1] = '\0';
        answer.rc = obey((const char *)call.args);
    }
    else
        answer.rc = dom0_call(call.cmd, call.args, call.size);
    memcpy(answer.args, call.args, call.size);
    return send(fd, &answer, offsetof(struct wire_answer, args) + call.size,
                MSG_NOSIGNAL) > 0;
}

static int listen_at(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if ( fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
         listen(fd, 8) )
    {
        perror(path);
        exit(1);
    }
    return fd;
}

/* Programs come and go; each call is short. */
static void serve_all(int listener)
{
    int fds[16], nr = 0, i;

    for ( ; ; )
    {
        fd_set set;
        int most = listener;

        FD_ZERO(&set);
        FD_SET(listener, &set);
        for ( i = 0; i < nr; i++ )
        {
            FD_SET(fds[i], &set);
            most = max(most, fds[i]);
        }
        if ( select(most + 1, &set, NULL, NULL, NULL) < 0 )
            exit(1);
        for ( i = nr - 1; i >= 0; i-- )
            if ( FD_ISSET(fds[i], &set) && !serve(fds[i]) )
            {
                close(fds[i]);
                fds[i] = fds[--nr];
            }
        if ( FD_ISSET(listener, &set) && nr < 16 )
            fds[nr++] = accept(listener, NULL, NULL);
    }
}

int main(int argc, char **argv)
{
    if ( argc != 2 )
        return 2;
    world_begin();
    uplink = nic_new()->uplink;
    serve_all(listen_at(argv[1]));
    return 0;
}
