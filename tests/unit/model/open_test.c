/* SPDX-License-Identifier: Apache-2.0 */
/* open_test.c - what a model file may say, and what is refused by name. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "model/model_int.h"
#include "tiny.h"

static void a_gguf_gives_its_descriptor(qt *t)
{
    qn_model *m = tiny_opened(t, tiny_gguf(t, &(tiny){0}));
    if (!m) return;
    const qn_model_desc *d = qn_model_get_desc(m);
    QT_STR(t, d->family, "llama");
    QT_EQ(t, d->n_layers, 2);
    QT_EQ(t, d->width, TINY_WIDTH);
    QT_EQ(t, d->n_heads, TINY_HEADS);
    QT_EQ(t, d->n_kv_heads, TINY_KV);
    QT_EQ(t, d->head_dim, TINY_DIM);
    QT_EQ(t, d->ffn, TINY_FFN);
    QT_EQ(t, d->vocab, TINY_VOCAB);
    QT_EQ(t, d->context, 128);
    QT_OK(t, d->tied && d->rope_interleaved);
    QT_OK(t, d->norm_eps == 1e-5f && d->rope_theta == 10000.0f);
    QT_OK(t, d->attention_scale == (float)(1 / sqrt((double)TINY_DIM)));
    QT_OK(t, qn_model_tokenizer(m) == NULL && qn_model_chat_template(m) == NULL);
    qn_model_unref(m);
}

static void a_directory_gives_the_same_descriptor_with_split_rope(qt *t)
{
    qn_model *m =
        tiny_opened(t, tiny_hf(t, "plain", tiny_config("\"model_type\": \"llama\","), "", true));
    if (!m) return;
    const qn_model_desc *d = qn_model_get_desc(m);
    QT_EQ(t, d->n_kv_heads, TINY_KV);
    QT_EQ(t, d->head_dim, TINY_DIM);
    QT_OK(t, !d->tied && !d->rope_interleaved);
    qn_model_unref(m);
}

static void the_weights_file_stands_for_its_directory(qt *t)
{
    char path[600];
    snprintf(path, sizeof path, "%s/model.safetensors",
             tiny_hf(t, "file", tiny_config("\"model_type\": \"llama\","), "", true));
    qn_model *m = tiny_opened(t, path);
    if (m) QT_STR(t, qn_model_path(m), path);
    qn_model_unref(m);
}

static void names_of_a_wrapped_checkpoint_are_found(qt *t)
{
    qn_model *m = tiny_opened(t, tiny_hf(t, "wrapped", tiny_config("\"model_type\": \"llama\","),
                                         "language_model.", true));
    if (m) QT_OK(t, !qn_model_get_desc(m)->tied);
    qn_model_unref(m);
}

static void a_tied_checkpoint_may_keep_its_head_on_disk(qt *t)
{
    const char *config = tiny_config("\"model_type\": \"llama\", \"tie_word_embeddings\": true,");
    qn_model *m = tiny_opened(t, tiny_hf(t, "tied", config, "", true));
    if (m) QT_OK(t, qn_model_get_desc(m)->tied);
    qn_model_unref(m);
}

static void mistral_is_read_as_llama_with_its_window(qt *t)
{
    qn_group_desc groups[QN_MAX_GROUPS];
    uint32_t of[2];
    qn_model *m = tiny_opened(t, tiny_hf(t, "mistral",
                                         tiny_config("\"model_type\": \"mistral\", "
                                                     "\"sliding_window\": 16,"),
                                         "", true));
    if (!m) return;
    QT_EQ(t, qn_model_groups(m, QN_KV_F16, groups, of), 1);
    QT_EQ(t, groups[0].kind, QN_GROUP_WINDOW);
    QT_EQ(t, groups[0].window, 16);
    QT_EQ(t, groups[0].n_layers, 2);
    qn_model_unref(m);
}

static void layer_types_make_two_groups(qt *t)
{
    qn_group_desc groups[QN_MAX_GROUPS];
    uint32_t of[2];
    qn_model *m =
        tiny_opened(t, tiny_hf(t, "layers",
                               tiny_config("\"model_type\": \"llama\", \"sliding_window\": 16, "
                                           "\"layer_types\": [\"full_attention\", "
                                           "\"sliding_attention\"],"),
                               "", true));
    if (!m) return;
    QT_EQ(t, qn_model_groups(m, QN_KV_F32, groups, of), 2);
    QT_OK(t, groups[0].kind == QN_GROUP_FULL && groups[1].kind == QN_GROUP_WINDOW);
    QT_OK(t, of[0] == 0 && of[1] == 1 && groups[0].window == 0);
    qn_model_unref(m);
}

static void gains_in_half_precision_are_widened(qt *t)
{
    qn_model *m = tiny_opened(t, tiny_gguf(t, &(tiny){.half_gains = true}));
    if (!m) return;
    const float *gain = m->weights.layers[1].attn_norm;
    bool sound = true;
    for (int i = 0; i < TINY_WIDTH; i++) sound = sound && fabsf(gain[i]) <= 0.25f;
    QT_OK(t, sound && gain[0] != gain[1]);
    qn_model_unref(m);
}

static void ending_ids_are_a_union(qt *t)
{
    const char *generation = "{\"eos_token_id\": [3, 5]}";
    const char *dir =
        tiny_hf(t, "eos", tiny_config("\"model_type\": \"llama\", \"eos_token_id\": 5,"), "", true);
    (void)qt_file("eos/generation_config.json", generation, strlen(generation));
    qn_model *m = tiny_opened(t, dir);
    if (!m) return;
    const qn_model_desc *d = qn_model_get_desc(m);
    QT_EQ(t, d->n_eos, 2);
    QT_OK(t, d->eos[0] == 5 && d->eos[1] == 3);
    qn_model_unref(m);
}

static void check_recipe(qt *t, const char *text, uint32_t set, float temperature, uint32_t top_k)
{
    const char *dir = tiny_hf(t, "recipe", tiny_config("\"model_type\": \"llama\","), "", true);
    (void)qt_file("recipe/generation_config.json", text, strlen(text));
    qn_model *m = tiny_opened(t, dir);
    if (!m) return;
    const qn_recipe *r = qn_model_recipe(m);
    QT_OKF(t, r->set == set && r->temperature == temperature && r->top_k == top_k,
           "%s: set %#x, temperature %g, top_k %u", text, r->set, (double)r->temperature, r->top_k);
    qn_model_unref(m);
}

static void a_recipe_is_read_from_the_generation_config(qt *t)
{
    check_recipe(t, "{}", 0, 0, 0);
    check_recipe(t, "{\"temperature\": 0.6, \"top_k\": 20, \"do_sample\": true}",
                 QN_RECIPE_TEMPERATURE | QN_RECIPE_TOP_K, 0.6f, 20);
    check_recipe(t, "{\"temperature\": 0.6, \"do_sample\": false}", QN_RECIPE_TEMPERATURE, 0, 0);
    check_recipe(t, "{\"top_p\": 0.9, \"min_p\": 0, \"repetition_penalty\": 1.1, \"top_k\": null}",
                 QN_RECIPE_TOP_P | QN_RECIPE_MIN_P | QN_RECIPE_REPETITION, 0, 0);
}

static void a_recipe_out_of_range_is_refused(qt *t)
{
    static const struct {
        const char *text, *word;
        qn_code code;
    } bad[] = {{"{\"temperature\": -1}", "temperature is -1", QN_E_LIMIT},
               {"{\"top_p\": 1.5}", "top_p is 1.5", QN_E_LIMIT},
               {"{\"min_p\": \"x\"}", "min_p is no number", QN_E_FORMAT},
               {"{\"top_k\": 2.5}", "top_k is 2.5", QN_E_FORMAT}};
    for (size_t i = 0; i < QT_LEN(bad); i++) {
        const char *dir = tiny_hf(t, "wrong", tiny_config("\"model_type\": \"llama\","), "", true);
        (void)qt_file("wrong/generation_config.json", bad[i].text, strlen(bad[i].text));
        tiny_refused(t, dir, bad[i].code, bad[i].word);
    }
    tiny_refused(t, tiny_gguf(t, &(tiny){.general = "general.sampling.temp", .value = -2}),
                 QN_E_LIMIT, "general.sampling.temp is -2");
}

static void a_recipe_is_read_from_a_gguf(qt *t)
{
    qn_model *m =
        tiny_opened(t, tiny_gguf(t, &(tiny){.general = "general.sampling.temp", .value = 0.5}));
    if (!m) return;
    QT_OK(t, qn_model_recipe(m)->set == QN_RECIPE_TEMPERATURE);
    QT_OK(t, qn_model_recipe(m)->temperature == 0.5f);
    qn_model_unref(m);
}

static void weights_beyond_the_room_are_refused(qt *t)
{
    const qn_memory_room room = {1 << 20, 100, "cgroup"};
    const qn_model_options opt = {.room = &room};
    qn_model *m = NULL;
    qn_err err = {0};
    QT_EQ(t, qn_model_open(&m, tiny_gguf(t, &(tiny){0}), &opt, &err), QN_E_NOMEM);
    QT_OKF(t, !m && strstr(err.msg, "0.0 MiB available (cgroup)"), "%s", err.msg);
}

static void a_chat_template_is_found_in_each_place(qt *t)
{
    const char *config = "{\"chat_template\": [{\"name\": \"tool\", \"template\": \"no\"}, "
                         "{\"name\": \"default\", \"template\": \"yes\"}]}";
    const char *dir = tiny_hf(t, "chat", tiny_config("\"model_type\": \"llama\","), "", true);
    (void)qt_file("chat/tokenizer_config.json", config, strlen(config));
    qn_model *m = tiny_opened(t, dir);
    if (m) QT_STR(t, qn_model_chat_template(m), "yes");
    qn_model_unref(m);
    (void)qt_file("chat/chat_template.json", "{\"chat_template\": \"json\"}", 25);
    m = tiny_opened(t, dir);
    if (m) QT_STR(t, qn_model_chat_template(m), "json");
    qn_model_unref(m);
    (void)qt_file("chat/chat_template.json", "{", 1);
    qn_err err = {0};
    QT_EQ(t, qn_model_open(&m, dir, NULL, &err), QN_E_FORMAT);
    QT_OKF(t, !m && strstr(err.msg, "chat_template.json"), "%s", err.msg);
    (void)qt_file("chat/chat_template.jinja", "own file", 8);
    m = tiny_opened(t, dir);
    if (m) QT_STR(t, qn_model_chat_template(m), "own file");
    qn_model_unref(m);
}

static void two_files_of_other_weights_have_other_numerics(qt *t)
{
    uint64_t a[2], b[2], c[2], again[2];
    qn_model *m = tiny_opened(t, tiny_gguf(t, &(tiny){0}));
    if (!m) return;
    qn_model_numerics(m, QN_KV_F16, a);
    qn_model_numerics(m, QN_KV_F32, b);
    qn_model_unref(m);
    m = tiny_opened(t, qt_tmp()[0] ? tiny_gguf(t, &(tiny){0}) : "");
    if (m) qn_model_numerics(m, QN_KV_F16, c);
    qn_model_unref(m);
    char path[600];
    snprintf(path, sizeof path, "%s/tiny.gguf", qt_tmp());
    m = tiny_opened(t, path);
    if (m) qn_model_numerics(m, QN_KV_F16, again);
    qn_model_unref(m);
    QT_OK(t, memcmp(a, b, sizeof a) != 0); /* another KV format */
    QT_OK(t, memcmp(a, c, sizeof a) != 0); /* the generator went on: other values */
    QT_OK(t, memcmp(c, again, sizeof a) == 0);
}

/* -- the audit --------------------------------------------------------------------------------- */

static void a_missing_tensor_is_named(qt *t)
{
    tiny_refused(t, tiny_gguf(t, &(tiny){.no_tensor = "blk.1.ffn_up.weight"}), QN_E_FORMAT,
                 "missing (1): blk.1.ffn_up.weight");
}

static void an_unexpected_tensor_is_named(qt *t)
{
    tiny_refused(t, tiny_gguf(t, &(tiny){.extra_tensor = "blk.0.surprise.weight"}), QN_E_FORMAT,
                 "unexpected (1): blk.0.surprise.weight");
}

static void missing_and_unexpected_tensors_are_told_together(qt *t)
{
    tiny_refused(
        t, tiny_gguf(t, &(tiny){.no_tensor = "output_norm.weight", .extra_tensor = "other.norm"}),
        QN_E_FORMAT, "missing (1): output_norm.weight; unexpected (1): other.norm");
}

static void a_wrong_shape_is_named_with_both_shapes(qt *t)
{
    tiny_refused(t, tiny_gguf(t, &(tiny){.bad_tensor = "blk.0.attn_k.weight"}), QN_E_FORMAT,
                 "blk.0.attn_k.weight is [16, 33], expected [16, 32]");
    tiny_refused(t, tiny_gguf(t, &(tiny){.bad_tensor = "output_norm.weight"}), QN_E_FORMAT,
                 "output_norm.weight is [1, 33], expected [1, 32]");
}

static void tensors_of_no_use_are_dropped(qt *t)
{
    qn_model *m =
        tiny_opened(t, tiny_gguf(t, &(tiny){.extra_tensor = "blk.0.attn_rot_embd.weight"}));
    QT_OK(t, m != NULL);
    qn_model_unref(m);
}

static void an_untied_checkpoint_needs_its_head(qt *t)
{
    const char *config = tiny_config("\"model_type\": \"llama\", \"tie_word_embeddings\": false,");
    tiny_refused(t, tiny_hf(t, "headless", config, "", false), QN_E_FORMAT, "missing (1): lm_head");
}

/* -- settings that cannot be ------------------------------------------------------------------- */

static void hostile_numbers_are_refused_by_key(qt *t)
{
    static const struct {
        const char *key;
        double value;
        bool as_float;
        qn_code code;
    } rows[] = {
        {"block_count", 0, false, QN_E_LIMIT},
        {"block_count", 513, false, QN_E_LIMIT},
        {"block_count", 4294967295.0, false, QN_E_LIMIT},
        {"embedding_length", 0, false, QN_E_LIMIT},
        {"attention.head_count", 0, false, QN_E_LIMIT},
        {"attention.head_count_kv", 0, false, QN_E_LIMIT},
        {"feed_forward_length", 4294967295.0, false, QN_E_LIMIT},
        {"context_length", 0, false, QN_E_LIMIT},
        {"context_length", 4294967295.0, false, QN_E_LIMIT},
        {"attention.layer_norm_rms_epsilon", (double)NAN, true, QN_E_LIMIT},
        {"attention.layer_norm_rms_epsilon", (double)INFINITY, true, QN_E_LIMIT},
        {"attention.layer_norm_rms_epsilon", 0, true, QN_E_LIMIT},
        {"attention.layer_norm_rms_epsilon", -1e-5, true, QN_E_LIMIT},
        {"attention.head_count", 2.5, true, QN_E_FORMAT},
        {"attention.key_length", 0, false, QN_E_LIMIT},
        {"vocab_size", 0, false, QN_E_LIMIT},
    };
    for (size_t i = 0; i < QT_LEN(rows); i++)
        tiny_refused(t,
                     tiny_gguf(t, &(tiny){.key = rows[i].key,
                                          .value = rows[i].value,
                                          .as_float = rows[i].as_float}),
                     rows[i].code, rows[i].key);
}

static void a_rope_base_that_is_no_number_is_refused(qt *t)
{
    tiny_refused(
        t, tiny_gguf(t, &(tiny){.key = "rope.freq_base", .value = (double)NAN, .as_float = true}),
        QN_E_LIMIT, "freq_base");
}

static void a_missing_setting_is_named(qt *t)
{
    static const char *const keys[] = {"block_count",          "embedding_length",
                                       "attention.head_count", "feed_forward_length",
                                       "context_length",       "attention.layer_norm_rms_epsilon"};
    for (size_t i = 0; i < QT_LEN(keys); i++)
        tiny_refused(t, tiny_gguf(t, &(tiny){.key = keys[i], .without = true}), QN_E_FORMAT,
                     keys[i]);
}

static void heads_that_do_not_divide_are_refused(qt *t)
{
    tiny_refused(t, tiny_gguf(t, &(tiny){.key = "attention.head_count_kv", .value = 3}),
                 QN_E_FORMAT, "4 heads share 3 kv heads");
    tiny_refused(t, tiny_gguf(t, &(tiny){.key = "attention.head_count", .value = 5}), QN_E_FORMAT,
                 "width 32 over 5 heads");
}

static void a_head_size_that_contradicts_the_tensors_is_refused(qt *t)
{
    tiny_refused(t, tiny_gguf(t, &(tiny){.key = "attention.key_length", .value = 16}), QN_E_FORMAT,
                 "expected [64, 32]");
}

static void rope_beyond_the_head_is_refused(qt *t)
{
    tiny_refused(t, tiny_gguf(t, &(tiny){.key = "rope.dimension_count", .value = 10}), QN_E_FORMAT,
                 "rope rotates 10 values of a head of 8");
    tiny_refused(t, tiny_gguf(t, &(tiny){.key = "rope.dimension_count", .value = 7}), QN_E_LIMIT,
                 "rope rotates 7 values");
}

static void a_vocabulary_that_contradicts_the_tensors_is_refused(qt *t)
{
    tiny_refused(t, tiny_gguf(t, &(tiny){.key = "vocab_size", .value = 41}), QN_E_FORMAT,
                 "token_embd.weight is [40, 32], expected [41, 32]");
}

static void a_tokenizer_larger_than_the_table_is_refused(qt *t)
{
    tiny_refused(t, tiny_gguf(t, &(tiny){.tokenizer = true, .extra_ids = 3}), QN_E_FORMAT,
                 "the tokenizer has 43 ids, the embedding table 40 rows");
}

static void experts_are_refused(qt *t)
{
    tiny_refused(t, tiny_gguf(t, &(tiny){.key = "expert_count", .value = 8}), QN_E_UNSUPPORTED,
                 "8 experts");
}

static void a_rope_factor_of_zero_is_refused(qt *t)
{
    tiny_refused(t, tiny_gguf(t, &(tiny){.rope_factor = 1e-20f}), QN_E_FORMAT,
                 "rope_freqs.weight[0]");
}

static void an_unknown_type_names_the_nearest(qt *t)
{
    tiny_refused(t, tiny_gguf(t, &(tiny){.arch = "lama"}), QN_E_UNSUPPORTED,
                 "model type \"lama\" is not supported; the nearest that is: llama");
    tiny_refused(t, tiny_gguf(t, &(tiny){.arch = "mistrall"}), QN_E_UNSUPPORTED,
                 "nearest that is: mistral");
}

static void hostile_configs_are_refused_by_key(qt *t)
{
    static const struct {
        const char *extra;
        qn_code code;
        const char *word;
    } rows[] = {
        {"\"model_type\": \"llama\", \"head_dim\": 1.5,", QN_E_FORMAT, "head_dim is 1.5"},
        {"\"model_type\": \"llama\", \"head_dim\": \"8\",", QN_E_FORMAT, "head_dim is no number"},
        {"\"model_type\": \"llama\", \"head_dim\": 1e300,", QN_E_LIMIT, "head_dim"},
        {"\"model_type\": \"llama\", \"hidden_act\": \"mish\",", QN_E_UNSUPPORTED, "\"mish\""},
        {"\"model_type\": \"llama\", \"rope_scaling\": {\"type\": \"dynamic\"},", QN_E_UNSUPPORTED,
         "\"dynamic\""},
        {"\"model_type\": \"llama\", \"rope_scaling\": 3,", QN_E_FORMAT, "rope_scaling"},
        {"\"model_type\": \"llama\", \"rope_scaling\": {\"factor\": 8},", QN_E_FORMAT,
         "rope_type is missing"},
        {"\"model_type\": \"llama\", \"rope_parameters\": {\"full_attention\": {\"rope_theta\": "
         "1}},",
         QN_E_UNSUPPORTED, "per layer type"},
        {"\"model_type\": \"llama\", \"rope_theta\": 0,", QN_E_LIMIT, "rope_theta"},
        {"\"model_type\": \"llama\", \"eos_token_id\": 40,", QN_E_FORMAT, "eos_token_id 40"},
        {"\"model_type\": \"llama\", \"eos_token_id\": \"2\",", QN_E_FORMAT, "eos_token_id"},
        {"\"model_type\": \"llama\", \"layer_types\": [\"full_attention\"],", QN_E_FORMAT,
         "layer_types has 1 names, expected 2"},
        {"\"model_type\": \"llama\", \"layer_types\": [\"sliding_attention\", "
         "\"full_attention\"],",
         QN_E_FORMAT, "sliding_window is missing"},
        {"\"model_type\": \"llama\", \"tie_word_embeddings\": 1,", QN_E_FORMAT,
         "tie_word_embeddings"},
        {"\"model_type\": \"llama\", \"num_local_experts\": 4,", QN_E_UNSUPPORTED, "4 experts"},
        {"\"model_type\": \"llama\", \"quantization_config\": {\"quant_method\": \"gptq\"},",
         QN_E_UNSUPPORTED, "\"gptq\""},
        {"\"model_type\": \"llama\", \"quantization\": {\"mode\": \"mxfp4\", \"bits\": 4},",
         QN_E_UNSUPPORTED, "quantization mode \"mxfp4\", known: affine"},
        {"\"model_type\": \"llama\", \"quantization\": {\"bits\": 1e9, \"group_size\": -3},",
         QN_E_UNSUPPORTED, "in groups of -3"},
        {"\"model_type\": \"qwen9\",", QN_E_UNSUPPORTED, "\"qwen9\""},
        {"", QN_E_FORMAT, "no model type"},
    };
    for (size_t i = 0; i < QT_LEN(rows); i++)
        tiny_refused(t, tiny_hf(t, "hostile", tiny_config(rows[i].extra), "", true), rows[i].code,
                     rows[i].word);
}

/* As a download that was cut short leaves them. */
static void links_that_lead_nowhere_are_not_passed_over(qt *t)
{
    static const char *const names[] = {"tokenizer.json", "tokenizer_config.json",
                                        "generation_config.json"};
    char path[700];
    for (size_t i = 0; i < QT_LEN(names); i++) {
        const char *dir = tiny_hf(t, names[i], tiny_config("\"model_type\": \"llama\","), "", true);
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        QT_EQ(t, symlink("nowhere", path), 0);
        tiny_refused(t, dir, QN_E_NOTFOUND, names[i]);
    }
}

static void files_that_are_no_model_are_refused(qt *t)
{
    tiny_refused(t, "/nowhere/at/all.gguf", QN_E_NOTFOUND, "/nowhere/at/all.gguf");
    tiny_refused(t, qt_file("text.txt", "hello", 5), QN_E_FORMAT, "neither a GGUF file");
    tiny_refused(t, qt_file("short.gguf", "GGUF", 4), QN_E_FORMAT, "short.gguf");
    char empty[600];
    snprintf(empty, sizeof empty, "%s/empty", qt_tmp());
    QT_EQ(t, mkdir(empty, 0777), 0);
    tiny_refused(t, empty, QN_E_NOTFOUND, "config.json");
}

/* -- memory ------------------------------------------------------------------------------------ */

static void survives(qt *t, const char *path, const qn_model_options *opt)
{
    const size_t before = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    size_t n = 0;
    for (; rc != QN_OK && n < 4096; n++) {
        qn_model *m = NULL;
        qn_alloc_fail_after(n);
        rc = qn_model_open(&m, path, opt, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OKF(t, rc == QN_OK || (rc == QN_E_NOMEM && m == NULL), "allocation %zu: %s", n,
               quern_code_name(rc));
        qn_model_unref(m);
        QT_OKF(t, qn_alloc_live() == before, "allocation %zu: %zu blocks left", n,
               qn_alloc_live() - before);
    }
    QT_OK(t, rc == QN_OK && n > 5);
}

static void laying_weights_out_anew_survives_every_failed_allocation(qt *t)
{
    survives(t, "tests/golden/llama/gguf-q4_0/model.gguf",
             &(qn_model_options){.activations = QN_ACTIVATIONS_I8});
}

static void opening_a_gguf_survives_every_failed_allocation(qt *t)
{
    survives(t, tiny_gguf(t, &(tiny){.half_gains = true, .tokenizer = true}), NULL);
}

static void opening_a_directory_survives_every_failed_allocation(qt *t)
{
    survives(t, tiny_hf(t, "sweep", tiny_config("\"model_type\": \"llama\","), "", true), NULL);
}

static void opening_with_images_survives_every_failed_allocation(qt *t)
{
    const qn_model_options opt = {
        .activations = QN_ACTIVATIONS_I16, .image_dir = qt_tmp(), .lanes = 2};
    survives(t, tiny_gguf(t, &(tiny){0}), &opt);
}

QT_MAIN(QT(a_gguf_gives_its_descriptor), QT(a_directory_gives_the_same_descriptor_with_split_rope),
        QT(the_weights_file_stands_for_its_directory), QT(names_of_a_wrapped_checkpoint_are_found),
        QT(a_tied_checkpoint_may_keep_its_head_on_disk),
        QT(mistral_is_read_as_llama_with_its_window), QT(layer_types_make_two_groups),
        QT(gains_in_half_precision_are_widened), QT(ending_ids_are_a_union),
        QT(a_recipe_is_read_from_the_generation_config), QT(a_recipe_out_of_range_is_refused),
        QT(a_recipe_is_read_from_a_gguf), QT(weights_beyond_the_room_are_refused),
        QT(a_chat_template_is_found_in_each_place),
        QT(two_files_of_other_weights_have_other_numerics), QT(a_missing_tensor_is_named),
        QT(an_unexpected_tensor_is_named), QT(missing_and_unexpected_tensors_are_told_together),
        QT(a_wrong_shape_is_named_with_both_shapes), QT(tensors_of_no_use_are_dropped),
        QT(an_untied_checkpoint_needs_its_head), QT(hostile_numbers_are_refused_by_key),
        QT(a_rope_base_that_is_no_number_is_refused), QT(a_missing_setting_is_named),
        QT(heads_that_do_not_divide_are_refused),
        QT(a_head_size_that_contradicts_the_tensors_is_refused),
        QT(rope_beyond_the_head_is_refused),
        QT(a_vocabulary_that_contradicts_the_tensors_is_refused),
        QT(a_tokenizer_larger_than_the_table_is_refused), QT(experts_are_refused),
        QT(a_rope_factor_of_zero_is_refused), QT(an_unknown_type_names_the_nearest),
        QT(hostile_configs_are_refused_by_key), QT(links_that_lead_nowhere_are_not_passed_over),
        QT(files_that_are_no_model_are_refused),
        QT(laying_weights_out_anew_survives_every_failed_allocation),
        QT(opening_a_gguf_survives_every_failed_allocation),
        QT(opening_a_directory_survives_every_failed_allocation),
        QT(opening_with_images_survives_every_failed_allocation))
