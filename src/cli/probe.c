/* SPDX-License-Identifier: Apache-2.0 */
/* probe.c - /proc, /sys and /etc as Linux writes them. */
#include "cli/probe.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

enum { PATH_BYTES = 4608, MAX_FILE = 4 << 20, MAX_CPUS = 8192 };

typedef struct text { /* a whole small file; empty when it cannot be read */
    uint8_t *bytes;
    qn_str all;
} text;

static text text_read(const char *root, const char *path)
{
    char whole[PATH_BYTES];
    text t = {0};
    size_t n = 0;
    const int len = snprintf(whole, sizeof whole, "%s%s", root, path);
    if (len > 0 && (size_t)len < sizeof whole &&
        qn_file_read(&t.bytes, &n, whole, MAX_FILE, NULL) == QN_OK)
        t.all = (qn_str){(const char *)t.bytes, n};
    return t;
}

static void copy(char to[QN_PROBE_TEXT], qn_str s)
{
    s = qn_str_trim(s);
    snprintf(to, QN_PROBE_TEXT, "%.*s", QN_STR_ARG(s));
}

/* What stands behind the first line's "key" and separator, trimmed; empty when there is none. */
static qn_str value_of(qn_str all, const char *key, char separator)
{
    qn_str line, rest = all, name;
    while (qn_str_split(&line, &rest, '\n')) {
        if (!qn_str_split(&name, &line, separator) || !line.p) continue;
        if (qn_str_eq_z(qn_str_trim(name), key)) return qn_str_trim(line);
    }
    return (qn_str){0};
}

static uint64_t number(qn_str s)
{
    uint64_t v = 0;
    return qn_str_parse_u64(&v, qn_str_trim(s)) ? v : 0;
}

static uint64_t read_number(const char *root, const char *path)
{
    const text t = text_read(root, path);
    const uint64_t v = number(t.all);
    qn_free(t.bytes);
    return v;
}

/* "48K", "2048K", "105M". */
static uint64_t size_of(qn_str s)
{
    s = qn_str_trim(s);
    if (s.n == 0) return 0;
    const char unit = s.p[s.n - 1];
    const uint64_t v = number(unit == 'K' || unit == 'M' ? qn_str_slice(s, 0, s.n - 1) : s);
    const uint64_t scale = unit == 'K' ? 1u << 10 : unit == 'M' ? 1u << 20 : 1;
    return v < UINT64_MAX / scale ? v * scale : 0;
}

/* How many numbers a list like "0-3,8" has, those below `most`. */
static unsigned list_count(qn_str list, uint64_t most)
{
    qn_str rest = qn_str_trim(list), part, low;
    unsigned n = 0;
    while (qn_str_split(&part, &rest, ',')) {
        uint64_t a = 0, b = 0;
        if (!qn_str_split(&low, &part, '-') || !qn_str_parse_u64(&a, low)) continue;
        if (!part.p || !qn_str_parse_u64(&b, part)) b = a;
        if (a <= b && b < most) n += (unsigned)(b - a + 1);
    }
    return n;
}

/* -- processor --------------------------------------------------------------------------------- */

/* One cpu's socket, and whether it is the first thread of its core. False: there is no such cpu. */
static bool cpu_place(const char *root, unsigned cpu, uint64_t *socket, bool *first)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", cpu);
    const text t = text_read(root, path);
    if (!t.bytes) return false;
    size_t digits = 0;
    while (digits < t.all.n && t.all.p[digits] >= '0' && t.all.p[digits] <= '9') digits++;
    *first = number(qn_str_slice(t.all, 0, digits)) == cpu;
    qn_free(t.bytes);
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/topology/physical_package_id", cpu);
    *socket = read_number(root, path);
    return true;
}

static void read_topology(qn_machine *m, const char *root)
{
    uint64_t seen = 0; /* sockets 0 to 63 as bits */
    const text nodes = text_read(root, "/sys/devices/system/node/online");
    m->nodes = list_count(nodes.all, MAX_CPUS);
    qn_free(nodes.bytes);
    for (unsigned cpu = 0, missing = 0; cpu < MAX_CPUS && missing < 64; cpu++) {
        uint64_t socket = 0;
        bool first = false;
        if (!cpu_place(root, cpu, &socket, &first)) {
            missing++; /* numbers have gaps where processors are offline */
            continue;
        }
        missing = 0;
        m->threads++;
        m->cores += first;
        if (socket < 64) seen |= (uint64_t)1 << socket;
    }
    for (; seen; seen &= seen - 1) m->sockets++;
}

static void read_caches(qn_machine *m, const char *root)
{
    for (unsigned i = 0; i < 8; i++) {
        char path[PATH_BYTES];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%u/level", i);
        const uint64_t level = read_number(root, path);
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%u/type", i);
        const text type = text_read(root, path);
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%u/size", i);
        const text size = text_read(root, path);
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%u/shared_cpu_list",
                 i);
        const text shared = text_read(root, path);
        const uint64_t bytes = size_of(size.all);
        const unsigned share = list_count(shared.all, MAX_CPUS);
        const bool instructions = qn_str_eq_z(qn_str_trim(type.all), "Instruction");
        if (level == 1 && !instructions) m->l1d_bytes = bytes;
        if (level == 2) m->l2_bytes = bytes;
        if (level == 3 && bytes < UINT64_MAX / MAX_CPUS)
            m->l3_bytes = bytes * (share && m->threads > share ? m->threads / share : 1);
        qn_free(type.bytes);
        qn_free(size.bytes);
        qn_free(shared.bytes);
    }
}

/* -- memory ------------------------------------------------------------------------------------ */

static uint64_t kib_of(qn_str all, const char *key)
{
    qn_str rest = value_of(all, key, ':'), digits;
    const uint64_t kib = qn_str_split(&digits, &rest, ' ') ? number(digits) : 0;
    return kib < UINT64_MAX >> 10 ? kib << 10 : 0;
}

/* The directories from `group` up to the mount each may hold a limit; the least counts. */
static void climb(qn_machine *m, const char *root, const char *mount, qn_str group,
                  const char *limit, const char *usage)
{
    for (;;) {
        char path[PATH_BYTES];
        while (group.n && group.p[group.n - 1] == '/') group.n--;
        snprintf(path, sizeof path, "%s%.*s/%s", mount, QN_STR_ARG(group), limit);
        const uint64_t most = read_number(root, path); /* "max" is no number */
        if (most && most < m->memory_bytes && (!m->limit_bytes || most < m->limit_bytes)) {
            m->limit_bytes = most;
            snprintf(path, sizeof path, "%s%.*s/%s", mount, QN_STR_ARG(group), usage);
            m->used_bytes = read_number(root, path);
        }
        if (group.n == 0) return;
        while (group.n && group.p[group.n - 1] != '/') group.n--;
    }
}

static void read_limit(qn_machine *m, const char *root)
{
    const text t = text_read(root, "/proc/self/cgroup");
    qn_str rest = t.all, line, id, names;
    while (t.bytes && qn_str_split(&line, &rest, '\n')) { /* id:controllers:path */
        if (!qn_str_split(&id, &line, ':') || !qn_str_split(&names, &line, ':')) continue;
        if (names.n == 0)
            climb(m, root, "/sys/fs/cgroup", line, "memory.max", "memory.current");
        else if (qn_str_eq_z(names, "memory"))
            climb(m, root, "/sys/fs/cgroup/memory", line, "memory.limit_in_bytes",
                  "memory.usage_in_bytes");
    }
    qn_free(t.bytes);
}

/* "Max address space   409600000   unlimited   bytes": the first number is what counts. */
static void read_address_limit(qn_machine *m, const char *root)
{
    static const char key[] = "Max address space";
    const text t = text_read(root, "/proc/self/limits");
    qn_str rest = t.all, line, digits;
    while (t.bytes && qn_str_split(&line, &rest, '\n')) {
        if (qn_str_find(line, QN_STR("Max address space"), 0) != 0) continue;
        qn_str tail = qn_str_trim(qn_str_slice(line, sizeof key - 1, line.n));
        if (qn_str_split(&digits, &tail, ' ')) m->address_bytes = number(digits);
    }
    qn_free(t.bytes);
}

static void read_memory(qn_machine *m, const char *root)
{
    const text t = text_read(root, "/proc/meminfo");
    m->memory_bytes = kib_of(t.all, "MemTotal");
    m->available_bytes = kib_of(t.all, "MemAvailable");
    qn_free(t.bytes);
    read_limit(m, root);
    read_address_limit(m, root);
    const uint64_t left = m->limit_bytes > m->used_bytes ? m->limit_bytes - m->used_bytes : 0;
    if (m->limit_bytes && left < m->available_bytes) m->available_bytes = left;
    const text huge = text_read(root, "/sys/kernel/mm/transparent_hugepage/enabled");
    const size_t open = qn_str_find(huge.all, QN_STR("["), 0);
    const size_t close = qn_str_find(huge.all, QN_STR("]"), 0);
    if (open < close && close != SIZE_MAX)
        copy(m->huge_pages, qn_str_slice(huge.all, open + 1, close));
    qn_free(huge.bytes);
}

/* -- cards ------------------------------------------------------------------------------------- */

static void read_cards(qn_machine *m, const char *root)
{
    char path[PATH_BYTES];
    const text version = text_read(root, "/proc/driver/nvidia/version");
    copy(m->driver, value_of(version.all, "NVRM version", ':'));
    qn_free(version.bytes);
    snprintf(path, sizeof path, "%s/proc/driver/nvidia/gpus", root);
    DIR *dir = opendir(path);
    if (!dir) return;
    for (const struct dirent *e; (e = readdir(dir)) != NULL && m->n_cards < QN_PROBE_CARDS;) {
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "/proc/driver/nvidia/gpus/%s/information", e->d_name);
        const text t = text_read(root, path);
        copy(m->card[m->n_cards++], value_of(t.all, "Model", ':'));
        qn_free(t.bytes);
    }
    closedir(dir);
}

void qn_probe_machine(qn_machine *m, const char *root)
{
    struct utsname name;
    memset(m, 0, sizeof *m);
    const text release = text_read(root, "/etc/os-release");
    qn_str pretty = value_of(release.all, "PRETTY_NAME", '=');
    if (pretty.n > 1 && pretty.p[0] == '"') pretty = qn_str_slice(pretty, 1, pretty.n - 1);
    copy(m->system, pretty);
    qn_free(release.bytes);
    if (uname(&name) == 0)
        snprintf(m->kernel, sizeof m->kernel, "%.50s %.60s", name.sysname, name.release);
    const text cpu = text_read(root, "/proc/cpuinfo");
    copy(m->cpu, value_of(cpu.all, "model name", ':'));
    qn_free(cpu.bytes);
    read_topology(m, root);
    read_caches(m, root);
    read_memory(m, root);
    read_cards(m, root);
}
