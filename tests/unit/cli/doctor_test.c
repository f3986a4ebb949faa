/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_test.c - facts read from a machine made of files, and the verb on the real one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/probe.h"
#include "dep/json.h"
#include "program.h"
#include "qt.h"

/* Two sockets of two cores with two threads; 16 GiB, of which the group may have 2. */
static const char machine[] =
    "set -e; cd \"$ROOT\"; mkdir -p etc proc/self proc/driver/nvidia/gpus/0000:01:00.0\n"
    "echo 'PRETTY_NAME=\"Testix 3\"' >etc/os-release\n"
    "printf 'processor\\t: 0\\nmodel name\\t: Test CPU\\n' >proc/cpuinfo\n"
    "printf 'MemTotal:       16777216 kB\\nMemAvailable:   8388608 kB\\n' >proc/meminfo\n"
    "echo 0::/a/b >proc/self/cgroup\n"
    "printf 'Limit  Soft Limit  Hard Limit  Units\\nMax address space  409600000  unlimited  "
    "bytes\\n' "
    ">proc/self/limits\n"
    "echo 'NVRM version: NVIDIA UNIX 550.1' >proc/driver/nvidia/version\n"
    "printf 'Model: \\t\\t Card X\\nIRQ: 1\\n' >proc/driver/nvidia/gpus/0000:01:00.0/information\n"
    "mkdir -p sys/fs/cgroup/a/b sys/devices/system/node sys/kernel/mm/transparent_hugepage\n"
    "echo max >sys/fs/cgroup/a/b/memory.max; echo 2147483648 >sys/fs/cgroup/a/memory.max\n"
    "echo 1073741824 >sys/fs/cgroup/a/memory.current\n"
    "echo 0-1 >sys/devices/system/node/online\n"
    "echo 'always madvise [never]' >sys/kernel/mm/transparent_hugepage/enabled\n"
    "for c in 0 1 2 3 4 5 6 7; do d=sys/devices/system/cpu/cpu$c/topology; mkdir -p $d\n"
    "  echo $((c % 4)),$((c % 4 + 4)) >$d/thread_siblings_list\n"
    "  echo $((c % 4 / 2)) >$d/physical_package_id; done\n"
    "i=0; for l in '1 Data 48K 0,4' '1 Instruction 32K 0,4' '2 Unified 2048K 0,4' '3 Unified 32M "
    "0-1,4-5'; do\n"
    "  set -- $l; d=sys/devices/system/cpu/cpu0/cache/index$i; mkdir -p $d; i=$((i + 1))\n"
    "  echo $1 >$d/level; echo $2 >$d/type; echo $3 >$d/size; echo $4 >$d/shared_cpu_list; done\n";

static void a_machine_is_read_from_its_files(qt *t)
{
    qn_machine m;
    setenv("ROOT", qt_tmp(), 1);
    if (!QT_EQ(t, program_shell(machine)->status, 0)) return;
    qn_probe_machine(&m, qt_tmp());
    QT_STR(t, m.system, "Testix 3");
    QT_STR(t, m.cpu, "Test CPU");
    QT_OK(t, m.threads == 8 && m.cores == 4 && m.sockets == 2 && m.nodes == 2);
    QT_OK(t, m.l1d_bytes == 48 << 10 && m.l2_bytes == 2 << 20 && m.l3_bytes == 64 << 20);
    QT_OK(t, m.memory_bytes == 16ull << 30 && m.limit_bytes == 2ull << 30);
    QT_EQ(t, m.available_bytes, 1ll << 30); /* what the group has left */
    QT_EQ(t, m.address_bytes, 409600000);
    QT_STR(t, m.huge_pages, "never");
    QT_EQ(t, m.n_cards, 1);
    QT_STR(t, m.card[0], "Card X");
    QT_STR(t, m.driver, "NVIDIA UNIX 550.1");
}

static void a_machine_without_files_has_no_facts(qt *t)
{
    qn_machine m;
    qn_probe_machine(&m, "/nowhere/at/all");
    QT_OK(t, m.threads == 0 && m.memory_bytes == 0 && m.n_cards == 0 && !m.cpu[0]);
    QT_EQ(t, m.address_bytes, 0); /* no such file, and "unlimited", are no limit */
    setenv("ROOT", qt_tmp(), 1);
    if (!QT_EQ(
            t,
            program_shell("cd \"$ROOT\"; mkdir -p proc/self\n"
                          "echo 'Max address space  unlimited  unlimited  bytes' >proc/self/limits")
                ->status,
            0))
        return;
    qn_probe_machine(&m, qt_tmp());
    QT_EQ(t, m.address_bytes, 0);
}

static void bandwidth_stays_within_a_quarter_of_the_memory(qt *t)
{
    qn_bandwidth b;
    qn_err err = {0};
    qn_machine m = {.available_bytes = 80 << 20};
    if (!QT_EQ(t, qn_probe_bandwidth(&b, &m, 2, &err), QN_OK)) return;
    QT_OK(t, b.buffer_bytes == 20 << 20 && b.threads == 2 && b.one > 0 && b.all > 0);
    m.available_bytes = 10 << 20;
    QT_EQ(t, qn_probe_bandwidth(&b, &m, 2, &err), QN_E_NOMEM);
    QT_OK(t, strstr(err.msg, "there are 10") != NULL);
}

static void doctor_gives_json_and_advice(qt *t)
{
    qn_json *root = NULL;
    const program_result *r = program_run("doctor --json --quick");
    QT_EQ(t, r->status, 0);
    QT_EQ(t, qn_json_parse(&root, r->out, strlen(r->out), SIZE_MAX, NULL), QN_OK);
    QT_OK(t, qn_json_int(qn_json_get(qn_json_get(root, "memory"), "total_bytes"), 0) > 0);
    QT_OK(t, qn_json_int(qn_json_get(qn_json_get(root, "cpu"), "usable_cores"), 0) > 0);
    QT_OK(t, qn_json_get(root, "memory_read") == NULL);
    qn_json_free(root);
    r = program_shell("QUERN_HOME=/dev/null/nowhere \"$QUERN\" doctor --quick");
    QT_OKF(t, r->status == 0 && strstr(r->out, "warning: /dev/null/nowhere cannot be written: set"),
           "%s", r->out);
    r = program_shell("unset QUERN_HOME HOME; \"$QUERN\" doctor --quick");
    QT_OKF(t, strstr(r->out, "neither QUERN_HOME nor HOME is set") != NULL, "%s", r->out);
}

QT_MAIN(QT(a_machine_is_read_from_its_files), QT(a_machine_without_files_has_no_facts),
        QT(bandwidth_stays_within_a_quarter_of_the_memory), QT(doctor_gives_json_and_advice))
