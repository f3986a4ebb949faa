/* SPDX-License-Identifier: Apache-2.0 */
#include "tok_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *tok_slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *p = malloc(1u << 20);
    if (!f || !p) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(1);
    }
    *n = fread(p, 1, 1u << 20, f);
    fclose(f);
    return p;
}

qn_tokenizer *tok_open(qt *t, const char *json)
{
    qn_tokenizer *tok = NULL;
    qn_err err = {0};
    const qn_code rc = qn_tokenizer_from_json(&tok, json, strlen(json), NULL, 0, &err);
    QT_OKF(t, rc == QN_OK, "%s", err.msg);
    return tok;
}

void tok_refused(qt *t, const char *json, qn_code code, const char *word)
{
    qn_tokenizer *tok = NULL;
    qn_err err = {0};
    const qn_code rc = qn_tokenizer_from_json(&tok, json, strlen(json), NULL, 0, &err);
    QT_OKF(t, rc == code && !tok, "code %d, expected %d: %s", rc, code, err.msg);
    QT_OKF(t, strstr(err.msg, word) != NULL, "\"%s\" does not name \"%s\"", err.msg, word);
    qn_tokenizer_free(tok);
}

void tok_ids(qt *t, const qn_tokenizer *tok, const char *text, size_t n, qn_encode_options opt,
             const char *want)
{
    qn_ids ids = {0};
    qn_err err = {0};
    char got[1024] = "";
    size_t at = 0;
    if (!tok) return;
    QT_OKF(t, qn_tokenizer_encode(tok, &ids, text, n, opt, &err) == QN_OK, "%s", err.msg);
    for (size_t k = 0; k < ids.n && at < sizeof got - 16; k++)
        at += (size_t)snprintf(got + at, sizeof got - at, k ? " %u" : "%u", ids.id[k]);
    QT_OKF(t, strcmp(got, want) == 0, "\"%.*s\": %s, expected %s", (int)n, text, got, want);
    qn_ids_fini(&ids);
}

void tok_plain(qt *t, const qn_tokenizer *tok, const char *text, const char *want)
{
    tok_ids(t, tok, text, strlen(text), (qn_encode_options){.parse_special = true}, want);
}
