/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A port that dom0 changes: what it then tells, and the events, one of a kind
 * for what is another than before, and none for what is not.
 */
#include "model.h"
#include "internal.h"

#undef memcpy
#undef memset

static uint16_t sm_lid(const struct side *s)
{
    return s->port.sm_lid ? s->port.sm_lid : s->guest->lid;
}

void port_begin(struct side *s)
{
    s->port = (struct vmri_ctl_port){
        .domid = env_domid(s->guest->domain), .dev_id = s->guest->dev,
        .state = VMRI_PORT_ACTIVE,
    };
    s->port_due = 0;
}

static void change(struct side *s, uint32_t mask, uint8_t state, uint16_t sm)
{
    const uint16_t old_sm = sm_lid(s);
    struct vmri_ctl_port arg = s->port;

    arg.mask = mask;
    arg.state = state;
    arg.sm_lid = sm;
    CHECK_EQ(dom0_call(VMRI_OP_ctl_port, &arg, sizeof(arg)), 0);

    if ( (mask & VMRI_PORTA_STATE) && state != s->port.state )
    {
        s->port_due |= 1U << (state == VMRI_PORT_ACTIVE
                              ? VMRI_EVENT_PORT_ACTIVE : VMRI_EVENT_PORT_ERR);
        s->port.state = state;
    }
    if ( mask & VMRI_PORTA_SM_LID )
        s->port.sm_lid = sm;
    if ( sm_lid(s) != old_sm )
        s->port_due |= 1U << VMRI_EVENT_SM_CHANGE;
    if ( mask & VMRI_PORTA_REREGISTER )
        s->port_due |= 1U << VMRI_EVENT_CLIENT_REREGISTER;
    CHECK_EQ(arg.state, s->port.state);
    CHECK_EQ(arg.sm_lid, sm_lid(s));
    CHECK_EQ(arg.lid, s->guest->lid);
}

/* Only when nothing waits: the port is down for a moment. */
void port_round(struct side *s)
{
    struct rng *rng = &s->cell->rng;
    unsigned int n = 1 + rng_below(rng, 3), i;

    settle(s->cell);
    for ( i = 0; i < LINKS; i++ )
        if ( link_waits(&s->cell->side[0].qp[i]) )
            return;
    while ( n-- )
    {
        uint32_t mask = rng_below(rng, 2) * VMRI_PORTA_SM_LID |
                        rng_below(rng, 2) * VMRI_PORTA_REREGISTER |
                        rng_below(rng, 2) * VMRI_PORTA_STATE;
        uint16_t sm = (uint16_t)(rng_below(rng, 3) * s->guest->lid);

        change(s, mask, rng_percent(rng, 50) ? VMRI_PORT_ACTIVE
                                             : VMRI_PORT_DOWN, sm);
        settle(s->cell);
    }
    change(s, VMRI_PORTA_STATE, VMRI_PORT_ACTIVE, 0);
    settle(s->cell);
}

bool port_event(struct side *s, const struct vmri_event *ev)
{
    const uint32_t bit = 1U << ev->type;

    if ( ev->id || !(s->port_due & bit) )
        return false;
    s->port_due &= ~bit;
    return true;
}
