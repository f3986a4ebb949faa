/* SPDX-License-Identifier: Apache-2.0 */
/* error.h - the one result code and the one error record of the library.
 *
 * Every call that can fail returns a quern_code; 0 is success everywhere. Where more is known, a
 * quern_error is filled: the thing, the value found and the value expected.
 *
 * Thread: values only, no shared state.
 */
#ifndef QUERN_ERROR_H
#define QUERN_ERROR_H
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define QUERN_API __attribute__((visibility("default")))
#else
#define QUERN_API
#endif

typedef enum quern_code {
    QUERN_OK = 0,
#define X(name, http, exit, retry, text) QUERN_E_##name,
#include "quern/errors.def"
#undef X
    QUERN_CODE_COUNT
} quern_code;

typedef struct quern_error { /* told once where the fact is known; callers only prefix it */
    quern_code code;
    int sys;       /* errno of the failed call, 0 when none was involved */
    char msg[240]; /* UTF-8, NUL-terminated, never empty when code != QUERN_OK */
} quern_error;

/* The code's short name ("NOMEM") and its standing text; borrowed for ever. Unknown codes give "?". */
QUERN_API const char *quern_code_name(quern_code code);
QUERN_API const char *quern_code_text(quern_code code);
/* The status an HTTP server answers with, and the status a command line exits with. */
QUERN_API int quern_code_http(quern_code code);
QUERN_API int quern_code_exit(quern_code code);
/* True where the same call may succeed later without any change. */
QUERN_API bool quern_code_retryable(quern_code code);

#ifdef __cplusplus
}
#endif
#endif
