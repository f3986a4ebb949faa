/* SPDX-License-Identifier: Apache-2.0 */
/* hash.h - hashes that are stored or sent: XXH3 for cache keys and checksums, SHA-256 for
 * identity, SHA-1 where git wants it.
 *
 * XXH3 is not cryptographic: it finds torn writes and names blocks of our own making. Where somebody
 * outside chooses the bytes and gains from a collision (downloads, weights digests), use SHA-256. The
 * libraries behind are named in hash.c only.
 *
 * Thread: functions any; a hasher one thread at a time.
 */
#ifndef QN_DEP_HASH_H
#define QN_DEP_HASH_H
#include "base/status.h"

typedef struct qn_digest128 {
    uint64_t lo, hi;
} qn_digest128;

typedef struct qn_sha256_digest {
    uint8_t bytes[32];
} qn_sha256_digest;

/* XXH3 of bytes[0, n); NULL allowed if n is 0. The same on every machine and for ever. */
uint64_t qn_hash64(const void *bytes, size_t n, uint64_t seed);
qn_digest128 qn_hash128(const void *bytes, size_t n, uint64_t seed);
static inline bool qn_digest128_eq(qn_digest128 a, qn_digest128 b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

/* The same in pieces; any cut of the input gives the same digest. */
typedef struct qn_hasher qn_hasher;
qn_code qn_hasher_new(qn_hasher **out, uint64_t seed, qn_err *err); /* owned; Errors: NOMEM */
void qn_hasher_free(qn_hasher *h);                                  /* NULL is fine */
void qn_hasher_update(qn_hasher *h, const void *bytes, size_t n);
uint64_t qn_hasher_get64(const qn_hasher *h); /* of all so far; more may follow */
qn_digest128 qn_hasher_get128(const qn_hasher *h);
void qn_hasher_reset(qn_hasher *h, uint64_t seed);

/* SHA-256. Errors: NOMEM, INTERNAL (the library refused). */
qn_code qn_sha256(qn_sha256_digest *out, const void *bytes, size_t n, qn_err *err);
typedef struct qn_sha256_stream qn_sha256_stream;
qn_code qn_sha256_new(qn_sha256_stream **out, qn_err *err); /* owned */
void qn_sha256_free(qn_sha256_stream *s);                   /* NULL is fine */
qn_code qn_sha256_update(qn_sha256_stream *s, const void *bytes, size_t n, qn_err *err);
qn_code qn_sha256_finish(qn_sha256_stream *s, qn_sha256_digest *out, qn_err *err); /* ends it */
/* 64 lower-case hex digits and a NUL. */
void qn_sha256_hex(char out[65], const qn_sha256_digest *digest);

/* The name that git gives to a file's bytes: SHA-1 of "blob LENGTH", a NUL and the bytes. Only for files that a hub lists by it
 * and by nothing better; whoever can forge SHA-1 can forge these. The length is said first. Errors: as SHA-256, and FORMAT from
 * finish when it was another. */
typedef struct qn_git_blob_stream qn_git_blob_stream;
qn_code qn_git_blob_new(qn_git_blob_stream **out, uint64_t bytes, qn_err *err); /* owned */
void qn_git_blob_free(qn_git_blob_stream *s);                                   /* NULL is fine */
qn_code qn_git_blob_update(qn_git_blob_stream *s, const void *bytes, size_t n, qn_err *err);
/* 40 lower-case hex digits and a NUL; ends it. */
qn_code qn_git_blob_finish(qn_git_blob_stream *s, char hex[41], qn_err *err);

#endif
