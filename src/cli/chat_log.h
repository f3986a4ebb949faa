/* SPDX-License-Identifier: Apache-2.0 */
/* chat_log.h - a conversation: a system text and turns, kept, and read and written as a file.
 *
 *     {"quern_chat": 1, "model": "...", "system": "..." or null,
 *      "messages": [{"role": "user" | "assistant", "content": "..."}, ...]}
 *
 * A file is published by rename with mode 0600. What is read is checked like any foreign bytes.
 *
 * Owner:  the caller embeds the struct.
 * Thread: one.
 */
#ifndef QN_CLI_CHAT_LOG_H
#define QN_CLI_CHAT_LOG_H
#include "base/buf.h"
#include "base/str.h"

enum {
    QN_CHAT_VERSION = 1,
    QN_CHAT_TURNS = 100000,   /* the most of one conversation */
    QN_CHAT_BYTES = 64 << 20, /* of all its texts */
    QN_CHAT_FILE_BYTES = 96 << 20
};

typedef enum qn_chat_role { QN_CHAT_USER, QN_CHAT_ASSISTANT } qn_chat_role;

typedef struct qn_chat_turn {
    qn_chat_role role;
    char *text; /* owned, a NUL behind it */
    size_t n;
} qn_chat_turn;

typedef struct qn_chat_log {
    char *system; /* owned; NULL: none */
    size_t system_n;
    qn_chat_turn *turns; /* owned */
    size_t n_turns, cap;
    size_t bytes; /* of all texts */
} qn_chat_log;

void qn_chat_log_init(qn_chat_log *log);
void qn_chat_log_fini(qn_chat_log *log); /* a zeroed or finished log is fine */
/* Copies text, which is UTF-8. Errors: FORMAT (no UTF-8), LIMIT, NOMEM; the log is as it was. */
qn_code qn_chat_log_add(qn_chat_log *log, qn_chat_role role, qn_str text, qn_err *err);
qn_code qn_chat_log_set_system(qn_chat_log *log, qn_str text, qn_err *err); /* n 0: none */
void qn_chat_log_cut(qn_chat_log *log, size_t n_turns); /* forgets the turns from there on */
/* Appends the messages as a JSON array, the system text first where there is one. Errors: LIMIT,
 * NOMEM. */
qn_code qn_chat_log_messages(qn_buf *out, const qn_chat_log *log, qn_err *err);

/* model: what is written into the file for its reader; not needed to load. Errors: INVAL (the file is
 * there and is no saved chat), IO, NOTFOUND, NOMEM; each names the file. */
qn_code qn_chat_log_save(const qn_chat_log *log, const char *path, const char *model, qn_err *err);
/* Replaces *log, which stays as it was after a failure. Errors: NOTFOUND, IO; FORMAT (what is wrong
 * where), UNSUPPORTED (a later version), LIMIT, NOMEM. */
qn_code qn_chat_log_load(qn_chat_log *log, const char *path, qn_err *err);
qn_code qn_chat_log_parse(qn_chat_log *log, const char *text, size_t n, qn_err *err);

#endif
