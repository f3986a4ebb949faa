/* SPDX-License-Identifier: Apache-2.0 */
/* regex_int.h - the rewriting of one pattern dialect into another, for regex.c. */
#ifndef QN_DEP_REGEX_INT_H
#define QN_DEP_REGEX_INT_H
#include "base/buf.h"

/* Append to *out the Perl-style pattern that means what pattern[0, n) means to Oniguruma (Ruby
 * syntax, UTF-8). Errors: UNSUPPORTED naming the construct and its place, FORMAT, LIMIT, NOMEM. */
qn_code qn_regex_from_onig(qn_buf *out, const char *pattern, size_t n, qn_err *err);

#endif
