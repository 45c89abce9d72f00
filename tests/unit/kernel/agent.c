// SPDX-License-Identifier: GPL-2.0-only
/* The kernel's side of agent.h. */
#include "device.h"
#include "inform.h"

#include "../agent.h"

int kernel_locks;

struct agent {
	struct softib_dev dev;
	struct softib_switch sw;
	struct softib_informs informs;
	struct softib_view told;
};

/* What the agents call, and the size of its structure. */
static const struct {
	unsigned int cmd;
	size_t size;
} calls[] = {
	{ VMRI_OP_dev_query, sizeof(struct vmri_dev_attr) },
	{ VMRI_OP_dev_counters, sizeof(struct vmri_counters) },
	{ VMRI_OP_port_query, sizeof(struct vmri_port_query) },
	{ VMRI_OP_mcg_create, sizeof(struct vmri_mcg) },
	{ VMRI_OP_mcg_destroy, sizeof(struct vmri_mcg) },
	{ VMRI_OP_mcg_query, sizeof(struct vmri_mcg_query) },
	{ VMRI_OP_service_set, sizeof(struct vmri_service) },
	{ VMRI_OP_service_delete, sizeof(struct vmri_service) },
	{ VMRI_OP_service_query, sizeof(struct vmri_service_query) },
	{ VMRI_OP_ctl_list, sizeof(struct vmri_ctl_info) },
	{ VMRI_OP_ctl_port, sizeof(struct vmri_ctl_port) },
};

int softib_call(struct softib_dev *dev, unsigned int cmd, void *arg)
{
	size_t i = 0;

	assert(!kernel_locks);
	while (calls[i].cmd != cmd)
		assert(++i < ARRAY_SIZE(calls));
	return agent_call(dev->guest, cmd, arg, calls[i].size);
}

struct agent *agent_new(void *guest)
{
	struct agent *a = calloc(1, sizeof(*a));

	assert(a);
	a->dev.guest = guest;
	softib_call(&a->dev, VMRI_OP_dev_query, &a->dev.attr);
	strcpy(a->dev.ibdev.node_desc, "agent");
	softib_informs_init(&a->informs);
	softib_view_look(&a->dev, &a->told);
	if (a->dev.attr.flags & VMRI_DEVF_SM) {
		softib_switch_init(&a->sw, &a->dev, a->dev.attr.fabric,
				   a->dev.attr.port_guid);
		softib_switch_refresh(&a->sw);
		a->dev.sm = &a->sw;
	}
	return a;
}

void agent_free(struct agent *a)
{
	softib_view_free(&a->told);
	free(a);
}

void agent_refresh(struct agent *a)
{
	softib_switch_refresh(&a->sw);
}

void agent_release(struct agent *a)
{
	softib_switch_release(&a->sw);
}

bool agent_process(struct agent *a, const uint8_t in[MAD_SIZE],
		   uint8_t out[MAD_SIZE])
{
	struct ib_mad from __aligned(8), to __aligned(8);
	size_t size = sizeof(to);
	u16 pkey_index = 0;
	int ret;

	memcpy(&from, in, sizeof(from));
	ret = softib_process_mad(&a->dev.ibdev, 0, SOFTIB_PORT, NULL, NULL,
				 &from, &to, &size, &pkey_index);
	if (!(ret & IB_MAD_RESULT_REPLY))
		return false;
	memcpy(out, &to, sizeof(to));
	return true;
}

int agent_manage(struct agent *a, const uint8_t in[MAD_SIZE], uint16_t dlid,
		 uint8_t out[MAD_SIZE], uint16_t *from)
{
	struct ib_smp smp __aligned(8), answer __aligned(8);
	enum softib_smp_way way;

	memcpy(&smp, in, sizeof(smp));
	way = softib_switch_answer(&a->sw, &smp, dlid, &answer, from);
	if (way == SOFTIB_SMP_ANSWERED)
		memcpy(out, &answer, sizeof(answer));
	return way;
}

void agent_ask(struct agent *a, struct agent_query *q)
{
	struct softib_sa_query in = {
		.dev = &a->dev,
		.informs = &a->informs,
		.src_qpn = q->src_qpn,
		.method = q->method,
		.trusted = q->trusted,
		.mask = q->mask,
		.data = q->data,
	};

	softib_sa_answer(&in, q->attr);
	q->status = in.status;
	q->count = in.count;
	q->size = in.size;
	q->records = in.records;
}

void agent_forget(struct agent_query *q)
{
	free(q->records);
	q->records = NULL;
}

/* Where notices go that softib_view_advance() tells. */
struct told {
	uint8_t (*to)[NOTICE_SIZE];
	unsigned int nr;
};

static void tell(void *context, const struct softib_notice *notice)
{
	struct told *told = context;

	memcpy(told->to[told->nr++], notice, sizeof(*notice));
}

bool agent_look(struct agent *a, uint8_t notices[][NOTICE_SIZE],
		unsigned int max, unsigned int *nr)
{
	struct told told = { .to = notices };
	struct vmri_dev_attr attr = {};
	struct softib_view now = {};
	bool more = true;

	static_assert(sizeof(struct softib_notice) == NOTICE_SIZE, "");
	if (!softib_call(&a->dev, VMRI_OP_dev_query, &attr) &&
	    !softib_view_look(&a->dev, &now))
		more = softib_view_advance(&a->told, &now, max, &attr, tell,
					   &told);
	softib_view_free(&now);
	*nr = told.nr;
	return more;
}

bool agent_wants(struct agent *a, unsigned int place,
		 const uint8_t notice[NOTICE_SIZE], uint32_t *qpn)
{
	struct softib_notice n;
	struct softib_inform inform;
	bool wants;

	memcpy(&n, notice, sizeof(n));
	wants = softib_inform_wants(&a->informs, place, &n, &inform);
	*qpn = inform.qpn;
	return wants;
}

void agent_give_up(struct agent *a, unsigned int place)
{
	softib_inform_forget(&a->informs, a->informs.inform[place].id);
}
