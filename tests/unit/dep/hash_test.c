/* SPDX-License-Identifier: Apache-2.0 */
#include "dep/hash.h"

#include <string.h>

#include "base/alloc.h"
#include "qt.h"

/* Values of XXH3 1.x, which the library promises not to change: stored keys depend on it. */
static void xxh3_gives_its_known_values(qt *t)
{
    QT_OK(t, qn_hash64("", 0, 0) == 0x2D06800538D394C2u);
    QT_OK(t, qn_hash64(NULL, 0, 0) == 0x2D06800538D394C2u);
    const qn_digest128 empty = qn_hash128(NULL, 0, 0);
    QT_OK(t, empty.hi == 0x99AA06D3014798D8u && empty.lo == 0x6001C324468D497Fu);
}

static void any_cut_of_the_input_gives_the_same_digest(qt *t)
{
    static uint8_t data[3000];
    qn_hasher *h = NULL;
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)qt_rand();
    QT_EQ(t, qn_hasher_new(&h, 77, NULL), QN_OK);
    for (int round = 0; h && round < 200; round++) {
        const size_t n = qt_rand() % sizeof data;
        size_t at = 0;
        qn_hasher_reset(h, 77);
        while (at < n) {
            size_t step = qt_rand() % 400;
            if (step > n - at) step = n - at;
            qn_hasher_update(h, data + at, step);
            at += step;
        }
        QT_OK(t, qn_hasher_get64(h) == qn_hash64(data, n, 77));
        QT_OK(t, qn_digest128_eq(qn_hasher_get128(h), qn_hash128(data, n, 77)));
    }
    qn_hasher_free(h);
    QT_OK(t, qn_hash64(data, 100, 1) != qn_hash64(data, 100, 2));
    QT_OK(t, !qn_digest128_eq(qn_hash128(data, 100, 1), qn_hash128(data, 101, 1)));
}

/* FIPS 180-4 examples: the empty text, one block, two blocks, a million letters in pieces. */
static void sha256_gives_the_published_answers(qt *t)
{
    static const struct {
        const char *text, *hex;
    } cases[] = {{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
                 {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
                 {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"}};
    qn_sha256_digest d;
    char hex[65];
    for (size_t i = 0; i < QT_LEN(cases); i++) {
        QT_EQ(t, qn_sha256(&d, cases[i].text, strlen(cases[i].text), NULL), QN_OK);
        qn_sha256_hex(hex, &d);
        QT_STR(t, hex, cases[i].hex);
    }
    qn_sha256_stream *s = NULL;
    char a[1000];
    memset(a, 'a', sizeof a);
    QT_EQ(t, qn_sha256_new(&s, NULL), QN_OK);
    for (int i = 0; s && i < 1000; i++) QT_EQ(t, qn_sha256_update(s, a, sizeof a, NULL), QN_OK);
    QT_EQ(t, qn_sha256_finish(s, &d, NULL), QN_OK);
    qn_sha256_hex(hex, &d);
    QT_STR(t, hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    qn_sha256_free(s);
}

/* `git hash-object` says so. */
static void git_names_a_file_by_its_length_and_bytes(qt *t)
{
    static const struct {
        const char *text, *hex;
    } cases[] = {{"", "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"},
                 {"hello\n", "ce013625030ba8dba906f756967f9e9ca394464a"}};
    char hex[41];
    for (size_t i = 0; i < QT_LEN(cases); i++)
        for (size_t cut = 0; cut <= strlen(cases[i].text); cut++) {
            const size_t n = strlen(cases[i].text);
            qn_git_blob_stream *s = NULL;
            QT_EQ(t, qn_git_blob_new(&s, n, NULL), QN_OK);
            QT_EQ(t, qn_git_blob_update(s, cases[i].text, cut, NULL), QN_OK);
            QT_EQ(t, qn_git_blob_update(s, cases[i].text + cut, n - cut, NULL), QN_OK);
            QT_EQ(t, qn_git_blob_finish(s, hex, NULL), QN_OK);
            QT_STR(t, hex, cases[i].hex);
            qn_git_blob_free(s);
        }
    qn_err err = {0};
    qn_git_blob_stream *s = NULL;
    QT_EQ(t, qn_git_blob_new(&s, 3, NULL), QN_OK);
    QT_EQ(t, qn_git_blob_finish(s, hex, &err), QN_E_FORMAT);
    QT_OK(t, strstr(err.msg, "0 bytes, expected 3") && hex[0] == '\0');
    qn_git_blob_free(s);
}

static void new_survives_every_failed_allocation(qt *t)
{
    const size_t before = qn_alloc_live();
    for (size_t n = 0; n < 2; n++) {
        qn_hasher *h = NULL;
        qn_sha256_stream *s = NULL;
        qn_alloc_fail_after(n);
        const qn_code a = qn_hasher_new(&h, 1, NULL);
        qn_alloc_fail_after(n);
        const qn_code b = qn_sha256_new(&s, NULL);
        qn_git_blob_stream *g = NULL;
        qn_alloc_fail_after(n);
        const qn_code c = qn_git_blob_new(&g, 1, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_EQ(t, c, n ? QN_OK : QN_E_NOMEM);
        qn_git_blob_free(g);
        QT_EQ(t, a, n ? QN_OK : QN_E_NOMEM);
        QT_EQ(t, b, n ? QN_OK : QN_E_NOMEM);
        QT_OK(t, (h != NULL) == (n > 0) && (s != NULL) == (n > 0));
        qn_hasher_free(h);
        qn_sha256_free(s);
        QT_EQ(t, qn_alloc_live(), before);
    }
}

QT_MAIN(QT(xxh3_gives_its_known_values), QT(any_cut_of_the_input_gives_the_same_digest),
        QT(sha256_gives_the_published_answers), QT(git_names_a_file_by_its_length_and_bytes),
        QT(new_survives_every_failed_allocation))
