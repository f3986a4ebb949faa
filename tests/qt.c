/* SPDX-License-Identifier: Apache-2.0 */
/* qt.c - checks, deterministic data and scratch files on top of cmocka's runner. */
#include "qt.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* after the standard headers, as cmocka asks */
#include <cmocka.h>

static uint64_t stream;
static size_t passed, failed, skipped;
static char tmp_dir[256];

bool qt_check(qt *t, bool ok, const char *file, int line, const char *fmt, ...)
{
    atomic_fetch_add(&t->checks, 1);
    if (ok) return true;
    if (atomic_fetch_add(&t->failures, 1) < 20) { /* a loop that fails everywhere stays readable */
        va_list ap;
        fprintf(stderr, "%s:%d: %s: ", file, line, t->name);
        va_start(ap, fmt);
        vfprintf(stderr, fmt, ap);
        va_end(ap);
        fputc('\n', stderr);
    }
    return false;
}

bool qt_eq(qt *t, long long a, long long b, const char *text, const char *file, int line)
{
    return qt_check(t, a == b, file, line, "%s: %lld and %lld", text, a, b);
}

bool qt_str(qt *t, const char *a, const char *b, const char *file, int line)
{
    return qt_check(t, a && b && strcmp(a, b) == 0, file, line, "\"%s\" and \"%s\"",
                    a ? a : "(null)", b ? b : "(null)");
}

void qt_skip(qt *t, const char *why)
{
    fprintf(stderr, "skip %s: %s\n", t->name, why);
    atomic_store(&t->skipped, true);
}

bool qt_same(qt *t, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(a + i, b + i, sizeof *a) != 0)
            return QT_OKF(t, false, "element %zu of %zu: %.9g and %.9g", i, n, (double)a[i],
                          (double)b[i]);
    return QT_OK(t, true);
}

bool qt_near(qt *t, const float *a, const float *b, size_t n, double tol)
{
    double top = 0;
    for (size_t i = 0; i < n; i++) top = fmax(top, fabs((double)b[i]));
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)a[i] - (double)b[i]) <= tol * top))
            return QT_OKF(t, false, "element %zu of %zu: %.9g, expected %.9g within %.3g", i, n,
                          (double)a[i], (double)b[i], tol * top);
    return QT_OK(t, true);
}

bool qt_all(qt *t, const float *a, size_t n, float v)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(a + i, &v, sizeof v) != 0)
            return QT_OKF(t, false, "element %zu of %zu is %.9g, expected %.9g", i, n, (double)a[i],
                          (double)v);
    return QT_OK(t, true);
}

void qt_seed(uint64_t seed) { stream = seed; }

uint64_t qt_rand(void) /* splitmix64, Steele, Lea and Flood 2014 */
{
    uint64_t z = (stream += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

float *qt_rand_f32(size_t n)
{
    float *p = malloc((n ? n : 1) * sizeof *p);
    if (!p) abort();
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (int k = 0; k < 12; k++) sum += (double)(qt_rand() >> 11) * 0x1p-53;
        p[i] = (float)(sum - 6.0);
    }
    return p;
}

float *qt_fill_f32(size_t n, float v)
{
    float *p = malloc((n ? n : 1) * sizeof *p);
    if (!p) abort();
    for (size_t i = 0; i < n; i++) p[i] = v;
    return p;
}

void qt_release(int n, ...)
{
    va_list ap;
    va_start(ap, n);
    for (int i = 0; i < n; i++) free(va_arg(ap, void *));
    va_end(ap);
}

static void remove_tmp(void)
{
    char cmd[sizeof tmp_dir + 16];
    snprintf(cmd, sizeof cmd, "rm -rf '%s'", tmp_dir);
    if (tmp_dir[0] && system(cmd) != 0) fprintf(stderr, "left behind: %s\n", tmp_dir);
}

const char *qt_tmp(void)
{
    if (tmp_dir[0]) return tmp_dir;
    const char *base = getenv("TMPDIR");
    snprintf(tmp_dir, sizeof tmp_dir, "%s/quern-test-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(tmp_dir)) abort();
    atexit(remove_tmp);
    return tmp_dir;
}

const char *qt_file(const char *name, const void *bytes, size_t n)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", qt_tmp(), name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0) abort();
    return path;
}

static void run_one(void **state)
{
    const qt_case *c = *state;
    qt t = {.name = c->name};
    stream = 42;
    c->fn(&t);
    if (atomic_load(&t.skipped)) {
        skipped++;
        skip();
    }
    if (atomic_load(&t.checks) == 0) {
        fprintf(stderr, "%s: no check was made\n", c->name);
        failed++;
        fail();
    }
    if (atomic_load(&t.failures) != 0) {
        failed++;
        fail();
    }
    passed++;
}

int qt_run(const qt_case *cases, size_t n, int argc, char **argv)
{
    struct CMUnitTest *tests = calloc(n, sizeof *tests);
    size_t picked = 0;
    if (!tests) return 1;
    for (size_t i = 0; i < n; i++) {
        if (argc > 1 && !strstr(cases[i].name, argv[1])) continue;
        const qt_case *c = &cases[i];
        void *initial = NULL;
        memcpy(&initial, &c, sizeof c); /* cmocka takes a plain void pointer */
        tests[picked++] =
            (struct CMUnitTest){.name = c->name, .test_func = run_one, .initial_state = initial};
    }
    _cmocka_run_group_tests("quern", tests, picked, NULL, NULL);
    free(tests);
    failed = picked - passed - skipped; /* a crash inside a test counts too */
    fflush(stderr);
    printf("%zu passed, %zu failed", passed, failed);
    if (skipped) printf(", %zu skipped", skipped);
    printf("\n");
    return failed != 0 || picked == 0;
}
