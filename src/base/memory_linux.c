/* SPDX-License-Identifier: Apache-2.0 */
/* memory_linux.c - /proc/meminfo and the memory controllers of both cgroup versions. */
#include "base/memory.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/base_int.h"
#include "base/cgroup_int.h"
#include "base/file.h"

enum { PATH_BYTES = 4608, MAX_FILE = 1 << 16 };

/* dir/name as text, owned; false where it cannot be read. */
static bool read_in(uint8_t **text, qn_str *s, const char *dir, const char *name)
{
    char path[PATH_BYTES];
    size_t n = 0;
    *text = NULL;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", dir, name) >= sizeof path) return false;
    if (qn_file_read(text, &n, path, MAX_FILE, NULL) != QN_OK) return false;
    *s = (qn_str){(const char *)*text, n};
    return true;
}

/* A file that holds one number; "max" and the like are none. */
static bool read_number(uint64_t *out, const char *dir, const char *name)
{
    uint8_t *text = NULL;
    qn_str s;
    const bool ok = read_in(&text, &s, dir, name) && qn_str_parse_u64(out, qn_str_trim(s));
    qn_free(text);
    return ok;
}

/* The number behind `key` in lines of "key number ..."; 0 where it is not there. */
static uint64_t field(qn_str text, const char *key)
{
    qn_str line, word;
    uint64_t v = 0;
    while (qn_str_split(&line, &text, '\n')) {
        if (!qn_str_split(&word, &line, ' ') || !qn_str_eq_z(word, key)) continue;
        line = qn_str_trim(line);
        (void)qn_str_split(&word, &line, ' ');
        return qn_str_parse_u64(&v, word) ? v : 0;
    }
    return 0;
}

static void lower(qn_memory_room *room, uint64_t total, uint64_t available, const char *limit)
{
    if (total < room->total) room->total = total;
    if (available >= room->available) return;
    room->available = available;
    room->limit = limit;
}

static void look_machine(qn_memory_room *room, const char *root)
{
    uint8_t *text = NULL;
    qn_str s;
    if (read_in(&text, &s, root, "proc/meminfo")) {
        const uint64_t total = field(s, "MemTotal:"), available = field(s, "MemAvailable:");
        if (total) lower(room, total << 10, available << 10, "memory");
    }
    qn_free(text);
}

typedef struct names { /* of the files of one version */
    const char *limit, *usage, *active, *inactive;
} names;

static const names v2 = {"memory.max", "memory.current", "active_file", "inactive_file"};
static const names v1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_active_file",
                         "total_inactive_file"};

static void look_group(void *room, const char *dir, bool two)
{
    const names *n = two ? &v2 : &v1;
    uint8_t *text = NULL;
    uint64_t limit = 0, usage = 0, cache = 0;
    qn_str s;
    if (!read_number(&limit, dir, n->limit) || !read_number(&usage, dir, n->usage)) return;
    if (read_in(&text, &s, dir, "memory.stat")) cache = field(s, n->active) + field(s, n->inactive);
    qn_free(text);
    usage = usage > cache ? usage - cache : 0;
    lower(room, limit, limit > usage ? limit - usage : 0, "cgroup");
}

qn_memory_room qn_memory_look_in(const char *root)
{
    qn_memory_room room = {UINT64_MAX, UINT64_MAX, "memory"};
    look_machine(&room, root);
    qn_cgroup_walk(root, "memory", look_group, &room);
    return room;
}

qn_memory_room qn_memory_look(void) { return qn_memory_look_in(""); }
