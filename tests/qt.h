/* SPDX-License-Identifier: Apache-2.0 */
/* qt.h - the vocabulary of our tests, run by cmocka.
 *
 * A test is `static void says_what_holds(qt *t)`. A check that fails is told with file and line and
 * the test goes on; a test without a check fails. A file lists its tests once:
 *
 *     QT_MAIN(QT(opens_an_empty_file), QT(refuses_a_short_header))
 *
 * and its binary ends with "N passed, N failed". QT_SKIP is for missing hardware only.
 *
 * Thread: checks may come from any thread of the test.
 */
#ifndef QT_H
#define QT_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct qt {
    const char *name;
    atomic_size_t checks, failures;
    atomic_bool skipped;
} qt;

typedef struct qt_case {
    const char *name;
    void (*fn)(qt *t);
} qt_case;

#define QT_LEN(array) (sizeof(array) / sizeof((array)[0]))
#define QT(fn)  \
    {           \
#fn, fn \
    }
#define QT_MAIN(...)                                     \
    int main(int argc, char **argv)                      \
    {                                                    \
        static const qt_case cases[] = {__VA_ARGS__};    \
        return qt_run(cases, QT_LEN(cases), argc, argv); \
    }

/* Runs all cases, or those whose name contains argv[1]. Returns the process's exit status. */
int qt_run(const qt_case *cases, size_t n, int argc, char **argv);

/* Count a check; tell expression, place and printf-style detail when it fails. Returns ok. */
bool qt_check(qt *t, bool ok, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
#define QT_OK(t, cond) qt_check(t, (cond), __FILE__, __LINE__, "%s", #cond)
#define QT_OKF(t, cond, ...) qt_check(t, (cond), __FILE__, __LINE__, __VA_ARGS__)
#define QT_EQ(t, a, b) qt_eq(t, (long long)(a), (long long)(b), #a " == " #b, __FILE__, __LINE__)
bool qt_eq(qt *t, long long a, long long b, const char *text, const char *file, int line);
#define QT_STR(t, a, b) qt_str(t, a, b, __FILE__, __LINE__)
bool qt_str(qt *t, const char *a, const char *b, const char *file, int line);
/* The machine lacks what the test needs; the reason is printed and the test counts as skipped. */
void qt_skip(qt *t, const char *why);

/* Equal to the last bit (NaN equals the same NaN). */
bool qt_same(qt *t, const float *a, const float *b, size_t n);
/* |a - b| <= tol * max|b| over the whole array. */
bool qt_near(qt *t, const float *a, const float *b, size_t n, double tol);
/* Every element equals v. */
bool qt_all(qt *t, const float *a, size_t n, float v);

/* Deterministic data; each case restarts the stream. All blocks come from malloc, free them with
 * qt_release(count, pointers...). */
float *qt_rand_f32(size_t n); /* roughly normal, mean 0, deviation 1 */
float *qt_fill_f32(size_t n, float v);
uint64_t qt_rand(void);
void qt_seed(uint64_t seed); /* restarts the stream in the middle of a case */
void qt_release(int n, ...);

/* A fresh directory of this test run, removed at exit; borrowed for ever. */
const char *qt_tmp(void);
/* Write bytes to NAME inside qt_tmp(); the path is borrowed until the next call. */
const char *qt_file(const char *name, const void *bytes, size_t n);

#endif
