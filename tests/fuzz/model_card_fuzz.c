/* SPDX-License-Identifier: Apache-2.0 */
/* model_card_fuzz.c - any bytes as the README of a repository, and as names of models and files. What is
 * read lies inside the text; a name that is taken cannot leave its folder. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "hub/hub.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void want(bool ok)
{
    if (!ok) abort();
}

static void names(const char *name)
{
    const size_t n = strlen(name);
    const bool inside = qn_hub_is_inside(name), repo = qn_hub_is_repo(name);
    if (repo) want(strchr(name, '/') == strrchr(name, '/') && n >= 3 && n <= 2 * 96 + 1);
    if (repo) want(inside); /* also as a folder: "ORG/NAME" */
    if (!inside) return;
    want(n > 0 && name[0] != '/' && name[0] != '.' && name[n - 1] != '/');
    want(!strstr(name, "/.") && !strstr(name, "//") && !strchr(name, '\\') && !strchr(name, '\n'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const size_t live = qn_alloc_live();
    char *text = qn_alloc(n + 1);
    if (!text) return 0;
    if (n) memcpy(text, data, n);
    text[n] = '\0';
    const qn_str license = qn_hub_card_license(qn_str_make(text, n));
    if (license.n) {
        want(license.p >= text && license.p + license.n <= text + n);
        want(!memchr(license.p, '\n', license.n));
    }
    names(text);
    qn_free(text);
    want(qn_alloc_live() == live);
    return 0;
}
