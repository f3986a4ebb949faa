/* SPDX-License-Identifier: Apache-2.0 */
/* tls_test.c - a server that nobody vouches for gets no request: neither the path nor the token. */
#include <arpa/inet.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/net.h"
#include "qt.h"

typedef struct server {
    SSL_CTX *ctx;
    int listener;
    char url[64];
    pthread_t thread;
    uint32_t met, read; /* connections; those on which a request came */
} server;

/* Signed by itself, for 127.0.0.1, valid now: only the trust is missing. */
static bool make_certificate(SSL_CTX *ctx)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *c = X509_new();
    X509_NAME *name = c ? X509_get_subject_name(c) : NULL;
    X509_EXTENSION *alt =
        X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "IP:127.0.0.1,DNS:localhost");
    const bool ok =
        key && name && alt && X509_set_version(c, 2) == 1 &&
        ASN1_INTEGER_set(X509_get_serialNumber(c), 1) == 1 &&
        X509_gmtime_adj(X509_getm_notBefore(c), -3600) &&
        X509_gmtime_adj(X509_getm_notAfter(c), 3600) &&
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"127.0.0.1", -1,
                                   -1, 0) == 1 &&
        X509_set_issuer_name(c, name) == 1 && X509_set_pubkey(c, key) == 1 &&
        X509_add_ext(c, alt, -1) == 1 && X509_sign(c, key, EVP_sha256()) > 0 &&
        SSL_CTX_use_certificate(ctx, c) == 1 && SSL_CTX_use_PrivateKey(ctx, key) == 1;
    X509_EXTENSION_free(alt);
    X509_free(c);
    EVP_PKEY_free(key);
    return ok;
}

static void *serve(void *arg)
{
    server *s = arg;
    struct pollfd p = {.fd = s->listener, .events = POLLIN};
    char request[512];
    if (poll(&p, 1, 20000) <= 0) return NULL;
    const int fd = accept(s->listener, NULL, NULL);
    SSL *ssl = SSL_new(s->ctx);
    s->met++;
    (void)SSL_set_fd(ssl, fd);
    if (SSL_accept(ssl) == 1 && SSL_read(ssl, request, sizeof request) > 0) s->read++;
    SSL_free(ssl);
    (void)close(fd);
    return NULL;
}

static bool start(server *s)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t n = sizeof a;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *s = (server){.ctx = SSL_CTX_new(TLS_server_method())};
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (!s->ctx || !make_certificate(s->ctx) || s->listener < 0 ||
        bind(s->listener, (struct sockaddr *)&a, sizeof a) != 0 || listen(s->listener, 4) != 0 ||
        getsockname(s->listener, (struct sockaddr *)&a, &n) != 0)
        return false;
    snprintf(s->url, sizeof s->url, "https://127.0.0.1:%u/secret", ntohs(a.sin_port));
    return pthread_create(&s->thread, NULL, serve, s) == 0;
}

static qn_code on_head(void *ctx, const qn_net_answer *a, qn_err *err)
{
    (void)ctx, (void)a, (void)err;
    return QN_OK;
}

static qn_code on_body(void *ctx, const void *bytes, size_t n, qn_err *err)
{
    (void)ctx, (void)bytes, (void)n, (void)err;
    return QN_OK;
}

static void a_certificate_that_nobody_vouches_for_is_refused(qt *t)
{
    server s;
    qn_net *net = NULL;
    qn_net_answer a;
    qn_err err = {.code = QN_OK};
    if (!QT_OK(t, start(&s)) ||
        !QT_EQ(t, qn_net_open(&net, &(qn_net_options){.agent = "quern/test"}, &err), QN_OK))
        return;
    const qn_net_request r = {.url = s.url, .bearer = "hf_key", .head = on_head, .body = on_body};
    QT_EQ(t, qn_net_get(net, &r, &a, &err), QN_E_IO);
    QT_OKF(t, strstr(err.msg, "certificate of 127.0.0.1") && !a.passing, "%s", err.msg);
    QT_EQ(t, pthread_join(s.thread, NULL), 0);
    QT_OK(t, s.met == 1 && s.read == 0 && a.status == 0);
    qn_net_close(net);
    SSL_CTX_free(s.ctx);
    (void)close(s.listener);
}

QT_MAIN(QT(a_certificate_that_nobody_vouches_for_is_refused))
