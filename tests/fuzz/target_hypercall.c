/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Target: the hypercall entry.  Any command, any device, any bytes as argument,
 * anywhere in the guest's memory or outside of it; continuations that nobody
 * began; failures of what the hypervisor asks its surroundings for.
 */
#include "fuzz.h"

static const uint16_t commands[] = {
    VMRI_OP_version, VMRI_OP_schedule, VMRI_OP_dev_create, VMRI_OP_dev_destroy,
    VMRI_OP_dev_query, VMRI_OP_dev_counters, VMRI_OP_pd_create,
    VMRI_OP_pd_destroy, VMRI_OP_xrcd_create, VMRI_OP_xrcd_destroy,
    VMRI_OP_eq_create, VMRI_OP_eq_destroy, VMRI_OP_eq_poll, VMRI_OP_cq_create,
    VMRI_OP_cq_destroy, VMRI_OP_cq_resize, VMRI_OP_srq_create,
    VMRI_OP_srq_destroy, VMRI_OP_srq_modify, VMRI_OP_srq_query,
    VMRI_OP_srq_schedule, VMRI_OP_qp_create, VMRI_OP_qp_destroy,
    VMRI_OP_qp_modify, VMRI_OP_qp_query, VMRI_OP_mr_register,
    VMRI_OP_mr_deregister, VMRI_OP_mr_reregister, VMRI_OP_mr_alloc,
    VMRI_OP_mw_alloc, VMRI_OP_mw_free, VMRI_OP_mcg_create, VMRI_OP_mcg_destroy,
    VMRI_OP_mcg_attach, VMRI_OP_mcg_detach, VMRI_OP_ctl_attach,
    VMRI_OP_ctl_detach, VMRI_OP_ctl_list, VMRI_OP_ctl_limits,
    VMRI_OP_ctl_stats, VMRI_OP_ctl_port, VMRI_OP_ctl_dump, VMRI_OP_mcg_query,
    VMRI_OP_dev_describe, VMRI_OP_port_query, VMRI_OP_ctl_fabric_create,
    VMRI_OP_ctl_fabric_delete, VMRI_OP_ctl_fabric_list, VMRI_OP_ctl_rate,
    VMRI_OP_ctl_rule_add, VMRI_OP_ctl_rule_del, VMRI_OP_ctl_rule_list,
    VMRI_OP_ctl_route_add, VMRI_OP_ctl_route_del, VMRI_OP_ctl_route_list,
    VMRI_OP_fabric_watch, VMRI_OP_gid_set, VMRI_OP_service_set,
    VMRI_OP_service_delete, VMRI_OP_service_query,
};

static unsigned int take_command(struct input *in)
{
    unsigned int i = take_of(in, ARRAY_SIZE(commands) + 4);
    unsigned int cmd;

    if ( i < ARRAY_SIZE(commands) )
        cmd = commands[i];
    else if ( i == ARRAY_SIZE(commands) )
        cmd = take16(in);
    else
        cmd = take32(in);

    return take_rare(in, 16) ? cmd | VMRI_CONTINUE : cmd;
}

/* A switch of the surroundings that stays until the next one. */
static void take_trouble(struct input *in)
{
    unsigned int what = take_of(in, ENV_FAIL_NR + 3);

    if ( what < ENV_FAIL_NR )
        env_test_fail(what, take_of(in, 8));
    else if ( what == ENV_FAIL_NR )
        env_test_preempt(take_of(in, 4));
    else if ( what == ENV_FAIL_NR + 1 )
        env_test_deny(take_of(in, 2));
    else
        env_test_advance(take_number(in));
}

/* The argument: bytes of the input, in which a list of frames may be named. */
static void take_argument(struct actor *a, struct input *in, uint8_t *arg,
                          size_t size)
{
    unsigned int how = take8(in), i, n = take_of(in, 128);

    memset(arg, 0, size);
    for ( i = 0; i < n; i++ )
        arg[i] = take8(in);
    if ( how & 1 )
    {
        struct vmri_frames frames = actor_list(a, take_of(in, PAGES),
                                               take_of(in, LIST_MAX));

        /* Where the structures have it. */
        memcpy(arg + (how & 2 ? 8 : 0), &frames, sizeof(frames));
    }
}

void target_run(struct input *in)
{
    unsigned int i;

    actor_attach(&actors[0], 1);
    actor_attach(&actors[1], 1);
    make_pd(&actors[0], 0);
    make_eq(&actors[0], 0, NULL);
    make_cq(&actors[0], 0, NULL);
    make_qp(&actors[0], 0, VMRI_QPT_RC, 0, NULL);

    while ( in->left )
    {
        unsigned int who = take_of(in, 4);
        unsigned int cmd = take_command(in);
        uint8_t arg[1024];
        uint32_t ticket;

        if ( take_rare(in, 4) )
            take_trouble(in);

        /* Without a continuation the call is one that the guest may make. */
        ticket = cmd & VMRI_CONTINUE ? take_of(in, 8) : 0;
        take_argument(&actors[who % ACTORS], in, arg, sizeof(arg));
        if ( who == ACTORS )
            dom0_call(cmd & ~VMRI_CONTINUE, arg, sizeof(arg));
        else if ( take_rare(in, 4) )
            actor_call_value(&actors[who], cmd & ~VMRI_CONTINUE,
                             take_number(in));
        else if ( ticket )
            actor_call_once(&actors[who], cmd, arg, sizeof(arg), &ticket);
        else
            actor_call(&actors[who], cmd & ~VMRI_CONTINUE, arg, sizeof(arg));
    }
    for ( i = 0; i < ACTORS; i++ )
        actors[i].trusts = true;
}
