/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mailbox.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "base/alloc.h"
#include "qt.h"

typedef struct note {
    uint32_t who, number;
} note;

static bool readable(qn_mailbox *box)
{
    struct pollfd p = {.fd = qn_mailbox_fd(box), .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static void items_come_out_in_order(qt *t)
{
    qn_mailbox *box = NULL;
    note n = {0, 0};
    QT_EQ(t, qn_mailbox_open(&box, sizeof n, 3, NULL), QN_OK);
    for (uint32_t round = 0; round < 10; round++) { /* the ring wraps */
        QT_OK(t, !readable(box));
        QT_EQ(t, qn_mailbox_pop(box, &n, NULL), QN_E_AGAIN);
        for (uint32_t i = 0; i < 3; i++)
            QT_EQ(t, qn_mailbox_push(box, &(note){round, i}, NULL), QN_OK);
        QT_EQ(t, qn_mailbox_push(box, &n, NULL), QN_E_AGAIN);
        QT_EQ(t, qn_mailbox_len(box), 3);
        for (uint32_t i = 0; i < 3; i++) {
            QT_OK(t, readable(box));
            QT_EQ(t, qn_mailbox_pop(box, &n, NULL), QN_OK);
            QT_OK(t, n.who == round && n.number == i);
        }
        if (round % 2) { /* start the next round from another slot */
            QT_EQ(t, qn_mailbox_push(box, &n, NULL), QN_OK);
            QT_EQ(t, qn_mailbox_pop(box, &n, NULL), QN_OK);
        }
    }
    qn_mailbox_close(box);
}

static void shut_lets_the_rest_out_and_nothing_in(qt *t)
{
    qn_mailbox *box = NULL;
    note n = {0, 0};
    QT_EQ(t, qn_mailbox_open(&box, sizeof n, 2, NULL), QN_OK);
    QT_EQ(t, qn_mailbox_push(box, &(note){1, 2}, NULL), QN_OK);
    qn_mailbox_shut(box);
    qn_mailbox_shut(box);
    QT_EQ(t, qn_mailbox_push(box, &n, NULL), QN_E_CANCELLED);
    QT_EQ(t, qn_mailbox_wait(box, 0, NULL), QN_OK);
    QT_OK(t, qn_mailbox_pop(box, &n, NULL) == QN_OK && n.who == 1 && n.number == 2);
    QT_EQ(t, qn_mailbox_wait(box, 0, NULL), QN_OK); /* shut counts as news */
    QT_OK(t, readable(box));
    QT_EQ(t, qn_mailbox_pop(box, &n, NULL), QN_E_CANCELLED);
    QT_EQ(t, qn_mailbox_pop(box, &n, NULL), QN_E_CANCELLED);
    qn_mailbox_close(box);
}

static void a_shut_empty_mailbox_is_readable(qt *t)
{
    qn_mailbox *box = NULL;
    QT_EQ(t, qn_mailbox_open(&box, 1, 1, NULL), QN_OK);
    QT_EQ(t, qn_mailbox_wait(box, 1, NULL), QN_E_AGAIN);
    qn_mailbox_shut(box);
    QT_EQ(t, qn_mailbox_wait(box, -1, NULL), QN_OK);
    qn_mailbox_close(box);
}

enum { PRODUCERS = 4, EACH = 2000 };

typedef struct producer {
    qn_mailbox *box;
    uint32_t who;
} producer;

static void *produce(void *arg)
{
    const producer *p = arg;
    for (uint32_t i = 0; i < EACH;) {
        if (qn_mailbox_push(p->box, &(note){p->who, i}, NULL) == QN_OK)
            i++;
        else
            sched_yield();
    }
    return NULL;
}

static void four_producers_lose_and_reorder_nothing(qt *t)
{
    qn_mailbox *box = NULL;
    pthread_t th[PRODUCERS];
    producer p[PRODUCERS];
    uint32_t next[PRODUCERS] = {0}, got = 0, wrong = 0;
    QT_EQ(t, qn_mailbox_open(&box, sizeof(note), 16, NULL), QN_OK);
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        p[i] = (producer){box, i};
        QT_EQ(t, pthread_create(&th[i], NULL, produce, &p[i]), 0);
    }
    while (got < PRODUCERS * EACH && qn_mailbox_wait(box, -1, NULL) == QN_OK) {
        note n = {0, 0};
        while (qn_mailbox_pop(box, &n, NULL) == QN_OK) {
            got++;
            if (n.who >= PRODUCERS || n.number != next[n.who]++) wrong++;
        }
    }
    for (uint32_t i = 0; i < PRODUCERS; i++) pthread_join(th[i], NULL);
    QT_EQ(t, got, PRODUCERS * EACH);
    QT_EQ(t, wrong, 0);
    QT_OK(t, !readable(box));
    qn_mailbox_close(box);
}

static void *shut_it(void *arg)
{
    qn_mailbox_shut(arg);
    return NULL;
}

static void shut_wakes_a_waiting_consumer(qt *t)
{
    for (int i = 0; i < 50; i++) {
        qn_mailbox *box = NULL;
        pthread_t th;
        note n;
        QT_EQ(t, qn_mailbox_open(&box, sizeof n, 1, NULL), QN_OK);
        QT_EQ(t, pthread_create(&th, NULL, shut_it, box), 0);
        QT_EQ(t, qn_mailbox_wait(box, -1, NULL), QN_OK);
        QT_EQ(t, qn_mailbox_pop(box, &n, NULL), QN_E_CANCELLED);
        pthread_join(th, NULL);
        qn_mailbox_close(box);
    }
}

static void refuses_impossible_sizes(qt *t)
{
    qn_mailbox *box = NULL;
    QT_EQ(t, qn_mailbox_open(&box, 0, 1, NULL), QN_E_INVAL);
    QT_EQ(t, qn_mailbox_open(&box, 1, 0, NULL), QN_E_INVAL);
    QT_EQ(t, qn_mailbox_open(&box, SIZE_MAX / 2, 3, NULL), QN_E_NOMEM);
    QT_OK(t, !box);
    qn_mailbox_close(NULL);
}

static void open_survives_every_failed_allocation(qt *t)
{
    const size_t before = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    for (size_t n = 0; rc != QN_OK && n < 16; n++) {
        qn_mailbox *box = NULL;
        qn_alloc_fail_after(n);
        rc = qn_mailbox_open(&box, 8, 8, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK || (rc == QN_E_NOMEM && box == NULL));
        qn_mailbox_close(box);
        QT_OK(t, qn_alloc_live() == before);
    }
    QT_OK(t, rc == QN_OK);
}

QT_MAIN(QT(items_come_out_in_order), QT(shut_lets_the_rest_out_and_nothing_in),
        QT(a_shut_empty_mailbox_is_readable), QT(four_producers_lose_and_reorder_nothing),
        QT(shut_wakes_a_waiting_consumer), QT(refuses_impossible_sizes),
        QT(open_survives_every_failed_allocation))
