/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Verbs that are called with one argument wrong at a time.  What is wrong of an
 * argument is not listed but follows from what kind it is.
 */
#ifndef BADARGS_H
#define BADARGS_H

#include "bench.h"

/* What the verbs are called with when nothing is wrong. */
struct desk {
	struct bench t;
	struct ibv_device_attr attr;
	struct ibv_srq *srq;
};

enum wrong_kind {
	WRONG_ABOVE,	/* one more than the limit, and the largest there are */
	WRONG_VALUE,	/* the limit itself */
	WRONG_BIT,	/* each one more bit of which the limit has none */
	WRONG_MISSING,	/* each one bit less of those that the limit has */
	WRONG_HANDLE,	/* of no object, or of an object of another kind */
};

/* An argument: where it stands in the verb's structure of arguments. */
struct argument {
	const char *name;
	enum wrong_kind kind;
	int want;			/* errno */
	size_t offset;
	size_t size;			/* bytes: 1, 2, 4 or 8 */
	uint64_t limit;
	uint32_t *handle;		/* of WRONG_HANDLE: it stands here */
};

#define ARGUMENT(type, field, wrong, lim, error) {			\
	.name = #field,							\
	.kind = wrong,							\
	.want = error,							\
	.offset = offsetof(type, field),				\
	.size = sizeof(((type *)NULL)->field),				\
	.limit = lim,							\
}

#define HANDLE(what, object) {						\
	.name = what,							\
	.kind = WRONG_HANDLE,						\
	.want = EINVAL,							\
	.handle = &(object)->handle,					\
}

/*
 * Calls a verb and undoes what it did.  Returns 0 or the errno; the arguments are
 * its own to change.
 */
typedef int verb_fn(struct desk *b, void *args);

/*
 * Call the verb with the right arguments, which must succeed, and then with each
 * argument wrong in each way.  A check for the verb, and for each argument.
 */
void try_verb(struct desk *b, const char *verb, verb_fn *call,
	      const void *right, size_t size,
	      const struct argument *arguments, unsigned int nr);

#define TRY(b, verb, call, right, arguments)				\
	try_verb(b, verb, call, right, sizeof(*(right)), arguments,	\
		 sizeof(arguments) / sizeof((arguments)[0]))

/* The parts of vmri-badargs. */
void bad_queries(struct desk *b);
void bad_memory(struct desk *b);
void bad_queues(struct desk *b);
void bad_queue_pairs(struct desk *b);
void bad_transitions(struct desk *b);
void bad_requests(struct desk *b);
void not_offered(struct desk *b);

#endif /* BADARGS_H */
