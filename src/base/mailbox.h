/* SPDX-License-Identifier: Apache-2.0 */
/* mailbox.h - where threads meet: a bounded queue of fixed-size items with a file descriptor.
 *
 * Many producers, one consumer. Items are copied. The descriptor is readable while there is
 * something to take, so a poll loop can wait for mailboxes and sockets together.
 *
 * Owner:  whoever opened it closes it, after the last producer is done.
 * Thread: push and shut by any; pop, wait, fd by the consumer; open and close by the owner.
 */
#ifndef QN_BASE_MAILBOX_H
#define QN_BASE_MAILBOX_H
#include "base/status.h"

typedef struct qn_mailbox qn_mailbox;

/* capacity items of item_bytes each, both > 0. Errors: INVAL, NOMEM, IO. */
qn_code qn_mailbox_open(qn_mailbox **out, size_t item_bytes, uint32_t capacity, qn_err *err);
/* Frees it with all that is left inside; drain first if items own something. NULL is fine. */
void qn_mailbox_close(qn_mailbox *box);

/* Copies one item in. Errors: AGAIN when full, CANCELLED after shut. Never blocks. */
qn_code qn_mailbox_push(qn_mailbox *box, const void *item, qn_err *err);
/* Copies the oldest item out. Errors: AGAIN when empty, CANCELLED when empty and shut. */
qn_code qn_mailbox_pop(qn_mailbox *box, void *item, qn_err *err);
/* Waits until there is an item or the mailbox is shut (QN_OK), or timeout_ms has passed (AGAIN).
 * timeout_ms < 0 waits for ever, 0 only looks. */
qn_code qn_mailbox_wait(qn_mailbox *box, int timeout_ms, qn_err *err);
/* No more pushes; the consumer drains what is there. Wakes the consumer. May be called twice. */
void qn_mailbox_shut(qn_mailbox *box);
/* Readable (poll) while an item waits or the mailbox is shut. Never read or close it. */
int qn_mailbox_fd(const qn_mailbox *box);
size_t qn_mailbox_len(qn_mailbox *box); /* items now waiting */

#endif
