/* SPDX-License-Identifier: Apache-2.0 */
/* roofline.c - the limits of this machine as a table and as JSON. */
#include "cli/roofline.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *name, *unit;
    size_t at;
    double scale;
} rates[] = {
    {"l2", "GB/s", offsetof(quern_roofline_report, l2), 1e9},
    {"l3", "GB/s", offsetof(quern_roofline_report, l3), 1e9},
    {"memory", "GB/s", offsetof(quern_roofline_report, memory), 1e9},
    {"f32", "GFLOP/s", offsetof(quern_roofline_report, f32), 1e9},
    {"f16", "GFLOP/s", offsetof(quern_roofline_report, f16), 1e9},
    {"bf16", "GFLOP/s", offsetof(quern_roofline_report, bf16), 1e9},
    {"int8", "GOP/s", offsetof(quern_roofline_report, int8), 1e9},
};

static const quern_rate *rate_at(const quern_roofline_report *r, size_t i)
{
    return (const quern_rate *)(const void *)((const char *)r + rates[i].at);
}

qn_json *qn_roofline_json(const quern_roofline_report *r)
{
    qn_json *root = qn_json_new_object();
    bool ok = qn_json_set(root, "threads", qn_json_new_int(r->threads));
    ok = qn_json_set(root, "quiet", qn_json_new_bool(r->quiet != 0)) && ok;
    ok = qn_json_set(root, "others", qn_json_new_num(r->others)) && ok;
    ok = qn_json_set(root, "stolen", qn_json_new_num(r->stolen)) && ok;
    for (size_t i = 0; i < QN_LEN(rates); i++) {
        const quern_rate *v = rate_at(r, i);
        if (v->one <= 0) continue;
        qn_json *o = qn_json_new_object();
        ok = qn_json_set(o, "one", qn_json_new_num(v->one)) && ok;
        ok = qn_json_set(o, "all", qn_json_new_num(v->all)) && ok;
        ok = qn_json_set(o, "how", qn_json_new_str(v->how, strlen(v->how))) && ok;
        if (v->bytes) ok = qn_json_set(o, "bytes", qn_json_new_int((int64_t)v->bytes)) && ok;
        ok = qn_json_set(root, rates[i].name, o) && ok;
    }
    if (ok) return root;
    qn_json_free(root);
    return NULL;
}

static double share(double of, const quern_rate *rate, uint32_t threads)
{
    const double most = threads > 1 ? rate->all : rate->one;
    return most > 0 ? of / most : 0;
}

qn_shares qn_roofline_shares(const quern_roofline_report *r, const quern_traffic *t,
                             uint32_t threads, double prefill_tps, double decode_tps)
{
    const double bytes = (double)(t->weight_bytes + t->kv_bytes) * decode_tps;
    const double ops = (double)t->row_ops * prefill_tps;
    return (qn_shares){bytes, share(bytes, &r->memory, threads), share(bytes, &r->l3, threads),
                       ops,   share(ops, &r->int8, threads),     share(ops, &r->f32, threads)};
}

const char *qn_roofline_noise(char text[96], const quern_roofline_report *r)
{
    text[0] = '\0';
    if (!r->quiet)
        snprintf(text, 96, "this machine was busy: others had %.2f cores, the hypervisor took %.2f",
                 r->others, r->stolen);
    return text;
}

static void print(qn_io *io, const quern_roofline_report *r)
{
    char noise[96];
    qn_io_print(io, "%-7s %16s", "", "one thread");
    if (r->threads > 1) qn_io_print(io, " %8u threads", r->threads);
    qn_io_print(io, "\n");
    for (size_t i = 0; i < QN_LEN(rates); i++) {
        const quern_rate *v = rate_at(r, i);
        if (v->one <= 0) continue;
        qn_io_print(io, "%-7s %8.1f %-7s", rates[i].name, v->one / rates[i].scale, rates[i].unit);
        if (r->threads > 1) qn_io_print(io, " %8.1f %-7s", v->all / rates[i].scale, rates[i].unit);
        qn_io_print(io, "  %s", v->how);
        if (v->bytes) qn_io_print(io, " (%.1f MiB a thread)", (double)v->bytes / 1048576.0);
        qn_io_print(io, "\n");
    }
    if (!r->quiet) fprintf(io->err, "quern: %s\n", qn_roofline_noise(noise, r));
}

qn_code qn_roofline_verb(uint32_t threads, uint32_t memory_mib, bool json, qn_io *io, qn_err *err)
{
    qn_code rc = QN_OK;
    quern_runtime *rt = NULL;
    quern_runtime_options ro = QUERN_RUNTIME_OPTIONS_INIT;
    quern_roofline_report r = {.size = sizeof r};
    ro.isa = io->isa;
    ro.threads = threads ? threads : io->threads;
    ro.memory_ceiling = (uint64_t)memory_mib << 20;
    QN_TRY_OUT(quern_runtime_open(&rt, &ro, err));
    QN_TRY_OUT(quern_roofline(&r, rt, 0, err));
    if (json) {
        QN_TRY_OUT(qn_io_json(io, qn_roofline_json(&r), err));
    } else {
        print(io, &r);
        QN_TRY_OUT(qn_io_flush(io, err));
    }
out:
    quern_runtime_close(rt);
    return rc;
}
