/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_render.c - TEMPLATE VARIABLES.json: prints what the template gives for these variables. */
#include <stdio.h>

#include "text/jinja.h"

static qn_code run(qn_buf *text, const qn_buf *source, const qn_buf *values, qn_err *err)
{
    qn_jinja *t = NULL;
    qn_json *v = NULL;
    qn_code rc = QN_OK;
    QN_TRY_OUT(qn_json_parse(&v, (const char *)values->data, values->len, 1 << 26, err));
    QN_TRY_OUT(qn_jinja_new(&t, (const char *)source->data, source->len, err));
    const qn_json *all[] = {v};
    const qn_jinja_input in = {.variables = all, .n_variables = 1, .now_s = 1700000000};
    QN_TRY_OUT(qn_jinja_render(text, t, &in, err));
out:
    qn_jinja_free(t);
    qn_json_free(v);
    return rc;
}

int main(int argc, char **argv)
{
    qn_err err = {0};
    qn_buf file[2], text;
    qn_buf_init(&text, 1 << 26);
    for (int i = 0; i < 2; i++) {
        qn_buf_init(&file[i], 1 << 26);
        FILE *f = i + 1 < argc ? fopen(argv[i + 1], "rb") : NULL;
        char part[4096];
        if (!f) return 2;
        for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;)
            if (qn_buf_append(&file[i], part, n, &err) != QN_OK) return 2;
        fclose(f);
    }
    const qn_code rc = run(&text, &file[0], &file[1], &err);
    if (rc == QN_OK)
        fwrite(text.data, 1, text.len, stdout);
    else
        fprintf(stderr, "%s\n", err.msg);
    qn_buf_fini(&file[0]);
    qn_buf_fini(&file[1]);
    qn_buf_fini(&text);
    return rc == QN_OK ? 0 : 1;
}
