/* SPDX-License-Identifier: Apache-2.0 */
/* cpu.c - the host as a device: pages for memory, memcpy for copies, nothing to wait for. Work runs
 * on the pool of lanes that the device owns. */
#include "base/cpu.h"
#include "base/alloc.h"
#include "device/device.h"

#include <stdio.h>
#include <string.h>

static void *cpu_alloc(qn_device *d, size_t bytes)
{
    (void)d;
    return qn_pages_alloc(bytes);
}

static void cpu_free(qn_device *d, void *p, size_t bytes)
{
    (void)d;
    qn_pages_free(p, bytes);
}

static qn_code cpu_copy(qn_device *d, void *dst, const void *src, size_t bytes, qn_err *err)
{
    (void)d;
    (void)err; /* host memory: a copy cannot fail */
    if (bytes) memcpy(dst, src, bytes);
    return QN_OK;
}

static qn_code cpu_sync(qn_device *d, qn_err *err)
{
    (void)d;
    (void)err; /* every call above is complete on return */
    return QN_OK;
}

static const qn_device_ops cpu_ops = {"cpu", cpu_alloc, cpu_free, cpu_copy, cpu_copy, cpu_sync};

static const char *widest(uint32_t isa)
{
    if (isa & QN_CPU_AVX512F) return "AVX-512";
    if (isa & QN_CPU_AVX2) return "AVX2";
    if (isa & QN_CPU_NEON) return "NEON";
    return "no vector features";
}

qn_code qn_device_open_cpu(qn_device **out, unsigned lanes, uint32_t isa_mask, qn_err *err)
{
    qn_code rc = QN_OK;
    *out = NULL;
    qn_device *d = qn_zalloc(sizeof *d);
    if (!d) return qn_fail(err, QN_E_NOMEM, "device");
    d->ops = &cpu_ops;
    d->kind = QN_DEVICE_CPU;
    d->isa = qn_cpu_features() & isa_mask;
    QN_TRY_OUT(qn_pool_open(&d->pool, lanes ? lanes : qn_cpu_cores(), err));
    snprintf(d->describe, sizeof d->describe, "cpu, %u lanes, %s", qn_pool_lanes(d->pool),
             widest(d->isa));
    *out = d;
    d = NULL;
out:
    qn_device_close(d);
    return rc;
}

void qn_device_close(qn_device *d)
{
    if (!d) return;
    qn_pool_close(d->pool);
    qn_free(d);
}
