/* SPDX-License-Identifier: Apache-2.0 */
/* probe.h - facts about this machine, from what the system's files say and from one measurement.
 *
 * A fact that cannot be had is 0 or "": nothing here fails a command. `root` stands in front of every
 * path ("" for the real system), so tests bring machines of their own.
 *
 * Thread: any; qn_probe_bandwidth starts threads and joins them.
 */
#ifndef QN_CLI_PROBE_H
#define QN_CLI_PROBE_H
#include "base/status.h"

enum { QN_PROBE_TEXT = 128, QN_PROBE_CARDS = 16 };

typedef struct qn_machine {
    char system[QN_PROBE_TEXT], kernel[QN_PROBE_TEXT], cpu[QN_PROBE_TEXT];
    unsigned threads, cores, sockets, nodes; /* online in the whole machine */
    uint64_t l1d_bytes, l2_bytes;            /* of one core */
    uint64_t l3_bytes;                       /* of the whole machine */
    uint64_t memory_bytes, available_bytes;
    uint64_t limit_bytes, used_bytes; /* of the control group that holds least; 0: no limit */
    uint64_t address_bytes;           /* address space of one process ("ulimit -v"); 0: no limit */
    char huge_pages[QN_PROBE_TEXT];   /* "always", "madvise" or "never" */
    char driver[QN_PROBE_TEXT];       /* NVIDIA's kernel module, "" when it is not loaded */
    char card[QN_PROBE_CARDS][QN_PROBE_TEXT];
    unsigned n_cards;
} qn_machine;

void qn_probe_machine(qn_machine *m, const char *root);

typedef struct qn_bandwidth {
    uint64_t buffer_bytes;
    double one, all; /* bytes a second, read by one thread and by `threads` together */
    unsigned threads;
} qn_bandwidth;
/* Streams reads over a buffer of at least four times the last level of cache where available_bytes
 * allows that (it takes at most a quarter of them); about half a second. Errors: NOMEM (less than 16
 * MiB may be taken), IO. */
qn_code qn_probe_bandwidth(qn_bandwidth *b, const qn_machine *m, unsigned threads, qn_err *err);

#endif
