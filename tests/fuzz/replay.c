/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - runs a fuzz target over the files of a directory, as a test: a crash or a sanitizer's
 * report fails it, and so does an empty corpus. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Exactly as many bytes as the file has, so that a read past the end is seen. */
static int replay(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = NULL;
    long n = -1;
    if (f && fseek(f, 0, SEEK_END) == 0) n = ftell(f);
    if (n >= 0 && fseek(f, 0, SEEK_SET) == 0) data = malloc(n ? (size_t)n : 1);
    const int ok = data && fread(data, 1, (size_t)n, f) == (size_t)n;
    if (f) fclose(f);
    if (ok) (void)LLVMFuzzerTestOneInput(data, (size_t)n);
    if (!ok) fprintf(stderr, "%s: cannot be read\n", path);
    free(data);
    return ok;
}

int main(int argc, char **argv)
{
    size_t inputs = 0, faults = 0;
    DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
    if (!dir) fprintf(stderr, "usage: %s CORPUS_DIRECTORY\n", argv[0]);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char path[4096];
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", argv[1], e->d_name);
        inputs++;
        faults += !replay(path);
    }
    if (dir) closedir(dir);
    printf("%zu inputs\n%d passed, %d failed\n", inputs, inputs && !faults, !(inputs && !faults));
    return !inputs || faults;
}
