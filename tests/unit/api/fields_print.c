/* SPDX-License-Identifier: Apache-2.0 */
/* fields_print.c - prints docs/api-fields.md. */
#include <stdio.h>

#include "fields_page.h"

int main(void)
{
    qn_buf page;
    qn_buf_init(&page, 1u << 20);
    const qn_code rc = api_fields_page(&page, NULL);
    fputs(qn_buf_text(&page), stdout);
    qn_buf_fini(&page);
    return rc == QN_OK ? 0 : 1;
}
