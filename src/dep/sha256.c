/* SPDX-License-Identifier: Apache-2.0 */
/* sha256.c - SHA-256 by OpenSSL's libcrypto, which uses the processor's SHA instructions. */
#include <openssl/evp.h>

#include "base/alloc.h"
#include "dep/hash.h"

struct qn_sha256_stream {
    EVP_MD_CTX *ctx; /* the library's own memory, about 400 bytes, not counted */
};

static qn_code refused(qn_err *err, const char *what)
{
    return qn_fail(err, QN_E_INTERNAL, "sha-256: libcrypto refused to %s", what);
}

qn_code qn_sha256_new(qn_sha256_stream **out, qn_err *err)
{
    qn_code rc = QN_OK;
    *out = NULL;
    qn_sha256_stream *s = qn_zalloc(sizeof *s);
    if (!s) return qn_fail(err, QN_E_NOMEM, "sha-256 stream");
    s->ctx = EVP_MD_CTX_new();
    if (!s->ctx) {
        rc = qn_fail(err, QN_E_NOMEM, "sha-256 context");
        goto out;
    }
    if (EVP_DigestInit_ex(s->ctx, EVP_sha256(), NULL) != 1) {
        rc = refused(err, "start");
        goto out;
    }
    *out = s;
    s = NULL;
out:
    qn_sha256_free(s);
    return rc;
}

void qn_sha256_free(qn_sha256_stream *s)
{
    if (!s) return;
    EVP_MD_CTX_free(s->ctx);
    qn_free(s);
}

qn_code qn_sha256_update(qn_sha256_stream *s, const void *bytes, size_t n, qn_err *err)
{
    if (n == 0) return QN_OK;
    return EVP_DigestUpdate(s->ctx, bytes, n) == 1 ? QN_OK : refused(err, "take bytes");
}

qn_code qn_sha256_finish(qn_sha256_stream *s, qn_sha256_digest *out, qn_err *err)
{
    unsigned len = 0;
    *out = (qn_sha256_digest){{0}};
    if (EVP_DigestFinal_ex(s->ctx, out->bytes, &len) != 1 || len != sizeof out->bytes)
        return refused(err, "finish");
    return QN_OK;
}

qn_code qn_sha256(qn_sha256_digest *out, const void *bytes, size_t n, qn_err *err)
{
    qn_code rc = QN_OK;
    qn_sha256_stream *s = NULL;
    *out = (qn_sha256_digest){{0}};
    QN_TRY_OUT(qn_sha256_new(&s, err));
    QN_TRY_OUT(qn_sha256_update(s, bytes, n, err));
    QN_TRY_OUT(qn_sha256_finish(s, out, err));
out:
    qn_sha256_free(s);
    return rc;
}

void qn_sha256_hex(char out[65], const qn_sha256_digest *digest)
{
    static const char hex[] = "0123456789abcdef";
    for (size_t i = 0; i < sizeof digest->bytes; i++) {
        out[2 * i] = hex[digest->bytes[i] >> 4];
        out[2 * i + 1] = hex[digest->bytes[i] & 15];
    }
    out[64] = '\0';
}
