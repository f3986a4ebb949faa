# SPDX-License-Identifier: Apache-2.0
"""perf_page.py - docs/performance.md and its plot, from figures that bench/performance stored.

A bar is a ratio to the peer or a share of what the machine gives, whichever is lower: so it is met where
either is.
"""
import pathlib

import perf_models
import perf_plot

ROW8 = ("Q8_0", "BF16")  # formats of 8 bits and more
PRODUCTS = {"i16": 2, "i8": 1}  # byte products for one multiply-add


def per_thread(rate, threads):
    return rate["one" if threads == 1 else "all"] if rate else 0


def byte_rate(store, weight_bytes, threads):
    """(bytes a second, name): of L3 where the weights are smaller than it."""
    roof = store["roofline"]
    memory, l3 = per_thread(roof.get("memory"), threads), per_thread(roof.get("l3"), threads)
    if weight_bytes < store["machine"].get("l3_bytes", 0) and l3 > memory:
        return l3, "L3"
    return memory, "memory"


def arithmetic(store, row):
    """(operations a second, factor, name) of the arithmetic that the row's matrices are multiplied with."""
    roof, mode = store["roofline"], row["activations"]
    if row["format"] == "BF16" or mode not in PRODUCTS or not roof.get("int8"):
        return per_thread(roof.get("f32"), row["threads"]), 1, "f32"
    return per_thread(roof["int8"], row["threads"]), PRODUCTS[mode], "int8"


def shares(store, row):
    """What a row's medians are of the machine's limits."""
    token, ours = row["token"], row["summary"]["quern"]
    rate, where = byte_rate(store, token["weight_bytes"], row["threads"])
    peak, factor, kind = arithmetic(store, row)
    read = (token["weight_bytes"] + token["kv_bytes"]) * ours["decode_tps"]
    done = token["prefill_ops"] * factor * ours["prefill_tps"]
    return {"decode": read / rate if rate else 0, "where": where, "bytes": token["weight_bytes"] + token["kv_bytes"],
            "prefill": done / peak if peak else 0, "kind": kind, "ops": token["prefill_ops"] * factor}


def bars(suite, row):
    """((ratio, share) for decode, the same for prefill, share that prefill owes in any case)."""
    fmt = row["format"]
    if suite == "depth":
        return (None, 0.85), (2.0, None), 0
    less = 0.05 if row["threads"] > 1 else 0
    decode = ((1.15 if fmt == "BF16" else 2.0) - less, 0.90 if fmt in ROW8 else 0.85)
    least = 0.45 if row["model"] == "llama1b" and fmt in ("Q4_0", "Q8_0") and row["threads"] == 1 else 0
    return decode, (3.0 - less, 0.60), least


def met(bar, ratio, share, least=0):
    return ((bar[0] is not None and ratio >= bar[0]) or (bar[1] is not None and share >= bar[1])) and share >= least


def bar_text(bar, least=0):
    parts = ([f"{bar[0]:g}×"] if bar[0] is not None else []) + ([f"{bar[1]:.0%}"] if bar[1] is not None else [])
    return " or ".join(parts) + (f", {least:.0%} at least" if least else "")


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|---" + "|--:" * (len(head) - 1) + "|"]
    return "\n".join(lines + ["| " + " | ".join(r) + " |" for r in rows])


def yes(ok):
    return "yes" if ok else "**no**"


def by_order(rows):
    models, formats = list(perf_models.MODELS), list(perf_models.SMALL) + list(perf_models.KL_FORMATS)
    return sorted(rows, key=lambda r: (models.index(r["model"]), formats.index(r["format"]), r.get("batch", 0),
                                       r.get("mode", "")))


def name_of(row):
    return f"{perf_models.MODELS[row['model']].split(' (')[0]} {row['format']}"


def noisy(row):
    n = sum(row["summary"][s]["noisy_runs"] for s in ("quern", "peer"))
    return f"{n} of {2 * row['pairs']}"


def compare_rows(store, suite, what):
    """Table rows of one figure (decode or prefill), and what missed its bar."""
    out, below = [], []
    for row in by_order(store["suites"].get(suite, [])):
        s, all_bars = row["summary"], bars(suite, row)
        bar, least = (all_bars[0], 0) if what == "decode" else (all_bars[1], all_bars[2])
        share, ratio = shares(store, row), s["ratio"][f"{what}_tps"]
        ok = met(bar, ratio, share[what], least)
        of = share["where"] if what == "decode" else share["kind"]
        cost = f"{share['bytes'] / 1e6:.0f} MB" if what == "decode" else f"{share['ops'] / 1e9:.2f} G"
        digits = 1 if what == "decode" else 0
        out.append([name_of(row), f"{s['quern'][what + '_tps']:.{digits}f}", f"{s['peer'][what + '_tps']:.{digits}f}",
                    f"{ratio:.2f}", cost, f"{share[what]:.0%} of {of}", bar_text(bar, least), yes(ok), noisy(row)])
        if not ok:
            below.append(f"{suite}, {what}, {row['threads']} thread(s), {name_of(row)}: {ratio:.2f}×, {share[what]:.0%}")
    return out, below


def batch_rows(store):
    rows = by_order(store["suites"].get("batch", []))
    one = next((r for r in rows if r["batch"] == 1), None)
    prefill = next((r["prefill"] for r in rows if r["batch"] == 0), 0)  # measured last
    out, below = [], []
    for r in rows:
        if not one or not prefill or r["batch"] < 1:
            continue
        bound = min(r["batch"] * one["quern"], prefill)
        share, times = r["quern"] / bound, r["quern"] / one["quern"]
        ok = r["batch"] == 1 or (share >= 0.85 and (r["batch"] != 8 or times >= 4.5))
        out.append([str(r["batch"]), f"{r['quern']:.1f}", f"{times:.2f}", f"{share:.0%}", f"{r['peer']:.1f}",
                    f"{r['peer'] / one['peer']:.2f}", "85%" + (", 4.5×" if r["batch"] == 8 else ""), yes(ok)])
        if not ok:
            below.append(f"batch of {r['batch']}: {share:.0%} of the bound, {times:.2f}× one")
    return out, below, prefill


def startup_rows(store):
    out, below = [], []
    for r in by_order(store["suites"].get("startup", [])):
        rest = r["exec_ms"] - r["warm_ms"]
        out.append([name_of(r), f"{r['exec_ms']:.0f}", f"{r['warm_ms']:.0f}", f"{rest:.0f}", "150", yes(rest <= 150)])
        if rest > 150:
            below.append(f"startup, {name_of(r)}: {rest:.0f} ms")
    return out, below


def kl_rows(store):
    out, below = [], []
    for r in by_order(store["suites"].get("kl", [])):
        default = r["mode"] == "i16"
        ok = r["kl"] <= 1e-3
        out.append([name_of(r), r["mode"] + (" (default)" if default else ""), f"{r['kl']:.1e}", f"{r['largest']:.1e}",
                    f"{r['kept']:.2%}", f"{r['perplexity_f32']:.3f}", f"{r['perplexity']:.3f}", yes(ok)])
        if default and not ok:
            below.append(f"KL of {r['mode']}, {name_of(r)}: {r['kl']:.1e}")
    return out, below


def missed(store):
    if "suites" not in store:
        return []
    out = []
    store.setdefault("roofline", {})
    for suite in ("decode", "depth", "threads"):
        for what in ("decode", "prefill"):
            out += compare_rows(store, suite, what)[1]
    return out + batch_rows(store)[1] + startup_rows(store)[1] + kl_rows(store)[1]


# ---- the page -------------------------------------------------------------------------------------

INTRO = """# Performance

<!-- Written by bench/performance; change the figures by running it, the words in bench/perf_page.py. -->

Quern beside llama.cpp's prebuilt library: the same file, the same token ids, the same number of threads, runs
in turn on one machine, medians; a ratio is the median of the pairs' ratios. `bench/README.md` says how to
measure this again.
"""
WORDS = {
    "decode": """One sequence, tokens a second behind {prompt} positions. A token reads every weight and the keys and values
so far ("bytes"); what that makes a second is told as a share of what this machine reads, of L3 for files smaller
than it.""",
    "prefill": """Tokens a second of a prompt of {prompt}. "Operations" are those of the layers' matrices for one token, attention
apart, so the share is a little too low. Rows of 16 bits are multiplied as two bytes each: two byte products for
every multiply-add, counted as such, as a share of the int8 peak. Weights of bf16 are multiplied in f32.""",
    "depth": "The same with a prompt of {prompt} tokens: decoding reads {prompt} keys and values more.",
    "threads": "Two threads, {prompt} positions. Two lanes of a virtual machine share more than they show; bars are 0.05 lower.",
    "batch": """Sequences of the 1B that decode together, tokens a second of all, behind 64 positions, one thread. The bound is
the lesser of so many times one sequence and of a prefill of 512 tokens ({prefill:.0f} tokens a second).""",
    "startup": """From exec to the first byte of the answer, less a prefill of 16 tokens in a process that is warm, milliseconds;
the file is in the page cache, one thread.""",
    "kl": """What integer activations change on real text: KL of the next token's distribution to f32 activations on the same
weights, {positions} tokens a file in windows of 256, keys and values in f32. The text is the "Austen test split": six
novels as Debian's r-cran-janeaustenr has them, from byte {first} on (sha256 `{sha256}`). A default must stay at or
below 1e-3. Weights of bf16, f16 and f32 meet f32 activations in every mode.""",
}
COMPARE = ["file", "Quern", "llama.cpp", "ratio"]


def machine_text(store):
    m, roof, p = store["machine"], store["roofline"], store["peer"]
    rates = []
    for name in ("l2", "l3", "memory", "f32", "bf16", "int8"):
        if name in roof:
            unit = "GB/s" if name in ("l2", "l3", "memory") else "GFLOP/s" if name != "int8" else "GOP/s"
            rates.append([name, f"{roof[name]['one'] / 1e9:.1f} {unit}", f"{roof[name]['all'] / 1e9:.1f} {unit}",
                          roof[name]["how"]])
    lines = [f"- {m['cpu']}, {m['cores']} cores, {m['memory_gib']} GiB, L3 {m.get('l3_bytes', 0) >> 20} MiB, "
             f"{m['system']} {m['kernel']}",
             f"- {store['quern']['version']} ({store['quern']['commit']}), keys and values f16",
             f"- {p['package']} (llama.cpp {p['llama.cpp']}), keys and values {p['kv']}, flash attention {p['flash_attention']}",
             f"- measured {store['when']}"]
    if store.get("quick"):
        lines.append("- **a quick run: one pair a figure, on a machine with other work; only that all of it works is shown**")
    head = table(["what one thread, and all, can do", "one thread", f"{roof.get('threads', '?')} threads", "how"], rates)
    return "\n".join(lines) + "\n\nThe limits, best of what `quern bench roofline` saw during the run:\n\n" + head


def census_text(store):
    rows = []
    for r in by_order(store["suites"].get("decode", [])):
        rows.append([name_of(r), f"{r['bytes'] / 1e6:.0f} MB", ", ".join(f"{n} {f} ({b / 1e6:.0f} MB)" for f, n, b in r["census"])])
    return table(["file", "size", "matrices by format"], rows)


def section(title, text, body):
    return f"## {title}\n\n{text}\n\n{body}\n"


def page(store, plot):
    suites = store["suites"]
    out = [INTRO, machine_text(store) + "\n"]
    decode_head = [*COMPARE, "bytes a token", "share", "bar", "met", "noisy runs"]
    prefill_head = [*COMPARE, "operations a token", "share", "bar", "met", "noisy runs"]
    if plot:
        out.append(f"![Decode and prefill beside llama.cpp]({plot})\n")
    for suite, title in (("decode", ""), ("depth", " at depth"), ("threads", ", two threads")):
        if not suites.get(suite):
            continue
        prompt = suites[suite][0]["prompt"]
        words = WORDS[suite].format(prompt=prompt)
        out.append(section("Decode" + title, words, table(decode_head, compare_rows(store, suite, "decode")[0])))
        words = WORDS["prefill"].format(prompt=prompt) if suite == "decode" else "As above."
        out.append(section("Prefill" + title, words, table(prefill_head, compare_rows(store, suite, "prefill")[0])))
    rows, _, prefill = batch_rows(store)
    if rows:
        head = ["sequences", "Quern", "times one", "of the bound", "llama.cpp", "times one", "bar", "met"]
        out.append(section("Batches", WORDS["batch"].format(prefill=prefill), table(head, rows)))
    rows, _ = startup_rows(store)
    if rows:
        out.append(section("Startup", WORDS["startup"],
                           table(["file", "exec to token", "warm prefill", "difference", "bar", "met"], rows)))
    rows, _ = kl_rows(store)
    if rows:
        head = ["file", "activations", "mean KL", "largest", "likeliest kept", "perplexity f32", "perplexity", "at most 1e-3"]
        out.append(section("Activations", WORDS["kl"].format(**suites["kl"][0]), table(head, rows)))
    if suites.get("decode"):
        out.append(section("Files", "Made by the peer's quantiser, which keeps some tensors in other formats.",
                           census_text(store)))
    return "\n".join(out)


def write(store, path):
    path = pathlib.Path(path)
    store.setdefault("suites", {})
    bars_of = [(name_of(r), r["summary"]["ratio"]["decode_tps"], r["summary"]["ratio"]["prefill_tps"])
               for r in by_order(store["suites"].get("decode", []))]
    plot = ""
    path.parent.mkdir(parents=True, exist_ok=True)
    if bars_of:
        plot = "img/performance.svg"
        (path.parent / "img").mkdir(parents=True, exist_ok=True)
        (path.parent / plot).write_text(perf_plot.ratios(bars_of))
    path.write_text(page(store, plot))
