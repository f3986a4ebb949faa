/* SPDX-License-Identifier: Apache-2.0 */
/* program_test.c - the program itself: results on stdout, words on stderr, exit statuses of
 * errors.def. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dep/json.h"
#include "program.h"
#include "qt.h"
#include "quern/quern.h"

#define MODEL "tests/golden/llama/gguf-q4_1/model.gguf"

#if defined(__x86_64__) /* a level that this build cannot have */
#define FOREIGN_ISA "neon"
#else
#define FOREIGN_ISA "avx512"
#endif

static void fails(qt *t, const char *args, quern_code code, const char *word)
{
    const program_result *r = program_run(args);
    QT_OKF(t, r->status == quern_code_exit(code), "%s: status %d, expected %d (%s)", args,
           r->status, quern_code_exit(code), r->err);
    QT_OKF(t, strstr(r->err, word) != NULL, "%s: \"%s\" does not say \"%s\"", args, r->err, word);
    QT_OKF(t, r->out[0] == '\0', "%s: stdout has \"%s\"", args, r->out);
}

static void version_is_one_line(qt *t)
{
    const program_result *r = program_run("version");
    char want[64];
    snprintf(want, sizeof want, "quern %s\n", quern_version());
    QT_EQ(t, r->status, 0);
    QT_STR(t, r->out, want);
    QT_STR(t, r->err, "");
    QT_STR(t, program_run("--version")->out, want);
}

static void help_lists_all_verbs(qt *t)
{
    static const char *const verbs[] = {"generate", "inspect", "bench", "version", "help"};
    const program_result *r = program_run("help");
    QT_EQ(t, r->status, 0);
    for (size_t i = 0; i < QT_LEN(verbs); i++)
        QT_OKF(t, strstr(r->out, verbs[i]) != NULL, "%s", verbs[i]);
    for (int code = QUERN_OK + 1; code < QUERN_CODE_COUNT; code++) {
        char line[96];
        snprintf(line, sizeof line, "  %-3d  %s\n", quern_code_exit((quern_code)code),
                 quern_code_text((quern_code)code));
        QT_OKF(t, strstr(r->out, line) != NULL, "%s", line);
    }
    QT_OK(t, strstr(program_run("generate --help")->out, "--max-tokens N"));
    QT_OK(t, strstr(program_run("help bench")->out, "--depth N"));
    QT_OK(t, program_run("--help")->status == 0 && program_run("")->status == 0);
}

static void inval_is_64(qt *t)
{
    fails(t, "generat", QUERN_E_INVAL, "did you mean generate?");
    fails(t, "generate --model x --temprature 1 p", QUERN_E_INVAL, "did you mean --temperature?");
    fails(t, "generate --model " MODEL, QUERN_E_INVAL, "the prompt is missing");
    fails(t, "inspect", QUERN_E_INVAL, "inspect takes NAME|FILE, got 0 arguments");
    fails(t, "generate --model tests/golden/llama/mlx-b4-g64 \"$(printf '\\377\\376')\"",
          QUERN_E_INVAL, "the prompt's 2 bytes make no token");
    fails(t, "inspect ''", QUERN_E_INVAL, "name is empty");
    fails(t, "generate --model " MODEL " ''", QUERN_E_INVAL, "the prompt is empty");
}

static void environment_is_checked(qt *t)
{
    char args[256];
    setenv("QUERN_THREADS", "many", 1);
    fails(t, "version", QUERN_E_INVAL, "QUERN_THREADS is \"many\"");
    unsetenv("QUERN_THREADS");
    setenv("QUERN_ISA", "mmx", 1);
    snprintf(args, sizeof args, "generate --model %s a", MODEL);
    fails(t, args, QUERN_E_INVAL, "mmx");
    setenv("QUERN_ISA", FOREIGN_ISA, 1);
    fails(t, args, QUERN_E_INVAL, "\" is not in this build, which has auto, generic");
    unsetenv("QUERN_ISA");
}

static void format_is_65(qt *t)
{
    char args[600];
    snprintf(args, sizeof args, "inspect '%s'", qt_file("x.gguf", "GGUF\3\0\0\0short", 13));
    fails(t, args, QUERN_E_FORMAT, "x.gguf");
    fails(t, "generate --model Makefile a", QUERN_E_FORMAT, "neither a GGUF file");
}

static void notfound_is_66(qt *t)
{
    fails(t, "inspect /nowhere/at/all.gguf", QUERN_E_NOTFOUND, "/nowhere/at/all.gguf");
    fails(t, "generate --model /nowhere/at/all.gguf a", QUERN_E_NOTFOUND, "/nowhere/at/all.gguf");
    fails(t, "generate hello", QUERN_E_NOTFOUND, "\"quern get starter\" brings a small one");
}

static void unsupported_is_69(qt *t)
{
    const char *dir = qt_tmp();
    char args[600];
    const char *config = "{\"model_type\": \"qwen9\"}";
    (void)qt_file("config.json", config, strlen(config));
    snprintf(args, sizeof args,
             "cp tests/golden/llama/st-f32/model.safetensors '%s/model.safetensors'", dir);
    QT_EQ(t, system(args), 0);
    snprintf(args, sizeof args, "generate --model '%s' a", dir);
    fails(t, args, QUERN_E_UNSUPPORTED, "model type \"qwen9\"");
    snprintf(args, sizeof args, "inspect '%s'", dir);
    const program_result *r = program_run(args);
    QT_OK(t, r->status == 0 && strstr(r->out, "problem: ") && strstr(r->out, "qwen9"));
}

/* A prompt larger than the ceiling. */
static void nomem_is_71(qt *t)
{
    char command[1200];
    snprintf(command, sizeof command,
             "head -c 3000000 /dev/zero | tr '\\0' a | %s generate --model " MODEL
             " --memory-mib 1 - >/dev/null 2>&1",
             QUERN_PROGRAM);
    const int status = system(command);
    QT_OK(t, WIFEXITED(status));
    QT_EQ(t, WEXITSTATUS(status), quern_code_exit(QUERN_E_NOMEM));
}

static void limit_is_73(qt *t)
{
    fails(t, "generate --model " MODEL " --context 4 abcdefghijklmnop", QUERN_E_LIMIT, "");
    fails(t, "bench --model " MODEL " --context 8 --prompt 4 --gen 6", QUERN_E_LIMIT,
          "the context ended after 4 tokens behind 4, expected 7");
}

static void io_is_74(qt *t)
{
    char command[1200];
    snprintf(command, sizeof command, "%s version >/dev/full 2>'%s/err'", QUERN_PROGRAM, qt_tmp());
    const int status = system(command);
    QT_OK(t, WIFEXITED(status));
    QT_EQ(t, WEXITSTATUS(status), quern_code_exit(QUERN_E_IO));
}

/* The files that the program opens must not get the number of a stream that is closed. */
static void a_closed_stream_is_74(qt *t)
{
    static const char *const args[] = {
        "version >&-",
        "generate --model " MODEL " --max-tokens 4 --ignore-eos abc >&-",
        "generate --model " MODEL " --max-tokens 4 --ignore-eos abc <&- >&- 2>&-",
        "inspect " MODEL " <&- >&-",
        "generate --model " MODEL " --max-tokens 4 - <&-",
    };
    char command[1200];
    for (size_t i = 0; i < QT_LEN(args); i++) {
        snprintf(command, sizeof command, "exec 2>'%s/err'; %s %s", qt_tmp(), QUERN_PROGRAM,
                 args[i]);
        const int status = system(command);
        QT_OKF(t, WIFEXITED(status) && WEXITSTATUS(status) == quern_code_exit(QUERN_E_IO),
               "%s: status %#x", args[i], (unsigned)status);
    }
}

static void bench_tells_limits_and_shares(qt *t)
{
    const program_result *r = program_run("bench roofline --threads 1 --json");
    QT_EQ(t, r->status, 0);
    QT_OK(t, strstr(r->out, "\"memory\":{\"one\":") && strstr(r->out, "\"f32\":{\"one\":"));
    QT_OK(t, strstr(program_run("bench roofline --threads 2")->out, "2 threads") != NULL);
    r = program_run("bench --model " MODEL " --prompt 20 --gen 4 --roofline --json");
    QT_EQ(t, r->status, 0);
    QT_OK(t, strstr(r->out, "\"decode_of_memory\":") && strstr(r->out, "\"prefill_of_f32\":"));
    fails(t, "bench rooflin", QUERN_E_INVAL, "expected roofline");
}

static void cancelled_is_130(qt *t)
{
    static const char *const generate[] = {
        "quern", "generate", "--model", MODEL, "--max-tokens", "400", "--ignore-eos", "a", NULL};
    static const char *const bench[] = {"quern", "bench", "--model", MODEL,  "--prompt", "100",
                                        "--gen", "300",   "--reps",  "1000", NULL};
    const program_result *r = program_interrupted(generate);
    QT_EQ(t, r->status, 130);
    QT_OK(t, r->out[0] &&
                 r->out[strlen(r->out) - 1] == '\n'); /* the stream still ended as it should */
    r = program_interrupted(bench);
    QT_EQ(t, r->status, 130);
    QT_STR(t, r->out, "");
}

/* Each of these changes what greedy decoding of this model would say. */
static void penalties_and_biases_reach_the_draw(qt *t)
{
    static const char *const with[] = {"--presence-penalty 1000 --presence-context 0",
                                       "--repetition-penalty 1000 --repetition-context 0",
                                       "--frequency-penalty=-1000 --frequency-context 5",
                                       "--logit-bias 70=1000 --logit-bias 3=-5.5"};
    char args[512], plain[512];
    const char *rest = "generate --model " MODEL " --temp 0 --max-tokens 30 --ignore-eos abc";
    snprintf(plain, sizeof plain, "%.400s", program_run(rest)->out);
    for (size_t i = 0; i < QT_LEN(with); i++) {
        snprintf(args, sizeof args, "%s %s", rest, with[i]);
        const program_result *r = program_run(args);
        QT_OKF(t, r->status == 0 && strcmp(r->out, plain) != 0, "%s: %s", with[i], r->err);
    }
    snprintf(args, sizeof args, "%s --min-tokens 3 --xtc-probability 1 --xtc-threshold 0.05", rest);
    QT_EQ(t, program_run(args)->status, 0);
    fails(t, "generate --model " MODEL " --logit-bias 5 abc", QUERN_E_INVAL, "expected ID=VALUE");
    fails(t, "generate --model " MODEL " --logit-bias 5=x abc", QUERN_E_INVAL, "expected ID=VALUE");
    fails(t, "generate --model " MODEL " --logit-bias 101=1 abc", QUERN_E_INVAL, "id 101");
    fails(t, "generate --model " MODEL " --xtc-threshold 0.6 abc", QUERN_E_INVAL,
          "--xtc-threshold");
    fails(t, "generate --model " MODEL " --max-tokens 2 --min-tokens 3 abc", QUERN_E_INVAL,
          "min_tokens is 3");
}

static void generate_gives_text_and_nothing_else(qt *t)
{
    char first[4096];
    const program_result *r =
        program_run("generate --model " MODEL " --temp 0 --max-tokens 8 --ignore-eos abc");
    QT_EQ(t, r->status, 0);
    QT_STR(t, r->err, "");
    const size_t n = strlen(r->out);
    QT_OK(t, n > 1 && r->out[n - 1] == '\n');
    snprintf(first, sizeof first, "%.4000s", r->out);
    r = program_run("generate --model " MODEL " --temp 0 --max-tokens 8 --ignore-eos --stats "
                    "--threads 2 --chunk 1 --prompt abc");
    QT_STR(t, r->out, first); /* threads and chunks change nothing */
    QT_OK(t, strstr(r->err, "completion 8 tokens"));
    r = program_run("generate --model " MODEL " --temp 0 --max-tokens 8 --ignore-eos - </dev/null");
    QT_EQ(t, r->status, 64);
}

static void a_seed_repeats_the_text(qt *t)
{
    char first[4096];
    const char *args = "generate --model " MODEL " --temp 1 --top-p 0.9 --top-k 50 --min-p 0.01 "
                       "--seed 7 --max-tokens 20 --ignore-eos abc";
    snprintf(first, sizeof first, "%.4000s", program_run(args)->out);
    QT_STR(t, program_run(args)->out, first);
    QT_OK(t, strlen(first) > 1);
}

static void a_stop_text_is_cut_off(qt *t)
{
    const program_result *r =
        program_run("generate --model " MODEL " --temp 0 --max-tokens 8 --ignore-eos abc");
    char whole[256], args[512];
    snprintf(whole, sizeof whole, "%.200s", r->out);
    const size_t n = strlen(whole);
    if (!QT_OK(t, n > 5)) return;
    char stop[3] = {whole[2], whole[3], '\0'};
    if (strchr("'\\\n\"$`", stop[0]) || strchr("'\\\n\"$`", stop[1])) stop[1] = '\0';
    snprintf(args, sizeof args,
             "generate --model %s --temp 0 --max-tokens 8 --ignore-eos --stop '%s' abc", MODEL,
             stop);
    r = program_run(args);
    QT_EQ(t, r->status, 0);
    QT_OKF(t, strstr(r->out, stop) == NULL && strlen(r->out) < n, "\"%s\" of \"%s\" at \"%s\"",
           r->out, whole, stop);
}

/* A model whose words carry their space in front, as SentencePiece's do: 26 letters, the space and 72
 * words. Gives its folder. */
static const char *model_of_words(void)
{
    static char dir[560];
    char command[1400], path[600];
    snprintf(dir, sizeof dir, "%s/words", qt_tmp());
    snprintf(
        command, sizeof command,
        "mkdir -p '%s' && cd tests/golden/llama/st-f32 && cp config.json model.safetensors '%s'",
        dir, dir);
    if (system(command) != 0) return NULL;
    snprintf(path, sizeof path, "%s/tokenizer.json", dir);
    FILE *f = fopen(path, "wb");
    if (!f) return NULL;
    fputs(
        "{\"added_tokens\": [{\"id\": 0, \"content\": \"<unk>\", \"special\": true},"
        "{\"id\": 1, \"content\": \"</s>\", \"special\": true}],"
        "\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Prepend\", "
        "\"prepend\": "
        "\"\\u2581\"}, {\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": "
        "\"\\u2581\"}]},"
        "\"pre_tokenizer\": null, \"post_processor\": null,"
        "\"decoder\": {\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Replace\", \"pattern\": "
        "{\"String\": \"\\u2581\"}, \"content\": \" \"}, {\"type\": \"Fuse\"}, {\"type\": "
        "\"Strip\", \"content\": "
        "\" \", \"start\": 1, \"stop\": 0}]},"
        "\"model\": {\"type\": \"BPE\", \"merges\": [], \"vocab\": {\"<unk>\": 0, \"</s>\": 1, "
        "\"\\u2581\": 28",
        f);
    for (int i = 0; i < 26; i++) fprintf(f, ", \"%c\": %d", 'a' + i, 2 + i);
    for (int i = 0; i < 72; i++)
        fprintf(f, ", \"\\u2581%c%c\": %d", 'a' + i / 26, 'a' + i % 26, 29 + i);
    fputs("}}}", f);
    return fclose(f) == 0 ? dir : NULL;
}

/* What is shown and what stop texts are looked for in is one text, its first space included. */
static void a_stop_text_may_begin_with_the_first_space(qt *t)
{
    const char *dir = model_of_words();
    char args[1024];
    int found = 0;
    if (!QT_OK(t, dir != NULL)) return;
    for (int seed = 0; seed < 8; seed++) {
        const int n = snprintf(
            args, sizeof args,
            "generate --model '%s' --temp 1 --seed %d --max-tokens 6 --ignore-eos abc", dir, seed);
        const program_result *r = program_run(args);
        if (!QT_OKF(t, r->status == 0, "%s", r->err)) return;
        if (r->out[0] != ' ' || r->out[1] < 'a' || r->out[1] > 'z') continue;
        found++;
        snprintf(args + n, sizeof args - (size_t)n, " --stop ' %c'", r->out[1]);
        QT_STR(t, program_run(args)->out, "\n");
    }
    QT_OK(t, found > 0);
}

static void inspect_gives_json(qt *t)
{
    const program_result *r = program_run("inspect --json --tensors " MODEL);
    qn_json *root = NULL;
    QT_EQ(t, r->status, 0);
    QT_EQ(t, qn_json_parse(&root, r->out, strlen(r->out), SIZE_MAX, NULL), QN_OK);
    QT_OK(t, qn_json_len(qn_json_get(root, "tensors")) > 5 && qn_json_get(root, "model"));
    qn_json_free(root);
    QT_OK(t, strstr(program_run("inspect " MODEL)->out, "llama.block_count = "));
}

static void bench_gives_one_json_line(qt *t)
{
    const program_result *r =
        program_run("bench --model " MODEL " --prompt 20 --gen 3 --threads 1 --reps 2 --json");
    qn_json *root = NULL;
    QT_EQ(t, r->status, 0);
    QT_EQ(t, qn_json_parse(&root, r->out, strlen(r->out), SIZE_MAX, NULL), QN_OK);
    QT_OK(t, qn_json_num(qn_json_get(root, "prefill_tps"), 0) > 0);
    QT_OK(t, qn_json_num(qn_json_get(root, "decode_tps"), 0) > 0);
    QT_OK(t, qn_json_num(qn_json_get(root, "load_ms"), 0) > 0);
    QT_EQ(t, qn_json_len(qn_json_get(root, "reps")), 2);
    QT_EQ(t, qn_json_len(qn_json_get(root, "ids")), 4);
    qn_json_free(root);
    QT_OK(t, strstr(program_run("bench --model " MODEL " --prompt 4 --gen 2 --depth 9")->out,
                    "depth 9"));
    r = program_run("bench --model " MODEL " --prompt 20 --gen 5 --chunk 8 --batch 3 --json");
    QT_EQ(t, r->status, 0);
    QT_EQ(t, qn_json_parse(&root, r->out, strlen(r->out), SIZE_MAX, NULL), QN_OK);
    QT_EQ(t, qn_json_int(qn_json_get(root, "batch"), 0), 3);
    QT_OK(t, qn_json_num(qn_json_get(root, "decode_tps"), 0) > 0);
    QT_OK(t, qn_json_int(qn_json_get(qn_json_get(root, "token"), "weight_bytes"), 0) > 0);
    qn_json_free(root);
}

static void images_live_under_the_home(qt *t)
{
    char args[800], path[600];
    struct stat st;
    setenv("QUERN_HOME", qt_tmp(), 1);
    snprintf(path, sizeof path, "%s/images", qt_tmp());
    snprintf(args, sizeof args, "generate --model %s --max-tokens 2 abc", MODEL);
    QT_EQ(t, program_run(args)->status, 0);
    QT_EQ(t, stat(path, &st), 0);
    QT_OK(t, strstr(program_run("generate --model " MODEL " --log info --max-tokens 2 abc")->err,
                    "rebuild") == NULL);
    unsetenv("QUERN_HOME");
}

QT_MAIN(QT(version_is_one_line), QT(help_lists_all_verbs), QT(inval_is_64),
        QT(environment_is_checked), QT(format_is_65), QT(notfound_is_66), QT(unsupported_is_69),
        QT(nomem_is_71), QT(limit_is_73), QT(io_is_74), QT(a_closed_stream_is_74),
        QT(bench_tells_limits_and_shares), QT(cancelled_is_130),
        QT(penalties_and_biases_reach_the_draw), QT(generate_gives_text_and_nothing_else),
        QT(a_seed_repeats_the_text), QT(a_stop_text_is_cut_off),
        QT(a_stop_text_may_begin_with_the_first_space), QT(inspect_gives_json),
        QT(bench_gives_one_json_line), QT(images_live_under_the_home))
