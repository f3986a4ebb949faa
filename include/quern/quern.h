/* SPDX-License-Identifier: Apache-2.0 */
/* quern.h - the whole public interface.
 *
 *     quern_runtime ─► quern_model ─► quern_engine ─► quern_request ─► events
 *
 * Forms that never vary:
 * - Constructors: quern_code quern_x_open(quern_x **out, ..., const quern_x_options *opt,
 *   quern_error *err). *out is NULL after a failure; opt may be NULL (all defaults); err may be NULL.
 * - Option structs begin with their own size. Start from QUERN_X_OPTIONS_INIT, so that a program
 *   built against an older header keeps its meaning; a field at zero means "the default"
 *   (the *_context of penalties excepted: zero there means "all").
 * - Text is pointer and length in bytes, UTF-8, no NUL needed, except paths and names.
 * - owned: free it with the call named; borrowed: valid until the moment named; shared: counted.
 */
#ifndef QUERN_QUERN_H
#define QUERN_QUERN_H
#include "quern/engine.h"
#include "quern/error.h"
#include "quern/fit.h"
#include "quern/inspect.h"
#include "quern/model.h"
#include "quern/request.h"
#include "quern/roofline.h"
#include "quern/runtime.h"
#include "quern/store.h"
#include "quern/template.h"
#endif
