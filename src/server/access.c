/* SPDX-License-Identifier: Apache-2.0 */
/* access.c - who may ask. A page of another origin in a browser on this machine reaches 127.0.0.1 too, so
 * Host, Origin and Sec-Fetch-Site are looked at; programs send none of the latter two.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "server/server_int.h"

static bool same(qn_str a, const char *b)
{
    return a.n == strlen(b) && strncasecmp(a.p, b, a.n) == 0;
}

/* "name:port" without the port; "[::1]:80" gives "[::1]". */
static qn_str name_of(qn_str host)
{
    for (size_t i = host.n; i > 0; i--) {
        if (host.p[i - 1] == ']') break;
        if (host.p[i - 1] == ':') return qn_str_slice(host, 0, i - 1);
    }
    return host;
}

/* "[::1]" without the brackets. */
static qn_str bare_of(qn_str name)
{
    const bool bracketed = name.n > 2 && name.p[0] == '[' && name.p[name.n - 1] == ']';
    return bracketed ? qn_str_slice(name, 1, name.n - 1) : name;
}

static bool is_address(qn_str name, struct in_addr *v4)
{
    char text[64];
    struct in6_addr v6;
    const bool bracketed = bare_of(name).n != name.n;
    name = bare_of(name);
    if (!name.n || name.n >= sizeof text) return false;
    memcpy(text, name.p, name.n);
    text[name.n] = '\0';
    v4->s_addr = 0;
    return bracketed ? inet_pton(AF_INET6, text, &v6) == 1 : inet_pton(AF_INET, text, v4) == 1;
}

static bool host_fits(const qn_access *a, qn_str host)
{
    char own[256] = "", local[264];
    struct in_addr v4 = {0};
    const qn_str name = name_of(host);
    const bool address = is_address(name, &v4);
    if (same(name, "localhost") || same(name, "[::1]") || same(name, "host.docker.internal") ||
        same(name, a->host) || same(bare_of(name), a->host))
        return true;
    if (address && ntohl(v4.s_addr) >> 24 == 127) return true;
    if (!a->any_host) return false;
    if (address) return true;
    if (gethostname(own, sizeof own - 1) != 0 || !own[0]) return false;
    snprintf(local, sizeof local, "%s.local", own);
    return same(name, own) || same(name, local);
}

/* "http://" or "https://" and exactly the Host that was asked. */
static bool origin_fits(qn_str origin, qn_str host)
{
    const qn_str http = QN_STR("http://"), https = QN_STR("https://");
    const size_t skip = qn_str_has_prefix(origin, https)  ? https.n
                        : qn_str_has_prefix(origin, http) ? http.n
                                                          : 0;
    const qn_str rest = qn_str_slice(origin, skip, origin.n);
    return skip && rest.n == host.n && host.n && strncasecmp(rest.p, host.p, host.n) == 0;
}

/* Takes as long for a wrong key as for the right one, whatever is wrong with it. */
static bool key_fits(const char *key, qn_str got)
{
    const size_t n = strlen(key);
    size_t differ = n ^ got.n;
    for (size_t i = 0; i < got.n; i++)
        differ |= (size_t)((unsigned char)key[n ? i % n : 0] ^ (unsigned char)got.p[i]);
    return differ == 0 && n > 0;
}

static bool has_key(const qn_access *a, const qn_http_request *r)
{
    const qn_str bearer = QN_STR("Bearer ");
    qn_str got = r->api_key;
    if (r->authorization.n > bearer.n && strncasecmp(r->authorization.p, bearer.p, bearer.n) == 0)
        got = qn_str_trim(qn_str_slice(r->authorization, bearer.n, r->authorization.n));
    return key_fits(a->key, got);
}

/* The page itself must load before it can ask its reader for the key. */
static bool is_open(qn_str path)
{
    return qn_str_eq_z(path, "/health") || qn_str_eq_z(path, "/") ||
           qn_str_has_prefix(path, QN_STR("/assets/"));
}

qn_code qn_access_check(const qn_access *a, const qn_http_request *r, qn_api_error *error)
{
    const bool reads = qn_str_eq_z(r->method, "GET") || qn_str_eq_z(r->method, "HEAD");
    if (r->host.n && !host_fits(a, r->host))
        return qn_api_fail(error, QN_API_BAD_HOST, NULL,
                           "host \"%.*s\" is not this server's; expected localhost or %s",
                           QN_STR_ARG(r->host), a->host);
    if (r->origin.n && !origin_fits(r->origin, r->host))
        return qn_api_fail(error, QN_API_CROSS_ORIGIN, NULL,
                           "requests of pages from \"%.*s\" are refused", QN_STR_ARG(r->origin));
    if (r->fetch_site.n && !same(r->fetch_site, "same-origin") && !same(r->fetch_site, "none") &&
        !(reads && same(r->fetch_mode, "navigate") && qn_str_eq_z(r->path, "/")))
        return qn_api_fail(error, QN_API_CROSS_SITE, NULL, "requests of other sites are refused");
    if (a->key && !is_open(r->path) && !has_key(a, r))
        return qn_api_fail(error, QN_API_BAD_KEY, NULL,
                           "the API key is missing or wrong; send Authorization: Bearer KEY");
    return QN_OK;
}
