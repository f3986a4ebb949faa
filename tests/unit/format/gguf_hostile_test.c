/* SPDX-License-Identifier: Apache-2.0 */
/* gguf_hostile_test.c - files that are cut short, that lie, and that claim the impossible: each gives
 * an error that names the file, and costs at most the file's size and 1 MiB of memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "bytes.h"
#include "format/gguf.h"
#include "qt.h"

enum { F32 = 0, Q4_0 = 2 };

/* Opens under a ceiling of the file's size and 1 MiB above what is alive; the ceiling must not be
 * what stops it. */
static qn_code open_bounded(qt *t, const uint8_t *p, size_t n, qn_err *err)
{
    qn_gguf *g = NULL;
    const size_t live = qn_alloc_live(), refused = qn_alloc_refused();
    *err = (qn_err){.code = QN_OK};
    qn_alloc_set_ceiling(qn_alloc_live_bytes() + n + (1 << 20));
    const qn_code rc = qn_gguf_open_bytes(&g, "hostile.gguf", p, n, err);
    qn_alloc_set_ceiling(SIZE_MAX);
    QT_OK(t, (rc == QN_OK) == (g != NULL));
    QT_EQ(t, qn_alloc_refused(), refused);
    qn_gguf_close(g);
    QT_EQ(t, qn_alloc_live(), live);
    return rc;
}

static void refuses(qt *t, const bytes *b, qn_code want, const char *say)
{
    qn_err err;
    const qn_code rc = open_bounded(t, b->p, b->n, &err);
    QT_OKF(t, rc == want, "%s: code %d (%s)", say, (int)rc, err.msg);
    QT_OKF(t, strstr(err.msg, "hostile.gguf") != NULL, "\"%s\" names no file", err.msg);
    QT_OKF(t, strstr(err.msg, say) != NULL, "\"%s\" lacks \"%s\"", err.msg, say);
}

static bytes *new_bytes(void)
{
    bytes *b = calloc(1, sizeof *b);
    if (!b) abort();
    return b;
}

/* A small valid file: three keys and two tensors. */
static bytes *small(void)
{
    bytes *b = new_bytes();
    put_gguf_header(b, 3, 2, 3);
    put_key_text(b, "general.architecture", "llama");
    put_key_u32(b, "general.alignment", 32);
    put_text(b, "words");
    put_u32(b, 9);
    put_u32(b, 8);
    put_u64(b, 2);
    put_text(b, "a");
    put_text(b, "bc");
    put_tensor(b, "x", F32, 8, 2, 0);
    put_tensor(b, "y", Q4_0, 32, 1, 64);
    pad_to(b, 32);
    put_zero(b, 64 + 18);
    return b;
}

static void forty_three_bytes_that_claim_2_to_the_63(qt *t)
{
    bytes *b = new_bytes();
    put_gguf_header(b, 3, (uint64_t)1 << 63, 0);
    put_zero(b, 43 - b->n);
    refuses(t, b, QN_E_FORMAT, "tensor count is 9223372036854775808, but 19 bytes remain");
    put_gguf_header(b, 3, 0, (uint64_t)1 << 63);
    put_zero(b, 43 - b->n);
    refuses(t, b, QN_E_FORMAT, "key count is 9223372036854775808, but 19 bytes remain");
    put_gguf_header(b, 3, 0, 1);
    put_u64(b, (uint64_t)1 << 63);
    put_zero(b, 43 - b->n);
    refuses(t, b, QN_E_FORMAT, "key 1 of 1: key name cut short");
    put_gguf_header(b, 3, 0, 1);
    put_u64(b, 1);
    put(b, "k", 1);
    put_u32(b, 8);
    put_u(b, (uint64_t)1 << 62, 6);
    refuses(t, b, QN_E_FORMAT, "string");
    b->n = 0;
    put_gguf_header(b, 3, 0, 1);
    put_text(b, "k");
    put_u32(b, 9);
    put_u32(b, 4);
    put_u64(b, (uint64_t)1 << 63);
    refuses(t, b, QN_E_FORMAT, "array count is 9223372036854775808, but 0 bytes remain");
    free(b);
}

static void every_truncation_is_refused(qt *t)
{
    bytes *b = small();
    qn_err err;
    QT_EQ(t, open_bounded(t, b->p, b->n, &err), QN_OK);
    uint8_t *exact = NULL; /* so that a read past the end is seen */
    for (size_t n = 0; n < b->n; n++) {
        if (posix_memalign((void **)&exact, 16, n ? n : 1) != 0) abort();
        memcpy(exact, b->p, n);
        QT_OKF(t, open_bounded(t, exact, n, &err) == QN_E_FORMAT, "%zu bytes: %s", n, err.msg);
        QT_OKF(t, strncmp(err.msg, "hostile.gguf: ", 14) == 0 && strlen(err.msg) > 20, "%s",
               err.msg);
        free(exact);
    }
    free(b);
}

/* Each byte takes a few values: nothing may crash, overrun or outgrow the bound. */
static void every_changed_byte_is_survived(qt *t)
{
    static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
    bytes *b = small();
    qn_err err;
    for (size_t i = 0; i < b->n; i++) {
        const uint8_t old = b->p[i];
        for (size_t k = 0; k < QT_LEN(values); k++) {
            b->p[i] = values[k];
            const qn_code rc = open_bounded(t, b->p, b->n, &err);
            QT_OK(t, rc == QN_OK || (rc == err.code && err.msg[0] != '\0'));
        }
        b->p[i] = old;
    }
    free(b);
}

static void foreign_files_are_refused_by_name(qt *t)
{
    bytes *b = small();
    b->p[0] = 'g';
    refuses(t, b, QN_E_FORMAT, "do not begin with 'GGUF'");
    b->p[0] = 'G';
    set_u(b, 4, 1, 4);
    refuses(t, b, QN_E_UNSUPPORTED, "version 1, expected 2 or 3");
    set_u(b, 4, 4, 4);
    refuses(t, b, QN_E_UNSUPPORTED, "version 4");
    set_u(b, 4, 0, 4);
    refuses(t, b, QN_E_UNSUPPORTED, "version 0");
    set_u(b, 4, 0x03000000, 4);
    refuses(t, b, QN_E_UNSUPPORTED, "big-endian");
    free(b);
}

static void lying_keys_are_refused(qt *t)
{
    bytes *b = new_bytes();
    put_gguf_header(b, 3, 0, 2);
    put_key_u32(b, "same", 1);
    put_key_u32(b, "same", 2);
    refuses(t, b, QN_E_FORMAT, "key 'same' occurs twice");
    put_gguf_header(b, 3, 0, 1);
    put_text(b, "");
    put_u32(b, 4);
    put_u32(b, 4);
    refuses(t, b, QN_E_FORMAT, "0 bytes, expected 1 to 65535");
    put_gguf_header(b, 3, 0, 1);
    put_text(b, "k");
    put_u32(b, 13);
    put_u64(b, 0);
    refuses(t, b, QN_E_FORMAT, "key 'k': value type is 13, expected below 13");
    put_gguf_header(b, 3, 0, 1);
    put_text(b, "k");
    put_u32(b, 9);
    put_u32(b, 99);
    put_u64(b, 0);
    refuses(t, b, QN_E_FORMAT, "array element type is 99");
    put_gguf_header(b, 3, 0, 1);
    put_text(b, "k");
    put_u32(b, 7);
    put_u(b, 2, 1);
    refuses(t, b, QN_E_FORMAT, "bool value is 2");
    put_gguf_header(b, 3, 0, 1);
    put_text(b, "a\x01\xff"
                "b");
    put_u32(b, 77);
    put_u32(b, 0);
    refuses(t, b, QN_E_FORMAT, "key 'a??b'");
    free(b);
}

static void deep_nesting_is_refused(qt *t)
{
    bytes *b = new_bytes();
    for (unsigned depth = 1; depth < 1000; depth = depth < 8 ? depth + 1 : 999 + (depth == 999)) {
        put_gguf_header(b, 3, 0, 1);
        put_text(b, "deep");
        put_u32(b, 9);
        for (unsigned i = 1; i < depth; i++) {
            put_u32(b, 9);
            put_u64(b, 1);
        }
        put_u32(b, 4);
        put_u64(b, 0);
        qn_err err;
        const qn_code rc = open_bounded(t, b->p, b->n, &err);
        QT_OKF(t, rc == (depth <= QN_GGUF_MAX_NEST ? QN_OK : QN_E_LIMIT), "depth %u: %s", depth,
               err.msg);
    }
    free(b);
}

static void lying_alignments_are_refused(qt *t)
{
    static const uint32_t bad[] = {0, 1, 4, 12, 33, 1u << 21, 0xffffffff};
    bytes *b = new_bytes();
    for (size_t i = 0; i < QT_LEN(bad); i++) {
        put_gguf_header(b, 3, 0, 1);
        put_key_u32(b, "general.alignment", bad[i]);
        refuses(t, b, QN_E_FORMAT, "general.alignment");
    }
    put_gguf_header(b, 3, 0, 1);
    put_key_text(b, "general.alignment", "32");
    refuses(t, b, QN_E_FORMAT, "has type string, expected an integer");
    free(b);
}

static void one_tensor(bytes *b, const char *name, uint32_t type, uint64_t cols, uint64_t rows,
                       uint64_t offset)
{
    put_gguf_header(b, 3, 1, 0);
    put_tensor(b, name, type, cols, rows, offset);
    pad_to(b, 32);
    put_zero(b, 64);
}

static void lying_tensors_are_refused(qt *t)
{
    bytes *b = new_bytes();
    one_tensor(b, "w", F32, 17, 1, 0);
    refuses(t, b, QN_E_FORMAT, "'w' takes 68 bytes at 0 of the data, which has 64 bytes");
    one_tensor(b, "w", F32, 1, 1, 64);
    refuses(t, b, QN_E_FORMAT, "'w' takes 4 bytes at 64");
    one_tensor(b, "w", F32, 1, 1, UINT64_MAX - 31);
    refuses(t, b, QN_E_FORMAT, "of the data, which has 64 bytes");
    one_tensor(b, "w", F32, 1, 1, 4);
    refuses(t, b, QN_E_FORMAT, "'w' has offset 4, expected a multiple of 32");
    one_tensor(b, "w", F32, (uint64_t)1 << 63, 2, 0);
    refuses(t, b, QN_E_FORMAT, "9223372036854775808 x 2 x 1 x 1 of F32");
    one_tensor(b, "w", F32, (uint64_t)1 << 62, 1, 0);
    refuses(t, b, QN_E_FORMAT, "beyond 2^64");
    one_tensor(b, "w", Q4_0, 33, 1, 0);
    refuses(t, b, QN_E_FORMAT, "not whole blocks of 32");
    one_tensor(b, "w", 4, 32, 1, 0);
    refuses(t, b, QN_E_UNSUPPORTED, "'w' has type 4, which GGUF does not name");
    one_tensor(b, "w", 1000, 32, 1, 0);
    refuses(t, b, QN_E_UNSUPPORTED, "type 1000");
    one_tensor(b, "", F32, 1, 1, 0);
    refuses(t, b, QN_E_FORMAT, "name has 0 bytes");
    one_tensor(b, "w", F32, 1, 1, 0);
    set_u(b, 24 + 9, 5, 4);
    refuses(t, b, QN_E_FORMAT, "'w' has 5 dims");
    free(b);
}

static void names_and_places_must_differ(qt *t)
{
    bytes *b = new_bytes();
    put_gguf_header(b, 3, 2, 0);
    put_tensor(b, "w", F32, 1, 1, 0);
    put_tensor(b, "w", F32, 1, 1, 32);
    pad_to(b, 32);
    put_zero(b, 64);
    refuses(t, b, QN_E_FORMAT, "tensor 'w' occurs twice");
    put_gguf_header(b, 3, 3, 0);
    put_tensor(b, "u", F32, 8, 1, 64);
    put_tensor(b, "v", F32, 9, 1, 32);
    put_tensor(b, "w", F32, 8, 1, 0);
    pad_to(b, 32);
    put_zero(b, 96);
    refuses(t, b, QN_E_FORMAT, "'u' at 64 overlaps 'v', which ends at 68");
    put_gguf_header(b, 3, 2, 0);
    put_tensor(b, "u", F32, 8, 1, 0);
    put_tensor(b, "v", F32, 4, 1, 0);
    pad_to(b, 32);
    put_zero(b, 96);
    refuses(t, b, QN_E_FORMAT, "overlaps");
    free(b);
}

/* As many entries as fit: the index itself stays inside the bound. */
static void the_densest_file_stays_inside_the_bound(qt *t)
{
    const size_t n_keys = QN_GGUF_MAX_KEYS, n_tensors = 100000;
    uint8_t *p = NULL;
    size_t n = 0;
    if (posix_memalign((void **)&p, 16, 24 + n_keys * 17 + n_tensors * 37 + 64) != 0) abort();
    bytes *b = new_bytes();
    put_gguf_header(b, 3, n_tensors, n_keys);
    memcpy(p, b->p, b->n);
    n = b->n;
    for (size_t i = 0; i < n_keys; i++) { /* names of four bytes, values of one */
        b->n = 0;
        put_u64(b, 4);
        put_u32(b, (uint32_t)i | 0x40000000);
        put_u32(b, 0);
        put_u(b, 0, 1);
        memcpy(p + n, b->p, b->n);
        n += b->n;
    }
    for (size_t i = n_tensors; i-- > 0;) { /* empty tensors, in falling order of offsets */
        b->n = 0;
        put_u64(b, 4);
        put_u32(b, (uint32_t)i | 0x40000000);
        put_u32(b, 1);
        put_u64(b, 0);
        put_u32(b, F32);
        put_u64(b, 0);
        memcpy(p + n, b->p, b->n);
        n += b->n;
    }
    memset(p + n, 0, 32);
    n = (n + 31) & ~(size_t)31;
    qn_err err;
    const qn_code rc = open_bounded(t, p, n, &err);
    QT_OKF(t, rc == QN_OK, "%s", err.msg);
    free(b);
    free(p);
}

static void counts_above_the_ceilings_are_refused(qt *t)
{
    const size_t n = (size_t)40 << 20;
    uint8_t *p = NULL;
    if (posix_memalign((void **)&p, 16, n) != 0) abort();
    memset(p, 0, n);
    bytes *b = new_bytes();
    put_gguf_header(b, 3, QN_GGUF_MAX_TENSORS + 1, 0);
    memcpy(p, b->p, b->n);
    qn_err err;
    QT_EQ(t, open_bounded(t, p, n, &err), QN_E_LIMIT);
    QT_OK(t, strstr(err.msg, "tensor count is 262145, at most 262144") != NULL);
    put_gguf_header(b, 3, 0, QN_GGUF_MAX_KEYS + 1);
    memcpy(p, b->p, b->n);
    QT_EQ(t, open_bounded(t, p, n, &err), QN_E_LIMIT);
    QT_OK(t, strstr(err.msg, "key count is 65537, at most 65536") != NULL);
    free(b);
    free(p);
}

QT_MAIN(QT(forty_three_bytes_that_claim_2_to_the_63), QT(every_truncation_is_refused),
        QT(every_changed_byte_is_survived), QT(foreign_files_are_refused_by_name),
        QT(lying_keys_are_refused), QT(deep_nesting_is_refused), QT(lying_alignments_are_refused),
        QT(lying_tensors_are_refused), QT(names_and_places_must_differ),
        QT(the_densest_file_stays_inside_the_bound), QT(counts_above_the_ceilings_are_refused))
