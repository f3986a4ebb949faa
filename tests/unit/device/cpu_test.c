/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_test.c - the host as a device. */
#include "base/alloc.h"
#include "base/cpu.h"
#include "device/device.h"
#include "qt.h"

#include <string.h>

static void opens_with_the_lanes_asked_for(qt *t)
{
    for (unsigned lanes = 1; lanes <= 3; lanes++) {
        qn_device *d = NULL;
        QT_EQ(t, qn_device_open_cpu(&d, lanes, UINT32_MAX, NULL), QN_OK);
        QT_EQ(t, qn_pool_lanes(d->pool), lanes);
        QT_EQ(t, d->kind, QN_DEVICE_CPU);
        QT_STR(t, d->ops->name, "cpu");
        qn_device_close(d);
    }
}

static void zero_lanes_means_one_a_core(qt *t)
{
    qn_device *d = NULL;
    QT_EQ(t, qn_device_open_cpu(&d, 0, 0, NULL), QN_OK);
    QT_EQ(t, qn_pool_lanes(d->pool), qn_cpu_cores());
    qn_device_close(d);
}

static void features_are_those_of_the_machine_and_the_mask(qt *t)
{
    qn_device *d = NULL;
    QT_EQ(t, qn_device_open_cpu(&d, 1, UINT32_MAX, NULL), QN_OK);
    QT_EQ(t, d->isa, qn_cpu_features());
    QT_OK(t, d->describe[0] != '\0');
    qn_device_close(d);
    QT_EQ(t, qn_device_open_cpu(&d, 1, 0, NULL), QN_OK);
    QT_EQ(t, d->isa, 0);
    QT_STR(t, d->describe, "cpu, 1 lanes, no vector features");
    qn_device_close(d);
}

static void refuses_too_many_lanes(qt *t)
{
    qn_device *d = NULL;
    qn_err err = {0};
    QT_EQ(t, qn_device_open_cpu(&d, QN_LANES_MAX + 1, 0, &err), QN_E_INVAL);
    QT_OK(t, d == NULL && err.msg[0] != '\0');
}

static void memory_is_zeroed_and_page_aligned(qt *t)
{
    qn_device *d = NULL;
    QT_EQ(t, qn_device_open_cpu(&d, 1, 0, NULL), QN_OK);
    const size_t before = qn_alloc_live_bytes();
    unsigned char *p = d->ops->alloc(d, 10000);
    if (QT_OK(t, p != NULL)) {
        QT_EQ(t, (uintptr_t)p % 4096, 0);
        unsigned sum = 0;
        for (size_t i = 0; i < 10000; i++) sum |= p[i];
        QT_EQ(t, sum, 0);
    }
    d->ops->free(d, p, 10000);
    QT_EQ(t, qn_alloc_live_bytes(), before);
    qn_device_close(d);
}

static void copies_there_and_back(qt *t)
{
    qn_device *d = NULL;
    char back[16] = "";
    QT_EQ(t, qn_device_open_cpu(&d, 1, 0, NULL), QN_OK);
    void *p = d->ops->alloc(d, 16);
    QT_EQ(t, d->ops->upload(d, p, "grain and flour", 16, NULL), QN_OK);
    QT_EQ(t, d->ops->download(d, back, p, 16, NULL), QN_OK);
    QT_EQ(t, d->ops->sync(d, NULL), QN_OK);
    QT_STR(t, back, "grain and flour");
    d->ops->free(d, p, 16);
    qn_device_close(d);
}

static void open_survives_every_failed_allocation(qt *t)
{
    const size_t before = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    for (size_t n = 0; rc != QN_OK && n < 64; n++) {
        qn_device *d = NULL;
        qn_alloc_fail_after(n);
        rc = qn_device_open_cpu(&d, 2, 0, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK || (rc == QN_E_NOMEM && d == NULL));
        qn_device_close(d);
        QT_EQ(t, qn_alloc_live(), before);
    }
    QT_EQ(t, rc, QN_OK);
}

QT_MAIN(QT(opens_with_the_lanes_asked_for), QT(zero_lanes_means_one_a_core),
        QT(features_are_those_of_the_machine_and_the_mask), QT(refuses_too_many_lanes),
        QT(memory_is_zeroed_and_page_aligned), QT(copies_there_and_back),
        QT(open_survives_every_failed_allocation))
