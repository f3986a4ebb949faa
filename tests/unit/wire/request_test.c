/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/request.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "qt.h"
#include "wire/codec.h"

static const uint32_t tokens[] = {1, 5, 4294967295u, 7, 9};
static const qn_request_bias biases[] = {{9, -1.5f}, {2, 100}, {5, 0}};
static const uint32_t stop_ids[] = {2, 3, 3};
static const qn_request_media media[] = {{{1, 2, 3}, 0, 2}, {{4}, 2, 3}};

/* A request with every field in use; names borrowed from static memory. */
static qn_request_in full(void)
{
    static qn_str stops[2], adapters[2];
    static const float scales[] = {0.5f, -2};
    stops[0] = QN_STR("\n\nUser:");
    stops[1] = QN_STR("caf\xC3\xA9");
    adapters[0] = QN_STR("pirate");
    adapters[1] = QN_STR("x");
    qn_request_in in;
    qn_request_in_init(&in);
    in.id = 0x1122334455667788;
    in.cache_space = 99;
    in.flags = QN_REQUEST_ECHO | QN_REQUEST_PROMPT_LOGPROBS;
    in.priority = -7;
    in.credits = 64;
    in.n_choices = 3;
    in.max_tokens = 100;
    in.min_tokens = 2;
    in.logprobs = 5;
    in.n_prompt = 4;
    in.tokens = tokens;
    in.n_tokens = QT_LEN(tokens);
    in.biases = biases;
    in.n_biases = QT_LEN(biases);
    in.stop_ids = stop_ids;
    in.n_stop_ids = QT_LEN(stop_ids);
    in.stop_text = stops;
    in.n_stop_text = 2;
    in.adapters = adapters;
    in.adapter_scales = scales;
    in.n_adapters = 2;
    in.media = media;
    in.n_media = 2;
    in.state = "state";
    in.state_bytes = 5;
    in.sampling = (qn_request_sampling){.seed = 42,
                                        .has_seed = 1,
                                        .set = QN_SET_ALL,
                                        .temperature = 0.7f,
                                        .top_p = 0.9f,
                                        .min_p = 0.05f,
                                        .top_k = 40,
                                        .repetition_penalty = 1.1f,
                                        .presence_penalty = -0.5f,
                                        .frequency_penalty = 0.25f,
                                        .repetition_context = 64,
                                        .presence_context = 0,
                                        .frequency_context = 20,
                                        .xtc_probability = 0.5f,
                                        .xtc_threshold = 0.1f};
    return in;
}

static qn_buf built(qt *t, const qn_request_in *in)
{
    qn_buf b;
    qn_err err = {0};
    qn_buf_init(&b, 1 << 20);
    QT_OKF(t, qn_request_build(&b, in, &err) == QN_OK, "%s", err.msg);
    return b;
}

static void every_field_round_trips(qt *t)
{
    const qn_request_in in = full();
    qn_buf b = built(t, &in);
    const qn_request *r = NULL;
    QT_EQ(t, qn_request_read(&r, b.data, b.len, NULL), QN_OK);
    if (!QT_OK(t, r != NULL)) return;
    QT_OK(t, r->id == in.id && r->cache_space == 99 && r->flags == 3 && r->priority == -7);
    QT_OK(t, r->credits == 64 && r->n_choices == 3 && r->max_tokens == 100 && r->min_tokens == 2);
    QT_OK(t, r->logprobs == 5 && r->n_prompt == 4 && r->tokens.n == 5);
    QT_OK(t, memcmp(qn_request_tokens(r), tokens, sizeof tokens) == 0);
    QT_OK(t, r->biases.n == 3 && qn_request_biases(r)[0].token == 2); /* sorted by token */
    QT_OK(t, qn_request_biases(r)[2].token == 9 && qn_request_biases(r)[2].bias == -1.5f);
    QT_OK(t, r->stop_ids.n == 3 && memcmp(qn_request_stop_ids(r), stop_ids, sizeof stop_ids) == 0);
    QT_OK(t, r->stop_text.n == 2 && qn_str_eq_z(qn_request_stop_text(r, 0), "\n\nUser:"));
    QT_OK(t, qn_str_eq_z(qn_request_stop_text(r, 1), "caf\xC3\xA9"));
    QT_OK(t, r->adapters.n == 2 && qn_str_eq_z(qn_request_adapter_name(r, 0), "pirate"));
    QT_OK(t,
          qn_request_adapter_scale(r, 1) == -2 && qn_str_eq_z(qn_request_adapter_name(r, 1), "x"));
    QT_OK(t, r->media.n == 2 && memcmp(qn_request_medias(r), media, sizeof media) == 0);
    QT_OK(t, r->state.n == 5 && memcmp(qn_request_state(r), "state", 5) == 0);
    QT_OK(t, memcmp(&r->sampling, &in.sampling, sizeof in.sampling) == 0);
    QT_OK(t, qn_request_is_set(r, QN_SET_XTC));
    qn_buf_fini(&b);
}

static void a_bare_request_round_trips(qt *t)
{
    qn_request_in in;
    qn_request_in_init(&in);
    in.tokens = tokens;
    in.n_tokens = 1;
    qn_buf b = built(t, &in);
    const qn_request *r = NULL;
    QT_EQ(t, qn_request_read(&r, b.data, b.len, NULL), QN_OK);
    QT_OK(t, r && r->n_prompt == 1 && r->n_choices == 1 && r->logprobs == -1 && r->biases.at == 0);
    QT_OK(t, r && !qn_request_is_set(r, QN_SET_ALL) && r->sampling.has_seed == 0);
    QT_EQ(t, b.len, sizeof(qn_request) + 8);
    qn_buf_fini(&b);
}

static void equal_requests_are_equal_bytes(qt *t)
{
    const qn_request_in in = full();
    qn_buf a = built(t, &in), b = built(t, &in);
    QT_OK(t, a.len == b.len && memcmp(a.data, b.data, a.len) == 0);
    qn_buf_fini(&a);
    qn_buf_fini(&b);
}

static void blocks_follow_each_other_in_one_buffer(qt *t)
{
    const qn_request_in in = full();
    qn_buf b = built(t, &in);
    const size_t one = b.len;
    size_t n = 99;
    QT_EQ(t, qn_request_build(&b, &in, NULL), QN_OK);
    QT_EQ(t, b.len, 2 * one);
    QT_OK(t, qn_wire_block_bytes(&n, b.data, 15, NULL) == QN_OK && n == 0);
    QT_OK(t, qn_wire_block_bytes(&n, b.data, 16, NULL) == QN_OK && n == one);
    const qn_request *r = NULL;
    QT_EQ(t, qn_request_read(&r, b.data + n, b.len - n, NULL), QN_OK);
    QT_EQ(t, qn_request_read(&r, b.data, b.len, NULL), QN_E_FORMAT); /* exactly one block */
    QT_OK(t, !r);
    QT_EQ(t, qn_buf_append_byte(&b, 0, NULL), QN_OK);
    QT_EQ(t, qn_request_build(&b, &in, NULL), QN_E_INVAL); /* not at a multiple of 8 */
    QT_EQ(t, b.len, 2 * one + 1);
    qn_buf_fini(&b);
}

/* Copies the full request, lets `spoil` change it and expects refusal with a word of the reason. */
static void refuses(qt *t, void (*spoil)(qn_request *r), qn_code code, const char *word)
{
    const qn_request_in in = full();
    qn_buf b = built(t, &in);
    const qn_request *r = NULL;
    qn_err err = {0};
    spoil((qn_request *)(void *)b.data);
    const qn_code rc = qn_request_read(&r, b.data, b.len, &err);
    QT_OKF(t, rc == code && !r && strstr(err.msg, word) && strncmp(err.msg, "request: ", 9) == 0,
           "expected \"%s\", got %s \"%s\"", word, quern_code_name(rc), err.msg);
    qn_buf_fini(&b);
}

#define SPOIL(name, ...) \
    static void name(qn_request *r) { __VA_ARGS__; }
SPOIL(magic, r->head.magic++)
SPOIL(version, r->head.version++)
SPOIL(bytes_up, r->head.bytes += 8)
SPOIL(bytes_down, r->head.bytes -= 8)
SPOIL(bytes_odd, r->head.bytes++)
SPOIL(bytes_huge, r->head.bytes = 0xFFFFFFF8u)
SPOIL(kind, r->head.kind = 1)
SPOIL(flags, r->flags = 1u << 31)
SPOIL(priority, r->priority = INT32_MIN)
SPOIL(no_choice, r->n_choices = 0)
SPOIL(choices, r->n_choices = 129)
SPOIL(logprobs_low, r->logprobs = -2)
SPOIL(logprobs_high, r->logprobs = 65)
SPOIL(no_prompt, r->n_prompt = 0)
SPOIL(prompt, r->n_prompt = 6)
SPOIL(min_tokens, r->min_tokens = 101)
SPOIL(set, r->sampling.set |= 1u << 31)
SPOIL(has_seed, r->sampling.has_seed = 2)
SPOIL(seed, r->sampling.has_seed = 0)
SPOIL(temp_nan, r->sampling.temperature = NAN)
SPOIL(temp_inf, r->sampling.temperature = INFINITY)
SPOIL(temp_low, r->sampling.temperature = -0.5f)
SPOIL(top_p, r->sampling.top_p = 1.5f)
SPOIL(min_p, r->sampling.min_p = -1)
SPOIL(repetition, r->sampling.repetition_penalty = -1)
SPOIL(presence, r->sampling.presence_penalty = -INFINITY)
SPOIL(frequency, r->sampling.frequency_penalty = NAN)
SPOIL(xtc_p, r->sampling.xtc_probability = 2)
SPOIL(xtc_t, r->sampling.xtc_threshold = 2)
SPOIL(unset_temp, r->sampling.set &= ~(uint32_t)QN_SET_TEMPERATURE)
SPOIL(unset_top_k, r->sampling.set &= ~(uint32_t)QN_SET_TOP_K)
SPOIL(unset_rep, r->sampling.set &= ~(uint32_t)QN_SET_REPETITION_CONTEXT)
SPOIL(unset_freq, r->sampling.set &= ~(uint32_t)QN_SET_FREQUENCY_CONTEXT)
SPOIL(unset_max, r->sampling.set &= ~(uint32_t)QN_SET_MAX_TOKENS)
SPOIL(no_tokens, r->tokens.n = 0)
SPOIL(tokens_far, r->tokens.n = 1u << 24)
SPOIL(tokens_many, r->tokens.n = UINT32_MAX)
SPOIL(tokens_at, r->tokens.at += 8)
SPOIL(tokens_inside, r->tokens.at = 0)
SPOIL(tokens_padding, ((uint32_t *)(void *)r)[(r->tokens.at + sizeof tokens) / 4] = 1)
SPOIL(biases_many, r->biases.n = 1u << 30)
SPOIL(bias_order, ((uint32_t *)(void *)r)[r->biases.at / 4] = 7)
SPOIL(bias_nan, ((float *)(void *)r)[r->biases.at / 4 + 1] = NAN)
SPOIL(stop_ids_at, r->stop_ids.at = r->tokens.at)
SPOIL(stop_text_many, r->stop_text.n = 4096)
SPOIL(stop_text_empty, ((qn_wire_ref *)(void *)((char *)r + r->stop_text.at))[1].n = 0)
SPOIL(stop_text_far, ((qn_wire_ref *)(void *)((char *)r + r->stop_text.at))[0].at = 0xFFFFFFF8u)
SPOIL(stop_text_utf8, *((char *)r + r->stop_text.at + 16) = '\xFF')
SPOIL(adapter_reserved, ((uint32_t *)(void *)r)[r->adapters.at / 4 + 3] = 1)
SPOIL(adapter_scale, ((float *)(void *)r)[r->adapters.at / 4 + 2] = INFINITY)
SPOIL(adapter_name, ((uint32_t *)(void *)r)[r->adapters.at / 4 + 1] = 0)
SPOIL(media_order, ((qn_request_media *)(void *)((char *)r + r->media.at))[1].begin = 1)
SPOIL(media_empty, ((qn_request_media *)(void *)((char *)r + r->media.at))[0].end = 0)
SPOIL(media_far, ((qn_request_media *)(void *)((char *)r + r->media.at))[1].end = 5)
SPOIL(state_huge, r->state.n = 1u << 20)
SPOIL(state_short, r->state.n = 0)

static void refuses_a_wrong_head(qt *t)
{
    refuses(t, magic, QN_E_FORMAT, "magic");
    refuses(t, version, QN_E_UNSUPPORTED, "version is 2, expected 1");
    refuses(t, bytes_up, QN_E_FORMAT, "bytes");
    refuses(t, bytes_down, QN_E_FORMAT, "bytes");
    refuses(t, bytes_odd, QN_E_FORMAT, "bytes modulo 8");
    refuses(t, bytes_huge, QN_E_LIMIT, "limit");
    refuses(t, kind, QN_E_FORMAT, "kind");
}

static void refuses_numbers_out_of_range(qt *t)
{
    static void (*const spoils[])(qn_request *) = {
        flags,    priority,   no_choice,   choices,    logprobs_low, logprobs_high, no_prompt,
        prompt,   min_tokens, set,         has_seed,   seed,         temp_nan,      temp_inf,
        temp_low, top_p,      min_p,       repetition, presence,     frequency,     xtc_p,
        xtc_t,    unset_temp, unset_top_k, unset_rep,  unset_freq,   unset_max};
    for (size_t i = 0; i < QT_LEN(spoils); i++) refuses(t, spoils[i], QN_E_FORMAT, "expected");
    refuses(t, temp_nan, QN_E_FORMAT, "temperature is nan, expected 0 to");
}

static void refuses_arrays_out_of_place(qt *t)
{
    refuses(t, no_tokens, QN_E_FORMAT, "tokens");
    refuses(t, tokens_far, QN_E_FORMAT, "tokens of 67108864 bytes");
    refuses(t, tokens_many, QN_E_LIMIT, "tokens");
    refuses(t, tokens_at, QN_E_FORMAT, "tokens");
    refuses(t, tokens_inside, QN_E_FORMAT, "tokens is 0");
    refuses(t, tokens_padding, QN_E_FORMAT, "padding");
    refuses(t, biases_many, QN_E_LIMIT, "biases");
    refuses(t, bias_order, QN_E_FORMAT, "bias 1 is for token 5, expected above 7");
    refuses(t, bias_nan, QN_E_FORMAT, "bias");
    refuses(t, stop_ids_at, QN_E_FORMAT, "stop ids");
}

static void refuses_faulty_texts_media_and_state(qt *t)
{
    refuses(t, stop_text_many, QN_E_LIMIT, "stop strings");
    refuses(t, stop_text_empty, QN_E_FORMAT, "stop string");
    refuses(t, stop_text_far, QN_E_FORMAT, "stop string");
    refuses(t, stop_text_utf8, QN_E_FORMAT, "not UTF-8 at byte 0");
    refuses(t, adapter_reserved, QN_E_FORMAT, "reserved");
    refuses(t, adapter_scale, QN_E_FORMAT, "scale");
    refuses(t, adapter_name, QN_E_FORMAT, "adapter name");
    refuses(t, media_order, QN_E_FORMAT, "media 1");
    refuses(t, media_empty, QN_E_FORMAT, "media 0");
    refuses(t, media_far, QN_E_FORMAT, "media 1");
    refuses(t, state_huge, QN_E_LIMIT, "state");
    refuses(t, state_short, QN_E_FORMAT, "state");
}

static void refuses_every_shorter_block(qt *t)
{
    const qn_request_in in = full();
    qn_buf b = built(t, &in);
    size_t taken = 0;
    for (size_t n = 0; n < b.len; n++) {
        const qn_request *r = NULL;
        uint8_t *copy =
            qn_alloc(n); /* exactly n bytes: a read past them is seen by the sanitizer */
        memcpy(copy, b.data, n);
        if (n >= 16) memcpy(copy + 8, &(uint32_t){(uint32_t)n}, 4); /* with an honest length too */
        taken += qn_request_read(&r, copy, n, NULL) == QN_OK;
        qn_free(copy);
    }
    QT_EQ(t, taken, 0);
    const qn_request *r = NULL;
    QT_EQ(t, qn_request_read(&r, b.data + 4, b.len - 8, NULL), QN_E_FORMAT); /* not aligned */
    qn_buf_fini(&b);
}

/* Whatever one changed byte makes of it, a block that is taken is taken whole: its copy by way of the
 * builder is the same bytes. */
static void random_damage_is_refused_or_harmless(qt *t)
{
    const qn_request_in in = full();
    qn_buf b = built(t, &in);
    size_t taken = 0;
    for (size_t i = 0; i < b.len; i++) {
        const qn_request *r = NULL;
        const uint8_t old = b.data[i];
        b.data[i] ^= (uint8_t)(1u << qt_rand() % 8);
        if (qn_request_read(&r, b.data, b.len, NULL) == QN_OK) {
            taken++;
            for (uint32_t k = 0; k < r->stop_text.n; k++)
                QT_OK(t, qn_request_stop_text(r, k).p + qn_request_stop_text(r, k).n <=
                             (const char *)b.data + b.len);
        }
        b.data[i] = old;
    }
    QT_OK(t, taken > 0 && taken < b.len);
    qn_buf_fini(&b);
}

static void the_builder_refuses_what_the_reader_would(qt *t)
{
    qn_err err = {0};
    qn_buf b;
    qn_buf_init(&b, 1 << 20);
    qn_request_in in = full();
    in.n_tokens = 0;
    QT_EQ(t, qn_request_build(&b, &in, &err), QN_E_INVAL);
    QT_OK(t, b.len == 0 && err.code == QN_E_INVAL && strstr(err.msg, "n_prompt"));
    in = full();
    in.sampling.temperature = NAN;
    QT_EQ(t, qn_request_build(&b, &in, &err), QN_E_INVAL);
    in = full();
    in.n_tokens = QN_REQUEST_MAX_TOKENS + 1; /* far behind the end of the array: not followed */
    QT_EQ(t, qn_request_build(&b, &in, &err), QN_E_LIMIT);
    QT_STR(t, err.msg, "request: 16777217 tokens, limit 16777216");
    in = full();
    in.n_stop_ids = SIZE_MAX;
    QT_EQ(t, qn_request_build(&b, &in, &err), QN_E_LIMIT);
    in = full();
    in.n_stop_text = 2000;
    QT_EQ(t, qn_request_build(&b, &in, &err), QN_E_LIMIT);
    in = full();
    in.n_adapters = 65;
    QT_EQ(t, qn_request_build(&b, &in, &err), QN_E_LIMIT);
    in = full();
    in.biases = (const qn_request_bias[]){{1, 1}, {1, 2}};
    in.n_biases = 2;
    QT_EQ(t, qn_request_build(&b, &in, &err), QN_E_INVAL);
    QT_EQ(t, b.len, 0);
    qn_buf_fini(&b);
    qn_buf_init(&b, 200); /* the buffer's own maximum */
    in = full();
    QT_EQ(t, qn_request_build(&b, &in, &err), QN_E_LIMIT);
    QT_EQ(t, b.len, 0);
    qn_buf_fini(&b);
}

static void build_survives_every_failed_allocation(qt *t)
{
    const qn_request_in in = full();
    const size_t before = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    for (size_t n = 0; rc != QN_OK && n < 32; n++) {
        qn_buf b;
        qn_buf_init(&b, 1 << 20);
        qn_alloc_fail_after(n);
        rc = qn_request_build(&b, &in, NULL);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OK(t, rc == QN_OK || (rc == QN_E_NOMEM && b.len == 0));
        qn_buf_fini(&b);
        QT_EQ(t, qn_alloc_live(), before);
    }
    QT_EQ(t, rc, QN_OK);
}

QT_MAIN(QT(every_field_round_trips), QT(a_bare_request_round_trips),
        QT(equal_requests_are_equal_bytes), QT(blocks_follow_each_other_in_one_buffer),
        QT(refuses_a_wrong_head), QT(refuses_numbers_out_of_range), QT(refuses_arrays_out_of_place),
        QT(refuses_faulty_texts_media_and_state), QT(refuses_every_shorter_block),
        QT(random_damage_is_refused_or_harmless), QT(the_builder_refuses_what_the_reader_would),
        QT(build_survives_every_failed_allocation))
