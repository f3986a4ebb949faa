/* SPDX-License-Identifier: Apache-2.0 */
/* open.h - what verbs that run a model share: the options about it, and opening all of it. */
#ifndef QN_CLI_OPEN_H
#define QN_CLI_OPEN_H
#include "cli/cli.h"

typedef struct qn_run_opts { /* the first member of such a verb's options */
    const char *model;
    uint32_t threads, context, chunk, memory_mib;
    int kv, activations; /* choices */
    bool pack;
    const char *log;
} qn_run_opts;

/* Rows of the option table for member `run` of `type`. */
#define QN_RUN_OPTIONS(type)                                                                   \
    {"model",                                                                                  \
     QN_OPT_TEXT,                                                                              \
     offsetof(type, run.model),                                                                \
     "FILE",                                                                                   \
     "a GGUF or .safetensors file, or a directory of such; needed",                            \
     0,                                                                                        \
     0,                                                                                        \
     0},                                                                                       \
        {"threads",                                                                            \
         QN_OPT_U32,                                                                           \
         offsetof(type, run.threads),                                                          \
         "N",                                                                                  \
         "lanes that compute (QUERN_THREADS, else one per physical core)",                     \
         1,                                                                                    \
         1024,                                                                                 \
         0},                                                                                   \
        {"kv",                                                                                 \
         QN_OPT_CHOICE,                                                                        \
         offsetof(type, run.kv),                                                               \
         "f16|f32|bf16",                                                                       \
         "format of keys and values",                                                          \
         0,                                                                                    \
         0,                                                                                    \
         0},                                                                                   \
        {"activations",                                                                        \
         QN_OPT_CHOICE,                                                                        \
         offsetof(type, run.activations),                                                      \
         "f32|i8",                                                                             \
         "what products multiply weights with",                                                \
         0,                                                                                    \
         0,                                                                                    \
         0},                                                                                   \
        {"context",                                                                            \
         QN_OPT_U32,                                                                           \
         offsetof(type, run.context),                                                          \
         "N",                                                                                  \
         "positions a text may have (the "                                                     \
         "model's)",                                                                           \
         1,                                                                                    \
         1 << 27,                                                                              \
         0},                                                                                   \
        {"chunk", QN_OPT_U32, offsetof(type, run.chunk), "N", "prompt tokens a step (512)", 1, \
         1 << 16, 0},                                                                          \
        {"memory-mib",                                                                         \
         QN_OPT_U32,                                                                           \
         offsetof(type, run.memory_mib),                                                       \
         "N",                                                                                  \
         "refuse to hold more memory "                                                         \
         "than this",                                                                          \
         1,                                                                                    \
         1 << 30,                                                                              \
         0},                                                                                   \
        {"pack",                                                                               \
         QN_OPT_FLAG,                                                                          \
         offsetof(type, run.pack),                                                             \
         NULL,                                                                                 \
         "keep packed weights under "                                                          \
         "QUERN_HOME/images",                                                                  \
         0,                                                                                    \
         0,                                                                                    \
         0},                                                                                   \
    {                                                                                          \
        "log", QN_OPT_TEXT, offsetof(type, run.log), "LEVELS",                                 \
            "log to stderr: \"info\", "                                                        \
            "\"kv=debug,net=off\"",                                                            \
            0, 0, 0                                                                            \
    }

typedef struct qn_running {
    quern_runtime *rt;
    quern_model *model;
    quern_engine *engine;
    double load_ms;
} qn_running;

/* *r is empty after a failure. max_rows 0: the default chunk. Errors: INVAL (no --model), those of
 * the library. */
qn_code qn_run_open(qn_running *r, const qn_run_opts *o, uint32_t max_seqs, qn_io *io, qn_err *err);
void qn_run_close(qn_running *r);

/* SIGINT is asked for, not delivered: block it before threads start (they inherit that), then look.
 * A handler would need a variable of the process. */
void qn_interrupt_block(void);
bool qn_interrupt_pending(void);

#endif
