/* SPDX-License-Identifier: Apache-2.0 */
/* device.h - where ops run: memory and copies of one device.
 *
 * The CPU is a device whose memory is the host's and whose lanes are a pool; CUDA fills the same
 * table. Everything above asks the table, so a plan is built the same way for every device.
 *
 * Owner:  the runtime opens devices; buffers belong to whoever allocated them.
 * Thread: alloc and free from any thread; the rest from the engine thread.
 */
#ifndef QN_DEVICE_DEVICE_H
#define QN_DEVICE_DEVICE_H
#include "base/lanes.h"
#include "base/status.h"

typedef enum qn_device_kind { QN_DEVICE_CPU, QN_DEVICE_CUDA, QN_DEVICE_KINDS } qn_device_kind;

typedef struct qn_device qn_device;

typedef struct qn_device_ops { /* one table a kind of device */
    const char *name;
    /* Zeroed memory aligned to 4096, owned (free with the same bytes). NULL: none left. */
    void *(*alloc)(qn_device *d, size_t bytes);
    void (*free)(qn_device *d, void *p, size_t bytes);
    /* Host to device, device to host; complete on return. */
    qn_code (*upload)(qn_device *d, void *dst, const void *src, size_t bytes, qn_err *err);
    qn_code (*download)(qn_device *d, void *dst, const void *src, size_t bytes, qn_err *err);
    /* Wait for all that was started; tells the device's first error. */
    qn_code (*sync)(qn_device *d, qn_err *err);
} qn_device_ops;

struct qn_device {
    const qn_device_ops *ops;
    qn_device_kind kind;
    qn_pool *pool; /* CPU: the lanes; NULL elsewhere */
    uint32_t isa;  /* CPU: feature bits that kernels may use */
    char describe[96];
};

/* The CPU with `lanes` lanes (0: one per physical core that this process may use) and the features
 * in `isa_mask` that the machine has. Owned (qn_device_close). */
qn_code qn_device_open_cpu(qn_device **out, unsigned lanes, uint32_t isa_mask, qn_err *err);
void qn_device_close(qn_device *d); /* NULL is fine */

#endif
