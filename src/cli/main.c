/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - entry of the quern program. */
#include "base/status.h"

int main(void) { return quern_code_exit(QN_OK); }
