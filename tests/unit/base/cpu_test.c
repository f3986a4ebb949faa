/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cpu.h"

#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base_int.h"
#include "base/fpenv.h"
#include "qt.h"

static void isa_names_give_masks(qt *t)
{
    uint32_t a = 1, b = 1, c = 1;
    QT_OK(t, qn_cpu_parse_isa(&a, "generic", NULL) == QN_OK && a == QN_CPU_NONE);
    QT_EQ(t, a & qn_cpu_features(), 0);
    QT_OK(t, qn_cpu_parse_isa(&a, "avx2", NULL) == QN_OK && (a & QN_CPU_FMA));
    QT_OK(t, qn_cpu_parse_isa(&b, "avx512", NULL) == QN_OK && (b & a) == a && b != a);
    QT_OK(t, (a & QN_CPU_AVX512F) == 0);
    QT_OK(t, qn_cpu_parse_isa(&c, "auto", NULL) == QN_OK && c == UINT32_MAX);
    QT_OK(t, qn_cpu_parse_isa(&c, NULL, NULL) == QN_OK && c == UINT32_MAX);
    QT_OK(t, qn_cpu_parse_isa(&c, "neon", NULL) == QN_OK && c == QN_CPU_NEON);
    QT_OK(t,
          qn_cpu_parse_isa(&c, "neon_dot", NULL) == QN_OK && c == (QN_CPU_NEON | QN_CPU_DOTPROD));
    QT_OK(t, qn_cpu_parse_isa(&c, "neon_i8mm", NULL) == QN_OK &&
                 c == (QN_CPU_NEON | QN_CPU_DOTPROD | QN_CPU_I8MM));
    QT_OK(t, qn_cpu_parse_isa(&c, "avx2_vnni", NULL) == QN_OK && c == (a | QN_CPU_AVX_VNNI));
    QT_OK(t, qn_cpu_parse_isa(&c, "avx512_base", NULL) == QN_OK &&
                 (c & (QN_CPU_AVX512VNNI | QN_CPU_AVX_VNNI)) == 0 && (c & QN_CPU_AVX512DQ));
    qn_err err = {0};
    QT_EQ(t, qn_cpu_parse_isa(&c, "sse9", &err), QN_E_INVAL);
    QT_OK(t, c == 0 && strstr(err.msg, "sse9") != NULL);
}

#if defined(__x86_64__)
/* The compiler's runtime asks the same questions. */
static void features_agree_with_the_compilers_runtime(qt *t)
{
    const uint32_t f = qn_cpu_features();
    __builtin_cpu_init();
    QT_EQ(t, (f & QN_CPU_AVX2) != 0, __builtin_cpu_supports("avx2") != 0);
    QT_EQ(t, (f & QN_CPU_FMA) != 0, __builtin_cpu_supports("fma") != 0);
    QT_EQ(t, (f & QN_CPU_AVX512F) != 0, __builtin_cpu_supports("avx512f") != 0);
    QT_EQ(t, (f & QN_CPU_AVX512BW) != 0, __builtin_cpu_supports("avx512bw") != 0);
    QT_EQ(t, (f & QN_CPU_AVX512VL) != 0, __builtin_cpu_supports("avx512vl") != 0);
    QT_EQ(t, (f & QN_CPU_AVX512VNNI) != 0, __builtin_cpu_supports("avx512vnni") != 0);
    QT_EQ(t, (f & QN_CPU_AVX512BF16) != 0, __builtin_cpu_supports("avx512bf16") != 0);
}
#else
static void features_agree_with_the_compilers_runtime(qt *t)
{
    QT_OK(t, (qn_cpu_features() & QN_CPU_AVX2) == 0);
}
#endif

static void cores_are_at_least_one_and_at_most_threads(qt *t)
{
    QT_OK(t, qn_cpu_cores() >= 1 && qn_cpu_cores() <= qn_cpu_threads());
}

/* Writes root/path with its directories. */
static void draw(const char *root, const char *path, const char *text)
{
    char full[1024];
    snprintf(full, sizeof full, "%s/%s", root, path);
    for (char *p = full + strlen(root) + 1; *p; p++)
        if (*p == '/') {
            *p = '\0';
            mkdir(full, 0777);
            *p = '/';
        }
    FILE *f = fopen(full, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0) abort();
}

static const char *machine(const char *name)
{
    static char root[512];
    snprintf(root, sizeof root, "%s/%s", qt_tmp(), name);
    if (mkdir(root, 0777) != 0) abort();
    return root;
}

static void hardware_threads_of_a_core_count_once(qt *t)
{
    const char *root = machine("smt");
    static const char *const siblings[] = {"0,2\n", "1,3\n", "0,2\n", "1,3\n", "4-5\n", "4-5\n"};
    for (size_t c = 0; c < 6; c++) {
        char path[128];
        snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%zu/topology/thread_siblings_list",
                 c);
        draw(root, path, siblings[c]);
    }
    QT_EQ(t, qn_cpu_cores_in(root, (const uint8_t[]){1, 1, 1, 1, 1, 1}, 6), 3);
    QT_EQ(t, qn_cpu_cores_in(root, (const uint8_t[]){0, 0, 1, 1, 0, 1}, 6), 3);
    QT_EQ(t, qn_cpu_cores_in(root, (const uint8_t[]){1, 0, 1, 0, 0, 0}, 6), 1);
    QT_EQ(t, qn_cpu_cores_in(root, (const uint8_t[]){0, 0, 0, 0, 0, 0}, 6), 1);
    QT_EQ(t, qn_cpu_cores_in(machine("bare"), (const uint8_t[]){1, 1, 1}, 3), 3);
    draw(root, "sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "4294967295-x,,9\n");
    QT_EQ(t, qn_cpu_cores_in(root, (const uint8_t[]){1, 0, 0, 0, 0, 0}, 6), 1);
}

static void quotas_of_version_2_hold_along_the_path(qt *t)
{
    const char *root = machine("v2");
    draw(root, "proc/self/cgroup", "0::/a/b\n");
    QT_EQ(t, qn_cpu_quota_in(root), UINT32_MAX);
    draw(root, "sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    QT_EQ(t, qn_cpu_quota_in(root), UINT32_MAX);
    draw(root, "sys/fs/cgroup/a/cpu.max", "250000 100000\n");
    QT_EQ(t, qn_cpu_quota_in(root), 3);
    draw(root, "sys/fs/cgroup/cpu.max", "100000 100000\n");
    QT_EQ(t, qn_cpu_quota_in(root), 1);
    draw(root, "sys/fs/cgroup/cpu.max", "0 0\n");
    QT_EQ(t, qn_cpu_quota_in(root), 3);
}

static void quotas_of_version_1_hold_too(qt *t)
{
    const char *root = machine("v1");
    draw(root, "proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/box\n1:name=systemd:/\n");
    draw(root, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    draw(root, "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    QT_EQ(t, qn_cpu_quota_in(root), UINT32_MAX);
    draw(root, "sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "150000\n");
    draw(root, "sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
    QT_EQ(t, qn_cpu_quota_in(root), 2);
    QT_EQ(t, qn_cpu_quota_in(machine("none")), UINT32_MAX);
}

static void rounding_mode_is_set_and_restored(qt *t)
{
    const int mode = fegetround();
    QT_EQ(t, fesetround(FE_UPWARD), 0);
    QT_OK(t, !qn_fpenv_is_plain());
    const qn_fpenv old = qn_fpenv_set_plain();
    volatile float tiny = 0x1p-126f, third = 1.0f, three = 3.0f;
    QT_OK(t, qn_fpenv_is_plain() && third / three == 0x1.555556p-2f);
    QT_OK(t, tiny / 4 == 0x1p-128f && tiny / 4 * 4 == tiny); /* denormals are kept */
    qn_fpenv_restore(old);
    QT_OK(t, !qn_fpenv_is_plain() && third / three > 0x1.555554p-2f);
    QT_EQ(t, qn_fpenv_get().control, old.control | (qn_fpenv_get().control & 0x3F));
    QT_EQ(t, fesetround(mode), 0);
}

QT_MAIN(QT(isa_names_give_masks), QT(features_agree_with_the_compilers_runtime),
        QT(cores_are_at_least_one_and_at_most_threads), QT(hardware_threads_of_a_core_count_once),
        QT(quotas_of_version_2_hold_along_the_path), QT(quotas_of_version_1_hold_too),
        QT(rounding_mode_is_set_and_restored))
