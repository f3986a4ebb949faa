/* SPDX-License-Identifier: Apache-2.0 */
/* hub_stand_in.c - a folder as a repository of a hub on this machine, until it is interrupted:
 *
 *     hub_stand_in ORG/NAME FOLDER [PORT [TOKEN]]
 *     HF_ENDPOINT=http://127.0.0.1:PORT quern get ORG/NAME
 *
 * The first line of its output is the endpoint. With a token, only who sends it may read.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "kit_hub.h"

int main(int argc, char **argv)
{
    sigset_t ends;
    int got = 0;
    if (argc < 3 || argc > 5) {
        fprintf(stderr, "usage: %s ORG/NAME FOLDER [PORT [TOKEN]]\n", argv[0]);
        return 64;
    }
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL); /* its threads too */
    const unsigned long port = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
    kit_hub *h = port <= UINT16_MAX ? kit_hub_start(argv[1], (uint16_t)port) : NULL;
    if (!h || !kit_hub_folder(h, argv[2])) {
        fprintf(stderr, "%s: cannot serve %s at port %lu\n", argv[0], argv[2], port);
        kit_hub_stop(h);
        return 74;
    }
    if (argc > 4) kit_hub_token(h, argv[4]);
    printf("%s\n", kit_hub_endpoint(h));
    fflush(stdout);
    sigwait(&ends, &got);
    kit_hub_stop(h);
    return 0;
}
