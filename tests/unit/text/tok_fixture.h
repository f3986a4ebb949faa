/* SPDX-License-Identifier: Apache-2.0 */
/* tok_fixture.h - small vocabularies as text, and checks on ids, for the tests of this folder. */
#ifndef TOK_FIXTURE_H
#define TOK_FIXTURE_H
#include "text/detok.h"
#include "text/tokenizer.h"

#include "qt.h"

/* A char-level BPE of a, b, c, ▁ and the merges ab, abc, ▁a; `rules` are further members, each followed
 * by a comma; `model` further members of the model, each with a comma in front. */
#define TINY(rules, model)                                                                         \
    "{" rules "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"c\":2,\"\xE2\x96\x81\":3," \
    "\"ab\":4,\"abc\":5,\"\xE2\x96\x81"                                                            \
    "a\":6,\"u\":7,\" \":8},\"merges\":[\"a b\",\"ab c\","                                         \
    "\"\xE2\x96\x81 a\"]" model "}}"

/* Exits the process when the file is not there: tests run in the root of the repository. */
char *tok_slurp(const char *path, size_t *n);
/* NULL, with a failed check, when it does not open. */
qn_tokenizer *tok_open(qt *t, const char *json);
/* It must be refused with `code` and a message that contains `word`. */
void tok_refused(qt *t, const char *json, qn_code code, const char *word);
/* The ids of text[0, n) must be these ("5 0 1"). */
void tok_ids(qt *t, const qn_tokenizer *tok, const char *text, size_t n, qn_encode_options opt,
             const char *want);
/* The same up to the NUL, with special spellings parsed and nothing added. */
void tok_plain(qt *t, const qn_tokenizer *tok, const char *text, const char *want);

#endif
