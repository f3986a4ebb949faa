/* SPDX-License-Identifier: Apache-2.0 */
/* golden.c - reading goldens. */
#include "golden.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"

enum { MAX_FILE = 64 << 20 };

qn_json *golden_json(qt *t, const char *path)
{
    uint8_t *bytes = NULL;
    size_t n = 0;
    qn_json *root = NULL;
    qn_err err = {0};
    qn_code rc = qn_file_read(&bytes, &n, path, MAX_FILE, &err);
    if (rc == QN_OK) rc = qn_json_parse(&root, (const char *)bytes, n, MAX_FILE, &err);
    qn_free(bytes);
    QT_OKF(t, rc == QN_OK, "%s: %s", path, err.msg);
    return root;
}

static bool read_logits(qt *t, golden *g, const char *name, const char *file)
{
    char path[512];
    uint8_t *bytes = NULL;
    size_t n = 0;
    qn_err err = {0};
    const size_t want = (size_t)g->n_tokens * g->vocab * sizeof(float);
    snprintf(path, sizeof path, GOLDEN_ROOT "/%s/%s", name, file);
    const qn_code rc = qn_file_read(&bytes, &n, path, MAX_FILE, &err);
    const bool ok = QT_OKF(t, rc == QN_OK && n == want, "%s: %zu bytes, expected %zu %s", path, n,
                           want, err.msg);
    if (ok) {
        g->logits = qt_fill_f32(n / sizeof(float), 0);
        memcpy(g->logits, bytes, n);
    }
    qn_free(bytes);
    return ok;
}

bool golden_open(qt *t, golden *g, const char *name)
{
    char path[256], folder[128];
    size_t n = 0;
    bool ok = true;
    memset(g, 0, sizeof *g);
    snprintf(folder, sizeof folder, "%s%s", strchr(name, '/') ? "" : "llama/", name);
    name = folder;
    snprintf(path, sizeof path, GOLDEN_ROOT "/%s/golden.json", name);
    qn_json *root = golden_json(t, path);
    if (!root) return false;
    const qn_json *tokens = qn_json_get(root, "tokens"), *shape = qn_json_get(root, "shape");
    const char *model = qn_json_str(qn_json_get(root, "model"), &n);
    const char *logits = qn_json_str(qn_json_get(root, "logits"), &n);
    g->n_tokens = (uint32_t)qn_json_len(tokens);
    g->vocab = (uint32_t)qn_json_int(qn_json_at(shape, 1), 0);
    g->noise = qn_json_num(qn_json_get(root, "float32_against_float64"), 0);
    ok = QT_OK(t, logits && g->n_tokens && g->vocab &&
                      qn_json_int(qn_json_at(shape, 0), 0) == g->n_tokens);
    if (ok) {
        snprintf(g->model, sizeof g->model, GOLDEN_ROOT "/%s%s%s", name, model ? "/" : "",
                 model && strcmp(model, ".") != 0 ? model : "");
        g->tokens = calloc(g->n_tokens, sizeof *g->tokens);
        for (uint32_t i = 0; i < g->n_tokens; i++)
            g->tokens[i] = (uint32_t)qn_json_int(qn_json_at(tokens, i), 0);
        ok = read_logits(t, g, name, logits);
    }
    qn_json_free(root);
    return ok;
}

void golden_close(golden *g)
{
    free(g->tokens);
    qt_release(1, g->logits);
    memset(g, 0, sizeof *g);
}

double golden_distance(const float *a, const float *b, size_t n)
{
    double worst = 0, top = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(a[i])) return 1e30;
        worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
        top = fmax(top, fabs((double)b[i]));
    }
    return worst / top;
}
