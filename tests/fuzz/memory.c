/* SPDX-License-Identifier: GPL-2.0-only */
/* Guests' commands about memory: regions, fast ones, windows. */
#include "fuzz.h"

/* Slot 0 has one piece, slot 1 many, without offset; others as they come. */
static void choose_memory(struct actor *a, unsigned int slot, struct input *in,
                          struct vmri_mr_register *arg)
{
    uint32_t page = slot % 2 ? MEMORY_FIRST + RUN_PAGES : MEMORY_FIRST;
    uint32_t nr = RUN_PAGES;

    if ( in )
    {
        arg->offset = take_rare(in, 3) ? take16(in) % PAGE_SIZE : 0;
        if ( take_rare(in, 3) )
            page = take_of(in, PAGES);
        if ( take_rare(in, 3) )
            nr = 1 + take_of(in, LIST_MAX);
    }
    nr = min_t(uint32_t, nr, PAGES - page);
    arg->frames = actor_list(a, page, nr);
    arg->length = nr * PAGE_SIZE - arg->offset;
    arg->iova = 0x10000000ULL * (slot + 1) + arg->offset;
}

long make_mr(struct actor *a, unsigned int slot, struct input *in)
{
    struct object *o = &a->object[MR][slot];
    struct vmri_mr_register arg = {
        .pd = use(a, PD, in),
        .access = VMRI_ACCESS_MR, .key = a->number, .twin = a->twin,
    };
    long rc;

    a->twin = a->number = 0;
    choose_memory(a, slot, in, &arg);
    if ( in && take_rare(in, 3) )
        arg.access = take8(in);
    spoil(in, &arg, sizeof(arg));
    rc = actor_call(a, VMRI_OP_mr_register, &arg, sizeof(arg));
    made(o, rc, arg.key, 0);
    if ( !rc )
        o->iova = arg.iova;
    return rc;
}

long twin_mr(struct actor *a, unsigned int slot, struct input *in)
{
    struct vmri_mr_register mr = { .offset = 0 };
    struct vmri_twin arg = { .kind = VMRI_RES_MR, .pd = use(a, PD, in) };
    long rc;

    choose_memory(a, slot, NULL, &mr);
    arg.u.mr.iova = mr.iova;
    arg.u.mr.length = mr.length;
    arg.u.mr.access = VMRI_ACCESS_MR;
    arg.u.mr.offset = mr.offset;
    arg.u.mr.pages = mr.frames.nr;
    spoil(in, &arg, sizeof(arg));
    rc = actor_call(a, VMRI_OP_twin_create, &arg, sizeof(arg));
    if ( rc == -EINPROGRESS )
        a->twin = arg.handle;
    return rc;
}

long make_fast(struct actor *a, unsigned int slot, struct input *in)
{
    struct vmri_mr_alloc arg = {
        .pd = use(a, PD, in), .max_frames = in ? take_of(in, LIST_MAX) : 8,
    };
    long rc;

    spoil(in, &arg, sizeof(arg));
    rc = actor_call(a, VMRI_OP_mr_alloc, &arg, sizeof(arg));
    return made(&a->object[MR][slot], rc, arg.key, 0);
}

long make_mw(struct actor *a, unsigned int slot, struct input *in)
{
    struct vmri_mw_alloc arg = {
        .pd = use(a, PD, in), .type = 1 + slot % 2,
    };
    long rc;

    spoil(in, &arg, sizeof(arg));
    rc = actor_call(a, VMRI_OP_mw_alloc, &arg, sizeof(arg));
    return made(&a->object[MW][slot], rc, arg.key, 0);
}

long reregister(struct actor *a, unsigned int slot, struct input *in)
{
    struct object *o = &a->object[MR][slot];
    struct vmri_mr_reregister arg = {
        .old_key = o->handle, .flags = take_of(in, 8),
    };
    long rc;

    arg.mr.pd = use(a, PD, in);
    arg.mr.access = take_rare(in, 2) ? take8(in) : VMRI_ACCESS_MR;
    choose_memory(a, take_of(in, SLOTS), in, &arg.mr);
    spoil(in, &arg, sizeof(arg));
    rc = actor_call(a, VMRI_OP_mr_reregister, &arg, sizeof(arg));
    if ( !rc )
    {
        o->handle = arg.mr.key;
        if ( arg.flags & VMRI_REREG_TRANS )
            o->iova = arg.mr.iova;
    }
    return rc;
}
