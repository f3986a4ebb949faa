/* SPDX-License-Identifier: Apache-2.0 */
/* open.h - what verbs that run a model share: the options about it, and opening all of it. */
#ifndef QN_CLI_OPEN_H
#define QN_CLI_OPEN_H
#include "cli/cli.h"

typedef struct qn_run_opts { /* the first member of such a verb's options */
    const char *model;
    uint32_t threads, context, chunk, memory_mib;
    int kv, activations; /* choices */
    bool no_image;
    const char *log;
} qn_run_opts;

/* clang-format off */
/* Rows of the option table for member `run` of `type`. */
#define QN_RUN_OPTION(type, name, kind, member, arg, help, lo, hi)                 \
    {                                                                              \
        name, QN_OPT_##kind, offsetof(type, run.member), arg, help, lo, hi, 0      \
    }
#define QN_RUN_OPTIONS(type) \
    QN_RUN_OPTION(type, "model", TEXT, model, "NAME|FILE", "a name of \"quern ls\", a GGUF or .safetensors file, or a folder (the only model there, else the starter)", 0, 0), \
    QN_RUN_OPTION(type, "threads", U32, threads, "N", "lanes that compute (QUERN_THREADS, else one per physical core)", 1, 1024), \
    QN_RUN_OPTION(type, "kv", CHOICE, kv, "f16|f32|bf16", "format of keys and values", 0, 0), \
    QN_RUN_OPTION(type, "activations", CHOICE, activations, "i16|f32|i8", "what products multiply weights with: i16 is as exact as f32, i8 is not", 0, 0), \
    QN_RUN_OPTION(type, "context", U32, context, "N", "positions a text may have (the model's)", 1, 1 << 27), \
    QN_RUN_OPTION(type, "chunk", U32, chunk, "N", "prompt tokens a step (512)", 1, 1 << 16), \
    QN_RUN_OPTION(type, "memory-mib", U32, memory_mib, "N", "refuse to hold more memory than this", 1, 1 << 30), \
    QN_RUN_OPTION(type, "no-image", FLAG, no_image, NULL, "lay weights out in memory; keep nothing under QUERN_HOME/images", 0, 0), \
    QN_RUN_OPTION(type, "log", TEXT, log, "LEVELS", "log to stderr: \"info\", \"image=debug\"", 0, 0)
/* clang-format on */

/* Opens the store that the environment names. token: of the hub's account, or NULL. Errors: INVAL (no
 * QUERN_HOME, no HOME), NOMEM. */
qn_code qn_cli_store(quern_store **out, const char *token, const qn_io *io, qn_err *err);
/* The path that --model NAME means, owned (quern_text_free). NULL: what the store would take, which is
 * then told on stderr. Errors: as quern_store_find. */
qn_code qn_cli_model(char **path, const char *name, qn_io *io, qn_err *err);
/* What a person calls the model at path: ORG/NAME of a snapshot, else the last part without its ending. */
void qn_cli_model_name(char *out, size_t cap, const char *path);

typedef struct qn_running {
    char *path; /* of the model */
    quern_runtime *rt;
    quern_model *model;
    quern_engine *engine;
    double load_ms;
} qn_running;

/* max_seqs: requests stepped together. *r is empty after a failure. Errors: those of qn_cli_model and of
 * the library. */
qn_code qn_run_open(qn_running *r, const qn_run_opts *o, uint32_t max_seqs, qn_io *io, qn_err *err);
/* The same with room for so many waiting requests; 0: the engine's default. */
qn_code qn_run_open_queue(qn_running *r, const qn_run_opts *o, uint32_t max_seqs, uint32_t queue,
                          qn_io *io, qn_err *err);
void qn_run_close(qn_running *r);

/* SIGINT is asked for, not delivered: block it before threads start (they inherit that), then look.
 * A handler would need a variable of the process. */
void qn_interrupt_block(void);
bool qn_interrupt_pending(void);
/* True once for each SIGINT that came (several that come together count as one); it is then gone. */
bool qn_interrupt_take(void);

#endif
