/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Doubly linked lists with the interface of Xen's <xen/list.h>, as far as VMRI
 * uses it.  An entry that list_del() removed points to nothing, so that a second
 * removal, or a walk over it, faults.
 */
#ifndef VMRI_ENV_LIST_H
#define VMRI_ENV_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list_head {
    struct list_head *next, *prev;
};

#define LIST_HEAD_INIT(name) { &(name), &(name) }
#define LIST_HEAD(name) struct list_head name = LIST_HEAD_INIT(name)

static inline void INIT_LIST_HEAD(struct list_head *head)
{
    head->next = head;
    head->prev = head;
}

static inline void env_list_link(struct list_head *prev, struct list_head *next)
{
    prev->next = next;
    next->prev = prev;
}

static inline void env_list_insert(struct list_head *entry,
                                   struct list_head *prev,
                                   struct list_head *next)
{
    env_list_link(prev, entry);
    env_list_link(entry, next);
}

static inline void list_add(struct list_head *entry, struct list_head *head)
{
    env_list_insert(entry, head, head->next);
}

static inline void list_add_tail(struct list_head *entry, struct list_head *head)
{
    env_list_insert(entry, head->prev, head);
}

static inline void list_del(struct list_head *entry)
{
    env_list_link(entry->prev, entry->next);
    entry->next = NULL;
    entry->prev = NULL;
}

static inline void list_del_init(struct list_head *entry)
{
    env_list_link(entry->prev, entry->next);
    INIT_LIST_HEAD(entry);
}

static inline int list_empty(const struct list_head *head)
{
    return head->next == head;
}

#define list_entry(ptr, type, member) container_of(ptr, type, member)
#define list_first_entry(head, type, member) \
    list_entry((head)->next, type, member)
#define list_first_entry_or_null(head, type, member) \
    (list_empty(head) ? NULL : list_first_entry(head, type, member))
#define list_next_entry(pos, member) \
    list_entry((pos)->member.next, typeof(*(pos)), member)

#define list_for_each_entry(pos, head, member)                          \
    for ( (pos) = list_entry((head)->next, typeof(*(pos)), member);     \
          &(pos)->member != (head);                                     \
          (pos) = list_next_entry(pos, member) )

#define list_for_each_entry_safe(pos, n, head, member)                  \
    for ( (pos) = list_entry((head)->next, typeof(*(pos)), member),     \
          (n) = list_next_entry(pos, member);                           \
          &(pos)->member != (head);                                     \
          (pos) = (n), (n) = list_next_entry(n, member) )

#endif /* VMRI_ENV_LIST_H */
