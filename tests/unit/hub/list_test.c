/* SPDX-License-Identifier: Apache-2.0 */
/* list_test.c - what the list says of each kind of model, and what broken files do to it: nothing. */
#include "../format/bytes.h"
#include "tree.h"

static bool only_llama(qn_str type) { return qn_str_eq_z(type, "llama"); }

static quern_store_list *list_of(qt *t, const tree *x, const char *query)
{
    quern_store_list *l = NULL;
    qn_err err = {0};
    const qn_code rc = qn_hub_list(&l, &x->hub, query, only_llama, &err);
    QT_OKF(t, rc == QN_OK, "%s", err.msg);
    return l;
}

static const quern_store_model *row(const quern_store_list *l, const char *name)
{
    for (size_t i = 0; l && i < l->n; i++)
        if (strcmp(l->model[i].name, name) == 0) return &l->model[i];
    return NULL;
}

static void a_gguf_file_tells_about_itself(qt *t)
{
    tree *x = tree_new("gguf");
    tree_copy(x, "home/models/tiny.gguf", TREE_GGUF);
    quern_store_list *l = list_of(t, x, NULL);
    const quern_store_model *m = row(l, "tiny");
    if (QT_OK(t, m != NULL && l->n == 1)) {
        QT_EQ(t, m->size, sizeof *m);
        QT_STR(t, m->path, tree_at(x, "home/models/tiny.gguf"));
        QT_STR(t, m->format, "gguf");
        QT_STR(t, m->family, "llama");
        QT_STR(t, m->quant, "Q4_1");
        QT_EQ(t, m->bytes, 99840);
        QT_EQ(t, m->context, 512);
        QT_OK(t, m->parameters > 100000 && m->parameters < 300000);
        QT_OK(t, m->canonical == 1 && m->supported == 1);
        QT_OK(t, m->revision == NULL && m->license == NULL);
    }
    qn_hub_list_free(l);
    free(x);
}

static void a_folder_tells_about_itself(qt *t)
{
    tree *x = tree_new("folder");
    tree_copy(x, "home/models/mlx/config.json", TREE_MLX "config.json");
    tree_copy(x, "home/models/mlx/model.safetensors", TREE_MLX "model.safetensors");
    tree_text(x, "home/models/mlx/README.md",
              "---\r\nlanguage: en\r\nlicense: \"mit\"\r\n---\r\n# A model\r\n");
    tree_copy(x, "home/models/bf16/config.json", "tests/golden/gemma3/st-bf16/config.json");
    tree_copy(x, "home/models/bf16/model.safetensors",
              "tests/golden/gemma3/st-bf16/model.safetensors");
    tree_text(x, "home/models/bf16/tokenizer_config.json", "{\"chat_template\":\"{{x}}\"}");
    quern_store_list *l = list_of(t, x, NULL);
    const quern_store_model *m = row(l, "mlx");
    if (QT_OK(t, m != NULL)) {
        QT_STR(t, m->path, tree_at(x, "home/models/mlx"));
        QT_STR(t, m->format, "safetensors");
        QT_STR(t, m->family, "llama");
        QT_STR(t, m->quant, "4-bit affine");
        QT_STR(t, m->license, "mit");
        QT_EQ(t, m->bytes, 124196);
        QT_EQ(t, m->context, 512);
        QT_EQ(t, m->has_template, 0);
        QT_EQ(t, m->supported, 1);
        QT_EQ(t, m->parameters, 210176); /* 101 x 128, two layers of 98,560, a norm of 128 */
    }
    m = row(l, "bf16");
    if (QT_OK(t, m != NULL)) {
        QT_STR(t, m->quant, "BF16");
        QT_OK(t, m->supported == 0 && m->has_template == 1 && m->license == NULL);
        QT_OK(t, m->parameters > 0 && m->parameters < m->bytes / 2);
    }
    qn_hub_list_free(l);
    free(x);
}

static void snapshots_are_listed_with_the_one_that_counts(qt *t)
{
    tree *x = tree_new("snapshots");
    for (int i = 0; i < 2; i++) {
        const char *commit = i ? "bbbb" : "aaaa";
        tree_snapshot(x, "Org--M", commit, "config.json", TREE_MLX "config.json");
        tree_snapshot(x, "Org--M", commit, "model.safetensors", TREE_MLX "model.safetensors");
    }
    tree_snapshot(x, "Org--G", "cccc", "g-Q4_1.gguf", TREE_GGUF);
    tree_snapshot(x, "Org--G", "cccc", "g-F16.gguf", TREE_GGUF_PLAIN);
    tree_text(x, "cache/models--Org--G/snapshots/cccc/README.md",
              "---\nlicense:\n- apache-2.0\n- other\n---\n");
    tree_main(x, "Org--M", "aaaa");
    quern_store_list *l = list_of(t, x, "ORG/");
    if (QT_EQ(t, l->n, 4)) {
        QT_STR(t, l->model[0].name, "Org/G:g-F16");
        QT_STR(t, l->model[0].license, "apache-2.0");
        QT_STR(t, l->model[0].quant, "F16");
        QT_STR(t, l->model[1].name, "Org/G:g-Q4_1");
        QT_STR(t, l->model[1].revision, "cccc");
        QT_OK(t, l->model[0].canonical && l->model[1].canonical);
        QT_STR(t, l->model[2].name, "Org/M");
        QT_STR(t, l->model[2].revision, "aaaa");
        QT_STR(t, l->model[3].revision, "bbbb");
        QT_OK(t, l->model[2].canonical && !l->model[3].canonical);
    }
    qn_hub_list_free(l);
    l = list_of(t, x, "q4_1");
    QT_EQ(t, l->n, 1);
    qn_hub_list_free(l);
    free(x);
}

static void a_split_model_is_one_row_with_all_its_bytes(qt *t)
{
    tree *x = tree_new("split");
    tree_copy(x, "home/models/m-00001-of-00003.gguf",
              "tests/golden/llama/gguf-f16-split/model-00001-of-00003.gguf");
    tree_copy(x, "home/models/m-00002-of-00003.gguf",
              "tests/golden/llama/gguf-f16-split/model-00002-of-00003.gguf");
    quern_store_list *l = list_of(t, x, NULL);
    QT_EQ(t, l->n, 0); /* one part is missing still */
    qn_hub_list_free(l);
    tree_copy(x, "home/models/m-00003-of-00003.gguf",
              "tests/golden/llama/gguf-f16-split/model-00003-of-00003.gguf");
    l = list_of(t, x, NULL);
    if (QT_EQ(t, l->n, 1)) {
        QT_STR(t, l->model[0].name, "m");
        QT_EQ(t, l->model[0].bytes, 53184 + 50240 + 37472);
    }
    qn_hub_list_free(l);
    free(x);
}

static void put_model(const tree *x, const char *rel, const char *type, const char *arch)
{
    bytes *b = calloc(1, sizeof *b);
    if (!b) abort();
    put_gguf_header(b, 3, 0, 4);
    put_key_text(b, "general.type", type);
    put_key_text(b, "general.architecture", arch);
    put_key_text(b, "general.license", "MIT \x1b[31m\xff licence");
    put_key_text(b, "tokenizer.chat_template", "{{ x }}");
    pad_to(b, 32);
    tree_put(x, rel, b->p, b->n);
    free(b);
}

static void what_says_it_is_no_model_is_left_out(qt *t)
{
    tree *x = tree_new("kinds");
    put_model(x, "home/models/lora.gguf", "adapter", "llama");
    put_model(x, "home/models/eyes.gguf", "model", "clip");
    put_model(x, "home/models/odd.gguf", "model", "newer");
    quern_store_list *l = list_of(t, x, NULL);
    if (QT_EQ(t, l->n, 1)) {
        const quern_store_model *m = &l->model[0];
        QT_STR(t, m->family, "newer");
        QT_STR(t, m->quant, "?");
        QT_STR(t, m->license, "MIT ?[31m? licence");
        QT_OK(t, m->has_template && !m->supported && m->parameters == 0 && m->context == 0);
    }
    qn_hub_list_free(l);
    put_model(x, "home/models/odd.gguf", "model", "");
    l = list_of(t, x, NULL);
    if (QT_EQ(t, l->n, 1)) QT_STR(t, l->model[0].family, "?");
    qn_hub_list_free(l);
    free(x);
}

/* A file of two tensors, 64 bytes of F32 and 18 of Q4_0. */
static void put_mixture(const tree *x, const char *rel, uint32_t file_type)
{
    bytes *b = calloc(1, sizeof *b);
    if (!b) abort();
    put_gguf_header(b, 3, 2, 2);
    put_key_text(b, "general.architecture", "llama");
    put_key_u32(b, "general.file_type", file_type);
    put_tensor(b, "a", 0, 16, 1, 0);
    put_tensor(b, "b", 2, 32, 1, 64);
    pad_to(b, 32);
    put_zero(b, 96);
    tree_put(x, rel, b->p, b->n);
    free(b);
}

static void a_mixture_has_the_name_the_file_gives_if_it_can_be_true(qt *t)
{
    static const struct {
        uint32_t type;
        const char *quant;
    } cases[] = {{2, "Q4_0"}, {15, "F32"},   {0, "F32"},
                 {4, "F32"},  {1025, "F32"}, {UINT32_MAX, "F32"}};
    tree *x = tree_new("mixtures");
    for (size_t i = 0; i < QT_LEN(cases); i++) {
        put_mixture(x, "home/models/m.gguf", cases[i].type);
        quern_store_list *l = list_of(t, x, NULL);
        if (QT_EQ(t, l->n, 1)) {
            QT_STR(t, l->model[0].quant, cases[i].quant);
            QT_EQ(t, l->model[0].parameters, 48);
        }
        qn_hub_list_free(l);
    }
    free(x);
}

static void a_template_is_seen_in_each_place(qt *t)
{
    static const struct {
        const char *file, *text;
        uint32_t has;
    } cases[] = {{"tokenizer_config.json", "{\"chat_template\":\"\"}", 0},
                 {"chat_template.json", "{\"chat_template\":\"x\"}", 1},
                 {"chat_template.json", "{\"chat_template\":[]}", 0},
                 {"tokenizer_config.json", "{\"chat_template\":[{\"name\":\"default\"}]}", 1},
                 {"tokenizer_config.json", "{}", 0},
                 {"chat_template.jinja", "x", 1}};
    tree *x = tree_new("templates");
    tree_copy(x, "home/models/m/config.json", TREE_MLX "config.json");
    tree_copy(x, "home/models/m/model.safetensors", TREE_MLX "model.safetensors");
    for (size_t i = 0; i < QT_LEN(cases); i++) {
        char rel[100];
        snprintf(rel, sizeof rel, "home/models/m/%s", cases[i].file);
        tree_text(x, rel, cases[i].text);
        quern_store_list *l = list_of(t, x, NULL);
        if (QT_EQ(t, l->n, 1)) QT_EQ(t, l->model[0].has_template, cases[i].has);
        qn_hub_list_free(l);
    }
    free(x);
}

static void broken_files_do_not_break_the_list(qt *t)
{
    tree *x = tree_new("broken");
    tree_text(x, "home/models/empty.gguf", "");
    tree_text(x, "home/models/text.gguf", "this is no model, whatever its name says");
    tree_text(x, "home/models/old.gguf", "GGUF\1\0\0\0");
    tree_text(x, "home/models/dir/config.json", "{}");
    tree_text(x, "home/models/dir/model.safetensors", "short");
    tree_text(x, "home/models/bad/config.json", "{");
    tree_copy(x, "home/models/bad/model.safetensors", TREE_MLX "model.safetensors");
    tree_text(x, "home/models/odd/config.json",
              "{\"model_type\":7,\"quantization\":{\"bits\":\"x\",\"quant_method\":\"fp8\"},"
              "\"text_config\":{\"max_position_embeddings\":64}}");
    tree_copy(x, "home/models/odd/model.safetensors", TREE_MLX "model.safetensors");
    tree_text(x, "home/models/odd/tokenizer_config.json", "[");
    tree_text(x, "home/models/odd/README.md", "---\nlicense: cut");
    tree_copy(x, "home/models/good.gguf", TREE_GGUF);
    quern_store_list *l = list_of(t, x, NULL);
    if (QT_EQ(t, l->n, 2)) {
        QT_STR(t, l->model[0].name, "good");
        const quern_store_model *m = &l->model[1];
        QT_STR(t, m->family, "?");
        QT_STR(t, m->quant, "fp8");
        QT_EQ(t, m->context, 64);
        QT_OK(t, m->license == NULL && m->has_template == 0);
    }
    qn_hub_list_free(l);
    free(x);
}

static void absurd_settings_are_not_known(qt *t)
{
    tree *x = tree_new("absurd");
    tree_copy(x, "home/models/m/model.safetensors", TREE_MLX "model.safetensors");
    tree_text(x, "home/models/m/config.json",
              "{\"model_type\":\"llama\",\"max_position_embeddings\":99999999999,"
              "\"quantization\":{\"bits\":900,\"group_size\":9223372036854775807,\"mode\":\"x\"}}");
    quern_store_list *l = list_of(t, x, NULL);
    if (QT_EQ(t, l->n, 1)) {
        QT_STR(t, l->model[0].quant, "x");
        QT_OK(t, l->model[0].context == 0 && l->model[0].parameters == 0);
    }
    qn_hub_list_free(l);
    free(x);
}

static void front_matter_is_read_as_far_as_it_goes(qt *t)
{
    static const struct {
        const char *text, *license;
    } cases[] = {
        {"---\nlicense: apache-2.0\n---\n", "apache-2.0"},
        {"---\nlicense: 'gemma'\n---\n", "gemma"},
        {"---\nlicense:\n  - mit\n---\n", "mit"},
        {"---\ntags:\n- x\nlicense:   llama3.2  \n---\n", "llama3.2"},
        {"license: mit\n", NULL},
        {"---\nother: x\n---\nlicense: mit\n", NULL},
        {"---\n license: mit\n---\n", NULL},
        {"---\nlicense:\n---\n", NULL},
        {"---\nlicense:\n\n---\n", NULL},
        {"---\nlicense: \"\"\n---\n", NULL},
        {"---\n", NULL},
        {"", NULL},
    };
    tree *x = tree_new("readme");
    tree_copy(x, "home/models/m/m.txt", TREE_MLX "config.json");
    tree_copy(x, "home/models/ORG/m/m.gguf", TREE_GGUF);
    for (size_t i = 0; i < QT_LEN(cases); i++) {
        tree_text(x, "home/models/ORG/m/README.md", cases[i].text);
        quern_store_list *l = list_of(t, x, NULL);
        if (QT_EQ(t, l->n, 1)) {
            const char *found = l->model[0].license;
            const bool same =
                cases[i].license ? found && strcmp(found, cases[i].license) == 0 : !found;
            QT_OKF(t, same, "\"%s\": %s", cases[i].text, found ? found : "(none)");
        }
        qn_hub_list_free(l);
    }
    free(x);
}

static void the_list_survives_every_failed_allocation(qt *t)
{
    tree *x = tree_new("sweep");
    tree_copy(x, "home/models/a.gguf", TREE_GGUF);
    tree_snapshot(x, "Org--M", "aaaa", "config.json", TREE_MLX "config.json");
    tree_snapshot(x, "Org--M", "aaaa", "model.safetensors", TREE_MLX "model.safetensors");
    tree_text(x, "cache/models--Org--M/snapshots/aaaa/README.md", "---\nlicense: mit\n---\n");
    const size_t before = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    for (size_t n = 0; rc != QN_OK && n < 2000; n++) {
        quern_store_list *l = NULL;
        qn_alloc_fail_after(n);
        rc = qn_hub_list(&l, &x->hub, NULL, NULL, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK || (rc == QN_E_NOMEM && l == NULL));
        if (l) QT_EQ(t, l->n, 2);
        qn_hub_list_free(l);
        QT_OK(t, qn_alloc_live() == before);
    }
    QT_EQ(t, rc, QN_OK);
    free(x);
}

QT_MAIN(QT(a_gguf_file_tells_about_itself), QT(a_folder_tells_about_itself),
        QT(snapshots_are_listed_with_the_one_that_counts),
        QT(a_split_model_is_one_row_with_all_its_bytes), QT(what_says_it_is_no_model_is_left_out),
        QT(a_mixture_has_the_name_the_file_gives_if_it_can_be_true),
        QT(a_template_is_seen_in_each_place), QT(broken_files_do_not_break_the_list),
        QT(absurd_settings_are_not_known), QT(front_matter_is_read_as_far_as_it_goes),
        QT(the_list_survives_every_failed_allocation))
