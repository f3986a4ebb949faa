/* SPDX-License-Identifier: Apache-2.0 */
/* symbols_test.c - what libquern.so exports is exactly abi/quern.symbols, and exactly what the public
 * headers declare. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qt.h"

enum { MAX_NAMES = 512 };

typedef struct names {
    char *name[MAX_NAMES];
    size_t n;
} names;

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Lines of a command's output, sorted. */
static names lines_of(const char *command)
{
    names all = {{0}, 0};
    char line[256];
    FILE *f = popen(command, "r");
    while (f && all.n < MAX_NAMES && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] && line[0] != '#') all.name[all.n++] = strdup(line);
    }
    if (f) pclose(f);
    qsort(all.name, all.n, sizeof all.name[0], by_text);
    return all;
}

static void same_names(qt *t, const names *a, const char *where_a, const names *b,
                       const char *where_b)
{
    size_t i = 0, k = 0;
    QT_OK(t, a->n > 10 && b->n > 10);
    while (i < a->n || k < b->n) {
        const int order = i == a->n ? 1 : k == b->n ? -1 : strcmp(a->name[i], b->name[k]);
        QT_OKF(t, order == 0, "%s is in %s only", order < 0 ? a->name[i] : b->name[k],
               order < 0 ? where_a : where_b);
        i += order <= 0;
        k += order >= 0;
    }
}

static void release(names *a)
{
    for (size_t i = 0; i < a->n; i++) free(a->name[i]);
}

static void the_library_exports_what_the_list_says(qt *t)
{
    names list = lines_of("cat abi/quern.symbols");
    names exported = lines_of("nm -D --defined-only '" QUERN_LIBRARY "' | awk '{print $3}'");
    same_names(t, &exported, "the library", &list, "abi/quern.symbols");
    release(&list);
    release(&exported);
}

static void the_headers_declare_what_the_list_says(qt *t)
{
    names list = lines_of("cat abi/quern.symbols");
    names declared = lines_of("cat include/quern/*.h | tr '\\n' ' ' | grep -o 'QUERN_API [^(]*(' | "
                              "grep -o 'quern_[a-z_]*($' | tr -d '('");
    same_names(t, &declared, "include/quern", &list, "abi/quern.symbols");
    release(&list);
    release(&declared);
}

QT_MAIN(QT(the_library_exports_what_the_list_says), QT(the_headers_declare_what_the_list_says))
