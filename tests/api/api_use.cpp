/* SPDX-License-Identifier: Apache-2.0 */
/* api_use.cpp - the same program, compiled as C++. */
#include "api_use.c"
