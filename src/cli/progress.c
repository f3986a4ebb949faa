/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c - see progress.h. */
#include "cli/progress.h"

#include <string.h>
#include <sys/ioctl.h>

#include "cli/cli.h"

enum { COLUMNS = 80, MAX_COLUMNS = 240, BAR_LEAST = 10, BAR_MOST = 32 };
#define EVERY_NS 200000000u
#define WINDOW_NS 5000000000u

void qn_progress_init(qn_progress *p, FILE *f, bool terminal, bool quiet)
{
    memset(p, 0, sizeof *p);
    p->f = f;
    p->terminal = terminal;
    p->quiet = quiet;
}

/* -- the line ---------------------------------------------------------------------------------- */

/* A character of the line is a column: what is not ASCII may be wider, or none. */
static void put_name(char *out, size_t cap, const char *name)
{
    size_t n = 0;
    for (const char *p = name ? name : ""; *p && n + 1 < cap; p++) {
        const unsigned char c = (unsigned char)*p;
        if ((c & 0xc0) != 0x80) out[n++] = c >= 0x20 && c < 0x7f ? (char)c : '?';
    }
    out[n] = '\0';
}

static void put_left(char *out, size_t cap, uint64_t bytes, double rate)
{
    const double all = rate > 0 ? (double)bytes / rate + 0.5 : 1e9;
    out[0] = '\0';
    if (all >= 360000) return; /* stands still, or as good as */
    const unsigned s = (unsigned)all;
    if (s >= 3600)
        snprintf(out, cap, "  %u:%02u:%02u left", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, cap, "  %u:%02u left", s / 60, s % 60);
}

/* " 45%  41.2 MB of 92.1 MB  12.3 MB/s  0:04 left" */
static void put_numbers(char *out, size_t cap, const quern_get_progress *now, double rate)
{
    char done[16], total[16], speed[16], left[32] = "";
    qn_bytes_text(done, now->done);
    qn_bytes_text(total, now->total);
    qn_bytes_text(speed, rate < 1e18 ? (uint64_t)rate : UINT64_MAX);
    if (now->total >= now->done && now->total > 0) {
        put_left(left, sizeof left, now->total - now->done, rate);
        snprintf(out, cap, "%3.0f%%  %*s of %s%s%s%s%s",
                 (double)(int)((double)now->done * 100 / (double)now->total), (int)strlen(total),
                 done, total, /* aligned, so that what follows stands still */
                 rate > 0 ? "  " : "", rate > 0 ? speed : "", rate > 0 ? "/s" : "", left);
    } else {
        snprintf(out, cap, "%s%s%s%s", done, rate > 0 ? "  " : "", rate > 0 ? speed : "",
                 rate > 0 ? "/s" : "");
    }
}

/* "downloading 2/8 model.gguf", or what is of use of that. */
static void put_head(char *out, size_t cap, const quern_get_progress *now, bool step)
{
    char name[256], which[32] = "";
    put_name(name, sizeof name, now->file);
    if (now->count > 1) snprintf(which, sizeof which, "%u/%u ", now->index + 1, now->count);
    snprintf(out, cap, "%s%s%s%s", step ? now->step : "", step ? " " : "", which, name);
}

static size_t put_bar(char *out, size_t columns, const quern_get_progress *now)
{
    const size_t inside = columns - 2;
    const double share =
        now->done < now->total ? (double)now->done / (double)now->total : 1.0; /* total > 0 */
    const size_t full = (size_t)((double)inside * share);
    out[0] = '[';
    memset(out + 1, '#', full);
    memset(out + 1 + full, '-', inside - full);
    out[1 + inside] = ']';
    return columns;
}

void qn_progress_line(char *out, size_t cap, const quern_get_progress *now, double rate,
                      size_t columns)
{
    char head[320], numbers[128];
    if (columns >= cap) columns = cap - 1;
    put_numbers(numbers, sizeof numbers, now, rate);
    const size_t numbers_n = strlen(numbers);
    size_t room = columns > numbers_n ? columns - numbers_n : 0; /* for name and bar */
    const size_t bar = now->total > 0 && room >= 3 * BAR_LEAST ? BAR_LEAST + 1 : 0;
    put_head(head, sizeof head, now, room >= 5 * BAR_LEAST);
    size_t head_n = room >= 8 ? strlen(head) : 0, at = 0;
    if (head_n && head_n + 2 + bar > room) {
        head_n = room - 2 - bar;
        memset(head + head_n - 3, '.', 3);
    }
    memcpy(out, head, head_n);
    at = head_n;
    while (head_n && at < head_n + 2) out[at++] = ' ';
    room = room > at ? room - at : 0;
    if (now->total > 0 && room >= BAR_LEAST + 1) {
        at += put_bar(out + at, room - 1 < BAR_MOST ? room - 1 : BAR_MOST, now);
        out[at++] = ' ';
    }
    const size_t n = numbers_n < columns - at ? numbers_n : columns - at;
    memcpy(out + at, numbers, n);
    out[at + n] = '\0';
}

/* -- drawing ----------------------------------------------------------------------------------- */

static size_t columns_of(FILE *f)
{
    struct winsize w = {0};
    if (ioctl(fileno(f), TIOCGWINSZ, &w) != 0 || w.ws_col == 0) return COLUMNS;
    return w.ws_col < MAX_COLUMNS ? w.ws_col : MAX_COLUMNS;
}

/* Adds this moment and gives the rate since the oldest one within the window. */
static double rate_of(qn_progress *p, uint64_t done, uint64_t ns)
{
    const uint32_t kept = p->n < QN_PROGRESS_SAMPLES ? p->n : QN_PROGRESS_SAMPLES;
    double rate = 0;
    for (uint32_t i = p->n - kept; i < p->n; i++) {
        const uint64_t since = ns - p->sample[i % QN_PROGRESS_SAMPLES].ns;
        if (since > WINDOW_NS || since == 0) continue;
        rate = (double)(done - p->sample[i % QN_PROGRESS_SAMPLES].done) / ((double)since / 1e9);
        break;
    }
    p->sample[p->n % QN_PROGRESS_SAMPLES].ns = ns;
    p->sample[p->n % QN_PROGRESS_SAMPLES].done = done;
    p->n++;
    return rate;
}

static void draw(qn_progress *p, const quern_get_progress *now, uint64_t ns)
{
    char line[MAX_COLUMNS + 1];
    if (p->drawn && ns - p->drawn_ns < EVERY_NS) return;
    const double rate = rate_of(p, now->done, ns);
    qn_progress_line(line, sizeof line, now, rate, columns_of(p->f) - 1); /* the last one wraps */
    fprintf(p->f, "\r%s\x1b[K", line);
    fflush(p->f);
    p->drawn = true;
    p->drawn_ns = ns;
}

/* The file at work has all its bytes. */
static void complete_file(qn_progress *p)
{
    char size[16];
    if (!p->begun || p->terminal) return;
    qn_bytes_text(size, p->done > p->begin ? p->done - p->begin : 0);
    if (p->moved)
        fprintf(p->f, "quern: %s is complete (%s)\n", p->file, size);
    else
        fprintf(p->f, "quern: %s is here already\n", p->file);
}

static void begin_file(qn_progress *p, const quern_get_progress *now)
{
    char total[16];
    (void)qn_text_cell(p->file, sizeof p->file, now->file ? now->file : "");
    p->begun = true;
    p->moved = false;
    p->index = now->index;
    p->begin = now->done;
    if (p->terminal) return;
    qn_bytes_text(total, now->total);
    fprintf(p->f, "quern: %s %s (file %u of %u%s%s)\n", now->step, p->file, now->index + 1,
            now->count, now->total ? ", all " : "", now->total ? total : "");
}

void qn_progress_tell(qn_progress *p, const quern_get_progress *now, uint64_t ns)
{
    const bool known = now->count > 0; /* else the hub is being asked what there is */
    if (known && now->done > 0 && strcmp(now->step, "downloading") == 0) p->part_kept = true;
    if (p->quiet) return;
    if (known && (!p->begun || now->index != p->index)) {
        complete_file(p);
        begin_file(p, now);
    }
    if (strcmp(now->step, "downloading") == 0 || strcmp(now->step, "copying") == 0) p->moved = true;
    if (!p->step || strcmp(p->step, now->step) != 0 || now->done < p->done) p->n = 0;
    p->step = now->step;
    p->done = now->done;
    if (p->terminal) draw(p, now, ns);
}

void qn_progress_end(qn_progress *p, bool complete)
{
    if (p->drawn) fprintf(p->f, "\r\x1b[K");
    if (complete && !p->quiet) complete_file(p);
    fflush(p->f);
    p->drawn = p->begun = false;
}
