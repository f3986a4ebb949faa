/* SPDX-License-Identifier: Apache-2.0 */
/* git_blob.c - git's name of a file's bytes, by OpenSSL's libcrypto. */
#include <openssl/evp.h>
#include <stdio.h>

#include "base/alloc.h"
#include "dep/hash.h"

enum { DIGEST = 20 };

struct qn_git_blob_stream {
    EVP_MD_CTX *ctx;          /* the library's own memory, about 400 bytes, not counted */
    uint64_t announced, have; /* bytes of the file */
};

static qn_code refused(qn_err *err, const char *what)
{
    return qn_fail(err, QN_E_INTERNAL, "sha-1: libcrypto refused to %s", what);
}

qn_code qn_git_blob_new(qn_git_blob_stream **out, uint64_t bytes, qn_err *err)
{
    qn_code rc = QN_OK;
    char head[32];
    *out = NULL;
    qn_git_blob_stream *s = qn_zalloc(sizeof *s);
    if (!s) return qn_fail(err, QN_E_NOMEM, "git blob stream");
    const int n = snprintf(head, sizeof head, "blob %llu", (unsigned long long)bytes);
    s->announced = bytes;
    s->ctx = EVP_MD_CTX_new();
    if (!s->ctx) {
        rc = qn_fail(err, QN_E_NOMEM, "sha-1 context");
        goto out;
    }
    if (EVP_DigestInit_ex(s->ctx, EVP_sha1(), NULL) != 1 ||
        EVP_DigestUpdate(s->ctx, head, (size_t)n + 1) != 1) { /* with its NUL */
        rc = refused(err, "start");
        goto out;
    }
    *out = s;
    s = NULL;
out:
    qn_git_blob_free(s);
    return rc;
}

void qn_git_blob_free(qn_git_blob_stream *s)
{
    if (!s) return;
    EVP_MD_CTX_free(s->ctx);
    qn_free(s);
}

qn_code qn_git_blob_update(qn_git_blob_stream *s, const void *bytes, size_t n, qn_err *err)
{
    if (n == 0) return QN_OK;
    s->have += n;
    return EVP_DigestUpdate(s->ctx, bytes, n) == 1 ? QN_OK : refused(err, "take bytes");
}

qn_code qn_git_blob_finish(qn_git_blob_stream *s, char hex[41], qn_err *err)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t digest[EVP_MAX_MD_SIZE] = {0};
    unsigned len = 0;
    hex[0] = '\0';
    if (s->have != s->announced)
        return qn_fail(err, QN_E_FORMAT, "git blob: %llu bytes, expected %llu",
                       (unsigned long long)s->have, (unsigned long long)s->announced);
    if (EVP_DigestFinal_ex(s->ctx, digest, &len) != 1 || len != DIGEST)
        return refused(err, "finish");
    for (size_t i = 0; i < DIGEST; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[2 * DIGEST] = '\0';
    return QN_OK;
}
