/* SPDX-License-Identifier: Apache-2.0 */
/* chat_file_fuzz.c - any bytes as a saved conversation. What is refused names a reason and changes
 * nothing; what is taken holds texts that are UTF-8 and can be written as messages. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/chat_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void want(bool ok)
{
    if (!ok) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    qn_chat_log log;
    qn_err err = {.code = QN_OK};
    const size_t live = qn_alloc_live();
    qn_chat_log_init(&log);
    if (qn_chat_log_parse(&log, (const char *)data, n, &err) == QN_OK) {
        size_t bytes = log.system_n;
        qn_buf out;
        qn_buf_init(&out, SIZE_MAX / 2);
        for (size_t i = 0; i < log.n_turns; i++) {
            want(qn_utf8_valid(log.turns[i].text, log.turns[i].n, NULL));
            bytes += log.turns[i].n;
        }
        want(bytes == log.bytes);
        want(qn_chat_log_messages(&out, &log, NULL) == QN_OK);
        qn_buf_fini(&out);
    } else {
        want(err.code != QN_OK && err.msg[0] && log.n_turns == 0 && !log.system);
    }
    qn_chat_log_fini(&log);
    want(qn_alloc_live() == live);
    return 0;
}
