/* SPDX-License-Identifier: Apache-2.0 */
/* http_listen.c - from a host and a port to sockets that listen. A name may have several addresses
 * ("localhost": 127.0.0.1 and ::1); all that this machine has are taken, under one port. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/http_int.h"

enum { BACKLOG = 511, PORT_TRIES = 16 };

static uint16_t *port_of(struct sockaddr *a)
{
    return a->sa_family == AF_INET6 ? &((struct sockaddr_in6 *)(void *)a)->sin6_port
                                    : &((struct sockaddr_in *)(void *)a)->sin_port;
}

/* errno tells why -1. "::" is given both families where it is the only address. */
static int listen_on(const struct addrinfo *a)
{
    const int on = 1, off = 0;
    const int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* the accepted inherit it */
    if (a->ai_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)a->ai_addr;
        const bool any = IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr);
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, any ? &off : &on, sizeof on);
    }
    if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0) return fd;
    const int why = errno;
    close(fd);
    errno = why;
    return -1;
}

static void stop_listening(qn_http *h)
{
    for (size_t i = 0; i < h->n_listeners; i++) close(h->listeners[i].fd);
    h->n_listeners = 0;
}

static uint16_t bound_port(int fd)
{
    struct sockaddr_storage a = {0};
    socklen_t n = sizeof a;
    if (getsockname(fd, (struct sockaddr *)&a, &n) != 0) return 0;
    return ntohs(*port_of((struct sockaddr *)&a));
}

/* An address that this machine does not have (no IPv6, say) is passed by. 0, or errno of the last. */
static int listen_all(qn_http *h, const struct addrinfo *all, uint16_t port)
{
    int why = EADDRNOTAVAIL;
    for (const struct addrinfo *a = all; a && h->n_listeners < QN_HTTP_MAX_LISTENERS;
         a = a->ai_next) {
        *port_of(a->ai_addr) = htons(port);
        const int fd = listen_on(a);
        if (fd < 0) {
            why = errno;
            if (why == EADDRNOTAVAIL || why == EAFNOSUPPORT) continue;
            stop_listening(h);
            return why;
        }
        h->listeners[h->n_listeners++] = (qn_http_listener){QN_HTTP_FROM_LISTENER, fd};
        if (!port) port = bound_port(fd); /* the other addresses get the same */
    }
    return h->n_listeners ? 0 : why;
}

qn_code qn_http_listen(qn_http *h, qn_err *err)
{
    struct addrinfo *all = NULL;
    struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    const qn_http_options *o = &h->o;
    int found = getaddrinfo(o->host, NULL, &hints, &all);
    if (found == EAI_NONAME) { /* a name: only these ask the system's resolver */
        hints.ai_flags = AI_PASSIVE;
        found = getaddrinfo(o->host, NULL, &hints, &all);
    }
    if (found == EAI_MEMORY) return qn_fail(err, QN_E_NOMEM, "no memory to look up %s", o->host);
    if (found != 0)
        return qn_fail(err, QN_E_INVAL,
                       "host \"%s\": %s; expected an address of this machine or a name", o->host,
                       gai_strerror(found));
    int why = listen_all(h, all, o->port);
    for (int i = 0; o->port == 0 && why == EADDRINUSE && i < PORT_TRIES; i++)
        why = listen_all(h, all, 0); /* the second address had the first one's port taken */
    freeaddrinfo(all);
    if (why == EADDRINUSE)
        return qn_fail(err, QN_E_IO,
                       "port %u of %s is in use; --port N takes another, --port 0 a free one",
                       (unsigned)o->port, o->host);
    if (why)
        return qn_fail_sys(err, QN_E_IO, why, "listening on %s:%u", o->host, (unsigned)o->port);
    return QN_OK;
}

uint16_t qn_http_port(const qn_http *h)
{
    return h->n_listeners ? bound_port(h->listeners[0].fd) : 0;
}
