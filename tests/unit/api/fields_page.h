/* SPDX-License-Identifier: Apache-2.0 */
/* fields_page.h - docs/api-fields.md from fields.def. */
#ifndef API_FIELDS_PAGE_H
#define API_FIELDS_PAGE_H
#include "base/buf.h"

qn_code api_fields_page(qn_buf *out, qn_err *err);

#endif
