/* SPDX-License-Identifier: Apache-2.0 */
/* fit.c - what a model would take, for the public. */
#include <string.h>

#include "lib/lib_int.h"

static void fill(quern_fit_report *r, const qn_fit *f, const qn_fit_ask *ask,
                 const qn_memory_room *room)
{
    r->weight_bytes = f->weights;
    r->tokenizer_bytes = f->tokenizer;
    r->plan_bytes = f->plans;
    r->kv_bytes = f->kv;
    r->kv_all_bytes = f->kv * ask->max_seqs;
    r->needed_bytes = f->needed;
    r->available_bytes = room->available;
    r->limit = room->limit;
    r->context = ask->context;
    r->fits = f->needed <= room->available;
}

quern_code quern_fit(quern_fit_report *report, quern_runtime *rt, const char *path,
                     const quern_model_options *model_opt, const quern_engine_options *engine_opt,
                     quern_error *err)
{
    quern_model_options mo;
    quern_engine_options eo;
    qn_fit_ask ask;
    qn_fit fit;
    quern_fit_report all = {0};
    QN_TRY(qn_lib_given(report, "report", err));
    QN_TRY(qn_lib_given(rt, "runtime", err));
    QN_TRY(qn_lib_path(path, err));
    QN_TRY(qn_lib_options(&mo, sizeof mo, sizeof mo, model_opt, "model", err));
    QN_TRY(qn_lib_options(&eo, sizeof eo, sizeof eo, engine_opt, "engine", err));
    if (report->size < sizeof report->size || report->size > 1 << 16)
        return qn_fail(err, QN_E_INVAL, "report: size is %zu, expected %zu", report->size,
                       sizeof all);
    QN_TRY(qn_lib_fit_ask(&ask, &eo, err));
    const qn_memory_room room = qn_fit_room(rt->memory_ceiling);
    QN_TRY(qn_fit_read(&fit, &all.context_fits, &all.layers, &ask, room.available, path, err));
    fill(&all, &fit, &ask, &room);
    const size_t size = report->size;
    all.size = size;
    memset(report, 0, size);
    memcpy(report, &all, size < sizeof all ? size : sizeof all);
    return QN_OK;
}
