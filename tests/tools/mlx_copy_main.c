/* SPDX-License-Identifier: Apache-2.0 */
/* mlx_copy_main.c - mlx_copy FILE.gguf 4|8 DIR: makes the copy, prints the digest of its tensors. */
#include <stdio.h>
#include <string.h>

#include "mlx_copy.h"

int main(int argc, char **argv)
{
    qn_err err = {0};
    char digest[65];
    if (argc != 4 || strlen(argv[2]) != 1) {
        fputs("usage: mlx_copy FILE.gguf 4|8 DIR\n", stderr);
        return 64;
    }
    if (mlx_copy(argv[1], (uint32_t)(argv[2][0] - '0'), argv[3], digest, &err) != QN_OK) {
        fprintf(stderr, "mlx_copy: %s\n", err.msg);
        return 1;
    }
    puts(digest);
    return 0;
}
