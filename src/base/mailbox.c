/* SPDX-License-Identifier: Apache-2.0 */
/* mailbox.c - a ring under a mutex. The eventfd is written when the ring stops being empty and read
 * when it becomes empty, both under the lock, so "readable" and "not empty" never differ and a busy
 * queue costs no system calls. */
#include "base/mailbox.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

struct qn_mailbox {
    unsigned char *ring;
    size_t item_bytes;
    uint32_t capacity, head, n; /* head: the oldest item; n: items now waiting */
    bool shut;
    int fd;
    pthread_mutex_t lock;
};

qn_code qn_mailbox_open(qn_mailbox **out, size_t item_bytes, uint32_t capacity, qn_err *err)
{
    *out = NULL;
    if (item_bytes == 0 || capacity == 0)
        return qn_fail(err, QN_E_INVAL, "mailbox of %u items of %zu bytes, expected at least 1",
                       capacity, item_bytes);
    qn_mailbox *box = qn_zalloc(sizeof *box);
    if (!box) return qn_fail(err, QN_E_NOMEM, "mailbox");
    pthread_mutex_init(&box->lock, NULL);
    box->item_bytes = item_bytes;
    box->capacity = capacity;
    box->fd = -1;
    box->ring = qn_calloc(capacity, item_bytes);
    if (!box->ring) {
        qn_mailbox_close(box);
        return qn_fail(err, QN_E_NOMEM, "mailbox of %u items of %zu bytes", capacity, item_bytes);
    }
    box->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (box->fd < 0) {
        const int sys = errno;
        qn_mailbox_close(box);
        return qn_fail_sys(err, QN_E_IO, sys, "eventfd of a mailbox");
    }
    *out = box;
    return QN_OK;
}

void qn_mailbox_close(qn_mailbox *box)
{
    if (!box) return;
    if (box->fd >= 0) (void)close(box->fd);
    pthread_mutex_destroy(&box->lock);
    qn_free(box->ring);
    qn_free(box);
}

/* Under the lock. The counter is 0 or 1, so neither call can block or fail. */
static void raise_fd(qn_mailbox *box)
{
    const uint64_t one = 1;
    const ssize_t w = write(box->fd, &one, sizeof one);
    QN_ASSERT(w == (ssize_t)sizeof one);
}

static void lower_fd(qn_mailbox *box)
{
    uint64_t count = 0;
    const ssize_t r = read(box->fd, &count, sizeof count);
    QN_ASSERT(r == (ssize_t)sizeof count);
}

static unsigned char *slot(qn_mailbox *box, uint32_t i)
{
    return box->ring + box->item_bytes * (((uint64_t)box->head + i) % box->capacity);
}

qn_code qn_mailbox_push(qn_mailbox *box, const void *item, qn_err *err)
{
    pthread_mutex_lock(&box->lock);
    const bool shut = box->shut, full = box->n == box->capacity;
    if (!shut && !full) {
        memcpy(slot(box, box->n), item, box->item_bytes);
        if (box->n++ == 0) raise_fd(box);
    }
    pthread_mutex_unlock(&box->lock);
    if (shut) return qn_fail(err, QN_E_CANCELLED, "mailbox is shut");
    if (full) return qn_fail(err, QN_E_AGAIN, "mailbox is full: %u items", box->capacity);
    return QN_OK;
}

qn_code qn_mailbox_pop(qn_mailbox *box, void *item, qn_err *err)
{
    pthread_mutex_lock(&box->lock);
    const bool shut = box->shut, empty = box->n == 0;
    if (!empty) {
        memcpy(item, slot(box, 0), box->item_bytes);
        box->head = (uint32_t)(((uint64_t)box->head + 1) % box->capacity);
        if (--box->n == 0 && !shut) lower_fd(box);
    }
    pthread_mutex_unlock(&box->lock);
    if (!empty) return QN_OK;
    return shut ? qn_fail(err, QN_E_CANCELLED, "mailbox is shut")
                : qn_fail(err, QN_E_AGAIN, "mailbox is empty");
}

qn_code qn_mailbox_wait(qn_mailbox *box, int timeout_ms, qn_err *err)
{
    const uint64_t start = qn_clock_ns();
    int left = timeout_ms;
    for (;;) {
        struct pollfd p = {.fd = box->fd, .events = POLLIN};
        const int n = poll(&p, 1, left);
        if (n > 0) return QN_OK;
        if (n == 0) return qn_fail(err, QN_E_AGAIN, "nothing came within %d ms", timeout_ms);
        if (errno != EINTR) return qn_fail_sys(err, QN_E_IO, errno, "wait for a mailbox");
        if (timeout_ms < 0) continue;
        const uint64_t gone = (qn_clock_ns() - start) / 1000000u;
        left = gone < (uint64_t)timeout_ms ? timeout_ms - (int)gone : 0;
    }
}

void qn_mailbox_shut(qn_mailbox *box)
{
    pthread_mutex_lock(&box->lock);
    if (!box->shut && box->n == 0) raise_fd(box); /* from now on it stays readable */
    box->shut = true;
    pthread_mutex_unlock(&box->lock);
}

int qn_mailbox_fd(const qn_mailbox *box) { return box->fd; }

size_t qn_mailbox_len(qn_mailbox *box)
{
    pthread_mutex_lock(&box->lock);
    const size_t n = box->n;
    pthread_mutex_unlock(&box->lock);
    return n;
}
