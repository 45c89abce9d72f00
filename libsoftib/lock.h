/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A lock that is not taken by objects of which the program has promised that one
 * thread uses them at a time: those of a thread domain, and single-threaded CQs.
 */
#ifndef __SOFTIB_LOCK_H__
#define __SOFTIB_LOCK_H__

#include <pthread.h>
#include <stdbool.h>

struct softib_lock {
	pthread_spinlock_t	spin;
	bool			needed;
};

static inline void softib_lock_init(struct softib_lock *lock, bool needed)
{
	lock->needed = needed;
	pthread_spin_init(&lock->spin, PTHREAD_PROCESS_PRIVATE);
}

static inline void softib_lock_destroy(struct softib_lock *lock)
{
	pthread_spin_destroy(&lock->spin);
}

static inline void softib_lock(struct softib_lock *lock)
{
	if (lock->needed)
		pthread_spin_lock(&lock->spin);
}

static inline void softib_unlock(struct softib_lock *lock)
{
	if (lock->needed)
		pthread_spin_unlock(&lock->spin);
}

#endif /* __SOFTIB_LOCK_H__ */
