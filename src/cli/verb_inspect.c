/* SPDX-License-Identifier: Apache-2.0 */
/* verb_inspect.c - `quern inspect NAME|FILE`: what a model file holds, without loading it. */
#include <string.h>

#include "cli/open.h"

typedef struct inspect_opts {
    bool json, tensors, arrays;
} inspect_opts;

static const qn_opt options[] = {
    {"json", QN_OPT_FLAG, offsetof(inspect_opts, json), NULL, "one JSON object on stdout", 0, 0, 0},
    {"tensors", QN_OPT_FLAG, offsetof(inspect_opts, tensors), NULL, "list every tensor", 0, 0, 0},
    {"arrays", QN_OPT_FLAG, offsetof(inspect_opts, arrays), NULL,
     "long arrays of metadata in full, not their beginning", 0, 0, 0},
    QN_OPT_END,
};

enum { SHOWN_TEXT = 100 };

/* Strings of files may hold anything: only printable characters reach a terminal. */
static void print_text(qn_io *io, const char *p, size_t n)
{
    const size_t shown = n < SHOWN_TEXT ? n : SHOWN_TEXT;
    for (size_t i = 0; i < shown; i++) {
        const unsigned char c = (unsigned char)p[i];
        if (c == '\n')
            qn_io_print(io, "\\n");
        else if (c < 0x20 || c == 0x7f)
            qn_io_print(io, "\\x%02x", c);
        else if (c == 0xC2 && i + 1 < n && (unsigned char)p[i + 1] < 0xA0)
            qn_io_print(io, "?"), i++; /* C1 control characters */
        else
            qn_io_write(io, p + i, 1);
    }
    if (shown < n) qn_io_print(io, "... (%zu bytes)", n);
}

static void print_value(qn_io *io, const qn_json *v)
{
    size_t n = 0;
    const char *text = qn_json_str(v, &n);
    const void *it = NULL;
    const char *key = NULL;
    const qn_json *item = NULL;
    switch (qn_json_type_of(v)) {
    case QN_JSON_NULL:
        qn_io_print(io, "null");
        break;
    case QN_JSON_BOOL:
        qn_io_print(io, qn_json_bool(v, false) ? "true" : "false");
        break;
    case QN_JSON_INT:
        qn_io_print(io, "%lld", (long long)qn_json_int(v, 0));
        break;
    case QN_JSON_REAL:
        qn_io_print(io, "%.9g", qn_json_num(v, 0));
        break;
    case QN_JSON_STRING:
        print_text(io, text, n);
        break;
    case QN_JSON_ARRAY:
        for (size_t i = 0; i < qn_json_len(v); i++) {
            qn_io_print(io, i ? ", " : "[");
            print_value(io, qn_json_at(v, i));
        }
        qn_io_print(io, qn_json_len(v) ? "]" : "[]");
        break;
    case QN_JSON_OBJECT:
        for (bool first = true; qn_json_next(v, &it, &key, &item); first = false) {
            qn_io_print(io, first ? "{" : ", ");
            print_text(io, key, strlen(key));
            qn_io_print(io, ": ");
            print_value(io, item);
        }
        qn_io_print(io, qn_json_len(v) ? "}" : "{}");
        break;
    }
}

static void print_members(qn_io *io, const qn_json *object)
{
    const void *it = NULL;
    const char *key = NULL;
    const qn_json *value = NULL;
    while (qn_json_next(object, &it, &key, &value)) {
        qn_io_print(io, "  ");
        print_text(io, key, strlen(key));
        qn_io_print(io, " = ");
        print_value(io, value);
        qn_io_print(io, "\n");
    }
}

static void print_list(qn_io *io, const char *title, const qn_json *list)
{
    if (qn_json_type_of(list) != QN_JSON_ARRAY) return;
    qn_io_print(io, "%s\n", title);
    for (size_t i = 0; i < qn_json_len(list); i++) {
        qn_io_print(io, "  ");
        print_value(io, qn_json_at(list, i));
        qn_io_print(io, "\n");
    }
}

static void print_report(qn_io *io, const qn_json *root)
{
    static const char *const heads[] = {"path",  "source", "version",     "type",
                                        "files", "bytes",  "tensor_count"};
    for (size_t i = 0; i < QN_LEN(heads); i++) {
        if (!qn_json_get(root, heads[i])) continue;
        qn_io_print(io, "%s: ", heads[i]);
        print_value(io, qn_json_get(root, heads[i]));
        qn_io_print(io, "\n");
    }
    qn_io_print(io, "metadata\n");
    print_members(io, qn_json_get(root, "metadata"));
    print_list(io, "census", qn_json_get(root, "census"));
    print_list(io, "tensors", qn_json_get(root, "tensors"));
    if (qn_json_get(root, "model")) {
        qn_io_print(io, "model\n");
        print_members(io, qn_json_get(root, "model"));
    } else {
        qn_io_print(io, "problem: ");
        print_value(io, qn_json_get(root, "problem"));
        qn_io_print(io, "\n");
    }
}

static qn_code inspect(const void *opts, qn_args args, qn_io *io, qn_err *err)
{
    qn_code rc = QN_OK;
    const inspect_opts *o = opts;
    quern_inspect_options io_opts = QUERN_INSPECT_OPTIONS_INIT;
    quern_report *report = NULL;
    qn_json *root = NULL;
    char *path = NULL;
    size_t n = 0;
    io_opts.flags =
        (o->tensors ? QUERN_INSPECT_TENSORS : 0u) | (o->arrays ? QUERN_INSPECT_TOKENIZER : 0u);
    QN_TRY_OUT(qn_cli_model(&path, args.v[0], io, err));
    QN_TRY_OUT(quern_inspect(&report, path, &io_opts, err));
    const char *text = quern_report_json(report, &n);
    if (o->json) {
        qn_io_write(io, text, n);
        qn_io_print(io, "\n");
    } else {
        QN_TRY_OUT(qn_json_parse(&root, text, n, SIZE_MAX, err));
        print_report(io, root);
    }
    QN_TRY_OUT(qn_io_flush(io, err));
out:
    qn_json_free(root);
    quern_report_free(report);
    quern_text_free(path);
    return rc;
}

const qn_verb qn_verb_inspect = {
    "inspect",
    "NAME|FILE",
    "tell what a model file holds, without loading it",
    "NAME is one of \"quern ls\"; FILE is a GGUF file, a .safetensors file with its config.json\n"
    "beside it, or a folder of safetensors.\n"
    "Works on files of unsupported families and on damaged ones, as far as their headers go.",
    options,
    NULL,
    sizeof(inspect_opts),
    1,
    1,
    inspect};
