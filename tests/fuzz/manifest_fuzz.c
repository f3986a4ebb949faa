/* SPDX-License-Identifier: Apache-2.0 */
/* manifest_fuzz.c - any bytes as a hub's list, chosen from without and with a pattern (the text before a first
 * line end, if it has no '{'). What is kept stays below the folder and can be verified. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "hub/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void want(bool ok)
{
    if (!ok) abort();
}

static void check_file(const qn_hub_file *f)
{
    const size_t n = strlen(f->path);
    want(n > 0 && f->path[0] != '/' && f->path[n - 1] != '/');
    want(!strstr(f->path, "//") && !strchr(f->path, '\\') && !strchr(f->path, '\n'));
    want(strncmp(f->path, "../", 3) != 0 && !strstr(f->path, "/../") && strcmp(f->path, "..") != 0);
    want(n < 3 || strcmp(f->path + n - 3, "/..") != 0);
    want(f->digest[0] == '\0' || strlen(f->digest) == (f->sha256 ? 64 : 40));
}

static void choose(const char *text, size_t n, const char *include)
{
    qn_hub_manifest m;
    qn_err err = {.code = QN_OK};
    qn_code rc = qn_hub_manifest_read(&m, text, n, &err);
    want(rc == QN_OK || (err.msg[0] && m.n == 0));
    if (rc != QN_OK) return;
    want(strlen(m.commit) == 40);
    for (size_t i = 0; i < m.n; i++) check_file(&m.file[i]);
    for (size_t i = 1; i < m.n; i++) want(strcmp(m.file[i - 1].path, m.file[i].path) < 0);
    const size_t listed = m.n;
    rc = qn_hub_manifest_choose(&m, include, &err);
    want(rc == QN_OK ? m.n > 0 && m.n <= listed : err.msg[0] != '\0');
    for (size_t i = 0; rc == QN_OK && i < m.n; i++) {
        check_file(&m.file[i]);
        want(m.file[i].digest[0] && m.file[i].bytes != UINT64_MAX);
        want(m.file[i].path[0] != '.' && !strstr(m.file[i].path, "/."));
    }
    qn_hub_manifest_close(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const size_t live = qn_alloc_live();
    const char *text = (const char *)data;
    const uint8_t *line = n ? memchr(data, '\n', n < 64 ? n : 64) : NULL;
    char include[64] = "";
    if (line && !memchr(data, '{', (size_t)(line - data))) {
        memcpy(include, data, (size_t)(line - data));
        n -= (size_t)(line + 1 - data);
        text = (const char *)line + 1;
        choose(text, n, include);
    } else {
        choose(text, n, NULL);
    }
    want(qn_alloc_live() == live);
    return 0;
}
