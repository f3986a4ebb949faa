/* SPDX-License-Identifier: Apache-2.0 */
/* verb_doctor.c - `quern doctor`: what this machine can do for language models, and what is in the
 * way. Facts become one JSON object; the text is written from the same object. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cpu.h"
#include "cli/open.h"
#include "cli/probe.h"

enum { PORT = 8080 };
#define GIB 1073741824.0
#define MIB 1048576.0

typedef struct doctor_opts {
    bool json, quick;
} doctor_opts;

static const qn_opt options[] = {
    {"json", QN_OPT_FLAG, offsetof(doctor_opts, json), NULL, "one JSON object on stdout", 0, 0, 0},
    {"quick", QN_OPT_FLAG, offsetof(doctor_opts, quick), NULL, "measure nothing", 0, 0, 0},
    QN_OPT_END,
};

static const struct {
    uint32_t bit;
    const char *name;
} features[] = {
    {QN_CPU_AVX2, "avx2"},
    {QN_CPU_FMA, "fma"},
    {QN_CPU_F16C, "f16c"},
    {QN_CPU_AVX_VNNI, "avx_vnni"},
    {QN_CPU_AVX512F, "avx512f"},
    {QN_CPU_AVX512BW, "avx512bw"},
    {QN_CPU_AVX512VL, "avx512vl"},
    {QN_CPU_AVX512DQ, "avx512dq"},
    {QN_CPU_AVX512VNNI, "avx512vnni"},
    {QN_CPU_AVX512BF16, "avx512bf16"},
    {QN_CPU_AVX512FP16, "avx512fp16"},
    {QN_CPU_NEON, "neon"},
    {QN_CPU_DOTPROD, "dotprod"},
    {QN_CPU_I8MM, "i8mm"},
    {QN_CPU_FP16, "fp16"},
    {QN_CPU_BF16, "bf16"},
};

typedef struct report { /* an object under construction; ok turns false when memory ran out */
    qn_json *root, *warnings;
    bool ok;
} report;

static void put(report *r, qn_json *to, const char *key, qn_json *value)
{
    if (!to) {
        qn_json_free(value);
        r->ok = false;
    } else if (!qn_json_set(to, key, value)) {
        r->ok = false;
    }
}

static void put_num(report *r, qn_json *to, const char *key, uint64_t v)
{
    put(r, to, key, qn_json_new_int((int64_t)v));
}

/* Text of the system may be no UTF-8; then it is left empty. */
static void put_text(report *r, qn_json *to, const char *key, const char *text)
{
    const bool fine = text && qn_utf8_valid(text, strlen(text), NULL);
    put(r, to, key,
        text ? qn_json_new_str(fine ? text : "", fine ? strlen(text) : 0) : qn_json_new_null());
}

static void warn(report *r, const char *fmt, ...) QN_PRINTF(2, 3);
static void warn(report *r, const char *fmt, ...)
{
    char line[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    const size_t n = strlen(line) - qn_utf8_partial_tail(line, strlen(line));
    if (!r->warnings || !qn_json_push(r->warnings, qn_json_new_str(line, n))) r->ok = false;
}

/* -- facts ------------------------------------------------------------------------------------- */

static void put_processor(report *r, const qn_machine *m, const char *isa)
{
    qn_json *cpu = qn_json_new_object(), *list = qn_json_new_array();
    const uint32_t bits = qn_cpu_features();
    const unsigned usable = qn_cpu_cores();
    put_text(r, cpu, "model", m->cpu);
    put_num(r, cpu, "sockets", m->sockets);
    put_num(r, cpu, "cores", m->cores);
    put_num(r, cpu, "threads", m->threads);
    put_num(r, cpu, "numa_nodes", m->nodes);
    put_num(r, cpu, "usable_cores", usable);
    put_num(r, cpu, "l1d_bytes", m->l1d_bytes);
    put_num(r, cpu, "l2_bytes", m->l2_bytes);
    put_num(r, cpu, "l3_bytes", m->l3_bytes);
    for (size_t i = 0; list && i < QN_LEN(features); i++)
        if (bits & features[i].bit &&
            !qn_json_push(list, qn_json_new_str(features[i].name, strlen(features[i].name))))
            r->ok = false;
    put(r, cpu, "features", list);
    put_text(r, cpu, "runs_as", isa);
    put(r, r->root, "cpu", cpu);
    if (m->cores && usable < m->cores)
        warn(r, "only %u of %u cores may be used: affinity or the control group's quota says so",
             usable, m->cores);
#if defined(__x86_64__)
    if (!(bits & QN_CPU_AVX2))
        warn(r, "the processor has no AVX2: only portable kernels run, several times slower");
#endif
}

static void put_memory(report *r, const qn_machine *m)
{
    qn_json *memory = qn_json_new_object();
    put_num(r, memory, "total_bytes", m->memory_bytes);
    put_num(r, memory, "available_bytes", m->available_bytes);
    put(r, memory, "limit_bytes",
        m->limit_bytes ? qn_json_new_int((int64_t)m->limit_bytes) : qn_json_new_null());
    put(r, memory, "address_space_bytes",
        m->address_bytes ? qn_json_new_int((int64_t)m->address_bytes) : qn_json_new_null());
    put_text(r, memory, "huge_pages", m->huge_pages);
    put(r, r->root, "memory", memory);
    if (m->limit_bytes)
        warn(r,
             "the control group allows %.1f GiB of the machine's %.1f: a model must fit into that "
             "with its keys and values",
             (double)m->limit_bytes / GIB, (double)m->memory_bytes / GIB);
    if (m->address_bytes)
        warn(r,
             "a process may have %.2f GiB of address space (\"ulimit -v\"): files of models are "
             "mapped into it",
             (double)m->address_bytes / GIB);
    if (m->available_bytes && (double)m->available_bytes < GIB)
        warn(r, "only %.0f MiB of memory are available: close programs, or choose a small model",
             (double)m->available_bytes / MIB);
    if (strcmp(m->huge_pages, "never") == 0)
        warn(r,
             "transparent huge pages are off: \"madvise\" lets large models run a little faster");
}

static void put_bandwidth(report *r, const qn_machine *m)
{
    qn_bandwidth b;
    qn_err err = {0};
    qn_json *speed = qn_json_new_object();
    if (qn_probe_bandwidth(&b, m, qn_cpu_cores(), &err) != QN_OK) {
        warn(r, "memory bandwidth was not measured: %s", err.msg);
        qn_json_free(speed);
        return;
    }
    put_num(r, speed, "buffer_bytes", b.buffer_bytes);
    put_num(r, speed, "threads", b.threads);
    put(r, speed, "one_thread_gb_s", qn_json_new_num((double)(int64_t)(b.one / 1e7) / 100));
    put(r, speed, "all_threads_gb_s", qn_json_new_num((double)(int64_t)(b.all / 1e7) / 100));
    put(r, speed, "beyond_cache", qn_json_new_bool(b.buffer_bytes >= 4 * m->l3_bytes));
    put(r, r->root, "memory_read", speed);
}

static void put_cards(report *r, const qn_machine *m)
{
    qn_json *cards = qn_json_new_array();
    for (unsigned i = 0; cards && i < m->n_cards; i++) {
        const bool fine = qn_utf8_valid(m->card[i], strlen(m->card[i]), NULL);
        if (!qn_json_push(cards, qn_json_new_str(m->card[i], fine ? strlen(m->card[i]) : 0)))
            r->ok = false;
    }
    put(r, r->root, "cards", cards);
    put_text(r, r->root, "card_driver", m->driver[0] ? m->driver : NULL);
    if (m->n_cards)
        warn(r, "an NVIDIA card is visible, but this build has no CUDA support yet: models run on "
                "the processor");
}

/* The longest beginning of `path` that exists. */
static void existing_part(char *path)
{
    while (access(path, F_OK) != 0) {
        char *slash = strrchr(path, '/');
        if (!slash) {
            path[0] = '.';
            path[1] = '\0';
            return;
        }
        slash[slash == path] = '\0'; /* "/" stays */
        if (slash == path) return;
    }
}

/* Nothing is listed where there is no store; one that cannot be read is told. */
static void put_models(report *r, qn_json *to, const qn_io *io)
{
    qn_err err = {0};
    quern_store *store = NULL;
    quern_store_list *list = NULL;
    qn_code rc = io->home ? qn_cli_store(&store, NULL, io, &err) : QN_OK;
    if (rc == QN_OK && store) rc = quern_store_list_open(&list, store, NULL, &err);
    uint64_t models = 0, bytes = 0;
    for (size_t i = 0; i < quern_store_list_count(list); i++) {
        const quern_store_model *m = quern_store_list_at(list, i);
        models += m->canonical;
        bytes += m->canonical ? m->bytes : 0;
    }
    put_num(r, to, "models", models);
    put_num(r, to, "model_bytes", bytes);
    put_text(r, to, "hub_cache", io->hub_cache);
    if (rc != QN_OK) warn(r, "the models are not counted: %s", err.msg);
    quern_store_list_close(list);
    quern_store_close(store);
}

static void put_store(report *r, const qn_io *io)
{
    char path[4200];
    const char *home = io->home;
    struct statvfs fs;
    struct stat st;
    qn_json *store = qn_json_new_object();
    put_text(r, store, "path", home);
    bool writable = false;
    const int n = home ? snprintf(path, sizeof path, "%s", home) : -1;
    if (n > 1 && (size_t)n < sizeof path) {
        put(r, store, "exists", qn_json_new_bool(access(path, F_OK) == 0));
        existing_part(path);
        writable = stat(path, &st) == 0 && S_ISDIR(st.st_mode) && access(path, W_OK | X_OK) == 0;
        if (statvfs(path, &fs) == 0) {
            const double room = (double)fs.f_bavail * (double)fs.f_frsize;
            put(r, store, "free_bytes", qn_json_new_int((int64_t)room));
            if (writable && room < GIB)
                warn(r, "%s has %.0f MiB of room: QUERN_HOME may name a larger disk", home,
                     room / MIB);
        }
    }
    put(r, store, "writable", qn_json_new_bool(writable));
    put_models(r, store, io);
    put(r, r->root, "store", store);
    if (!home)
        warn(r, "neither QUERN_HOME nor HOME is set: models have no place to be kept");
    else if (!writable)
        warn(r, "%s cannot be written: set QUERN_HOME to a folder that can", home);
}

/* What `serve` would try: can 127.0.0.1:8080 be had? */
static void put_port(report *r)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    const int yes = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int fault = fd < 0 ? errno : 0;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (!fault && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0) fault = errno;
    if (!fault && bind(fd, (const struct sockaddr *)(const void *)&at, sizeof at) != 0)
        fault = errno;
    if (!fault && listen(fd, 1) != 0) fault = errno;
    if (fd >= 0) (void)close(fd);
    qn_json *port = qn_json_new_object();
    put_num(r, port, "number", PORT);
    put(r, port, "free", qn_json_new_bool(fault == 0));
    put(r, r->root, "port", port);
    if (fault)
        warn(r, "port %d cannot be had: %s; \"quern serve --port N\" takes another one", PORT,
             strerror(fault));
}

/* -- text -------------------------------------------------------------------------------------- */

static const char *text_at(const qn_json *v, const char *key)
{
    size_t n = 0;
    const char *text = qn_json_str(qn_json_get(v, key), &n);
    return text && n ? text : "unknown";
}

static const char *text_of(const qn_json *list, size_t i)
{
    size_t n = 0;
    const char *text = qn_json_str(qn_json_at(list, i), &n);
    return text ? text : "";
}

static double gib_at(const qn_json *v, const char *key)
{
    return qn_json_num(qn_json_get(v, key), 0) / GIB;
}

static void print_cores(qn_io *io, const qn_json *cpu)
{
    qn_io_print(io,
                "            %lld cores, %lld threads, %lld socket(s), %lld NUMA node(s); %lld "
                "cores usable\n",
                (long long)qn_json_int(qn_json_get(cpu, "cores"), 0),
                (long long)qn_json_int(qn_json_get(cpu, "threads"), 0),
                (long long)qn_json_int(qn_json_get(cpu, "sockets"), 0),
                (long long)qn_json_int(qn_json_get(cpu, "numa_nodes"), 0),
                (long long)qn_json_int(qn_json_get(cpu, "usable_cores"), 0));
    qn_io_print(io, "            caches: %.0f KiB L1d and %.1f MiB L2 a core, %.1f MiB L3 in all\n",
                qn_json_num(qn_json_get(cpu, "l1d_bytes"), 0) / 1024,
                qn_json_num(qn_json_get(cpu, "l2_bytes"), 0) / MIB,
                qn_json_num(qn_json_get(cpu, "l3_bytes"), 0) / MIB);
}

static void print_processor(qn_io *io, const qn_json *cpu)
{
    const qn_json *list = qn_json_get(cpu, "features");
    qn_io_print(io, "processor   %s\n", text_at(cpu, "model"));
    if (qn_json_int(qn_json_get(cpu, "cores"), 0) == 0) /* a container without /sys */
        qn_io_print(io, "            cores and caches are not told here; %lld cores usable\n",
                    (long long)qn_json_int(qn_json_get(cpu, "usable_cores"), 0));
    else
        print_cores(io, cpu);
    qn_io_print(io, "            has:");
    for (size_t i = 0; i < qn_json_len(list); i++) qn_io_print(io, " %s", text_of(list, i));
    qn_io_print(io, "%s\n            runs as: %s\n", qn_json_len(list) ? "" : " nothing special",
                text_at(cpu, "runs_as"));
}

static void print_memory(qn_io *io, const qn_json *root)
{
    const qn_json *memory = qn_json_get(root, "memory"), *speed = qn_json_get(root, "memory_read");
    qn_io_print(io, "memory      %.1f GiB, %.1f available; ", gib_at(memory, "total_bytes"),
                gib_at(memory, "available_bytes"));
    if (qn_json_type_of(qn_json_get(memory, "limit_bytes")) == QN_JSON_INT)
        qn_io_print(io, "limited to %.1f", gib_at(memory, "limit_bytes"));
    else
        qn_io_print(io, "no limit set");
    if (qn_json_type_of(qn_json_get(memory, "address_space_bytes")) == QN_JSON_INT)
        qn_io_print(io, "; %.2f of addresses a process", gib_at(memory, "address_space_bytes"));
    qn_io_print(io, "; transparent huge pages: %s\n", text_at(memory, "huge_pages"));
    if (!speed) return;
    const double all = qn_json_num(qn_json_get(speed, "all_threads_gb_s"), 0);
    qn_io_print(io,
                "            read at %.1f GB/s by one thread, %.1f by %lld (measured now over %.0f "
                "MiB%s)\n",
                qn_json_num(qn_json_get(speed, "one_thread_gb_s"), 0), all,
                (long long)qn_json_int(qn_json_get(speed, "threads"), 0),
                qn_json_num(qn_json_get(speed, "buffer_bytes"), 0) / MIB,
                qn_json_bool(qn_json_get(speed, "beyond_cache"), false)
                    ? ""
                    : ", less than 4 times the caches: part of it may come from there");
    qn_io_print(
        io,
        "            so 1 GB of weights beyond the caches decodes at about %.0f tokens/s at best\n",
        all);
}

static void print_report(qn_io *io, const qn_json *root)
{
    const qn_json *cards = qn_json_get(root, "cards"), *store = qn_json_get(root, "store");
    const qn_json *warnings = qn_json_get(root, "warnings"), *port = qn_json_get(root, "port");
    char size[16];
    qn_io_print(io, "quern       %s\n", text_at(root, "version"));
    qn_io_print(io, "system      %s, %s\n", text_at(root, "system"), text_at(root, "kernel"));
    print_processor(io, qn_json_get(root, "cpu"));
    print_memory(io, root);
    for (size_t i = 0; i < qn_json_len(cards); i++)
        qn_io_print(io, "card        %s\n", text_of(cards, i));
    if (!qn_json_len(cards)) qn_io_print(io, "card        no NVIDIA card visible\n");
    qn_io_print(io, "store       %s: %s, %.1f GiB free\n", text_at(store, "path"),
                qn_json_bool(qn_json_get(store, "writable"), false) ? "writable" : "not writable",
                gib_at(store, "free_bytes"));
    const long long models = (long long)qn_json_int(qn_json_get(store, "models"), 0);
    qn_bytes_text(size, (uint64_t)qn_json_int(qn_json_get(store, "model_bytes"), 0));
    qn_io_print(io, "            %lld model%s, %s; with those of %s\n", models,
                models == 1 ? "" : "s", size, text_at(store, "hub_cache"));
    qn_io_print(io, "port        %d is %s\n", PORT,
                qn_json_bool(qn_json_get(port, "free"), false) ? "free" : "taken");
    qn_io_print(io, qn_json_len(warnings) ? "\n" : "\nNothing is in the way.\n");
    for (size_t i = 0; i < qn_json_len(warnings); i++)
        qn_io_print(io, "warning: %s\n", text_of(warnings, i));
}

/* -- verb -------------------------------------------------------------------------------------- */

static void examine(report *r, const doctor_opts *o, const char *isa, const qn_io *io)
{
    qn_machine m;
    qn_probe_machine(&m, "");
    put_text(r, r->root, "version", quern_version());
    put_text(r, r->root, "system", m.system);
    put_text(r, r->root, "kernel", m.kernel);
    put_processor(r, &m, isa);
    put_memory(r, &m);
    if (!o->quick) put_bandwidth(r, &m);
    put_cards(r, &m);
    put_store(r, io);
    put_port(r);
}

static qn_code doctor(const void *opts, qn_args args, qn_io *io, qn_err *err)
{
    qn_code rc = QN_OK;
    const doctor_opts *o = opts;
    quern_runtime *rt = NULL;
    quern_runtime_options ro = QUERN_RUNTIME_OPTIONS_INIT;
    report r = {qn_json_new_object(), qn_json_new_array(), true};
    (void)args;
    ro.isa = io->isa;
    ro.threads = io->threads;
    QN_TRY_OUT(quern_runtime_open(&rt, &ro, err));
    if (r.root) examine(&r, o, quern_runtime_describe(rt), io);
    put(&r, r.root, "warnings", r.warnings);
    r.warnings = NULL;
    if (!r.ok || !r.root) {
        rc = qn_fail(err, QN_E_NOMEM, "the report");
        goto out;
    }
    if (o->json) {
        rc = qn_io_json(io, r.root, err);
        r.root = NULL;
    } else {
        print_report(io, r.root);
        rc = qn_io_flush(io, err);
    }
out:
    qn_json_free(r.warnings);
    qn_json_free(r.root);
    quern_runtime_close(rt);
    return rc;
}

const qn_verb qn_verb_doctor = {
    "doctor",
    "",
    "tell what this machine can do, and what is in the way",
    "Processor, memory and how fast it is read, cards, the place of models, the server's port.\n"
    "Measuring takes about half a second. Warnings are advice; the exit status stays 0.",
    options,
    NULL,
    sizeof(doctor_opts),
    0,
    0,
    doctor};
