# SPDX-License-Identifier: Apache-2.0
"""jinja_chars.py - writes src/text/jinja_chars.inc: what Python's strings know of characters.

Templates were written against Python's str, so its own Unicode version decides (14.0, Python 3.11).
Properties that Python does not show are read off its behaviour (final sigma shows what is ignorable).

    python tests/oracle/jinja_chars.py > src/text/jinja_chars.inc
"""
import unicodedata

assert unicodedata.unidata_version == "14.0.0", unicodedata.unidata_version
POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def flags(c):
    s = chr(c)
    title = unicodedata.category(s) == "Lt"
    cased = s.islower() or s.isupper() or title
    ignorable = not (s + "Σ").lower().endswith("ς") if cased else ("A" + s + "Σ").lower().endswith("ς")
    bits = [s.isalpha(), s.isdecimal(), s.isdigit(), s.isnumeric(), s.islower(), s.isupper(), title,
            s.isprintable(), s.isspace(), ignorable, s.isidentifier(), ("a" + s).isidentifier()]
    return sum(1 << i for i, b in enumerate(bits) if b)


def rows(text, per_line):
    for i in range(0, len(text), per_line):
        print("    " + " ".join(text[i:i + per_line]))


runs, last = [], None
for c in POINTS:
    f = flags(c)
    if f != last:
        runs.append(f"{{{c:#x}, {f:#x}}},")
        last = f
# One code point to one: runs of a step with the same distances. Longer results stand apart.
single, many = [], []
for c in POINTS:
    s = chr(c)
    how = (s.lower(), s.upper(), s.title())
    if s == "Σ":
        how = ("σ", s, s)
    if all(x == s for x in how):
        continue
    if any(len(x) > 1 for x in how):
        many.append((c, how))
    else:
        single.append((c, tuple(ord(x) - c for x in how)))
steps = []
for c, d in single:
    if steps and steps[-1][3] == d:
        first, end, step, _ = steps[-1]
        gap = c - end
        if gap <= 2 and (step in (0, gap)):
            steps[-1] = (first, c, gap, d)
            continue
    steps.append((c, c, 0, d))

print("/* SPDX-License-Identifier: Apache-2.0 */")
print("/* jinja_chars.inc - written by tests/oracle/jinja_chars.py; do not edit. */\n")
print("/* Properties from a code point up to the next row. */\nstatic const char_run char_runs[] = {")
rows(runs, 6)
print("};\n\n/* first, last, step, distance to lower, upper and title case. */\nstatic const case_run case_runs[] = {")
rows([f"{{{a:#x}, {b:#x}, {max(s, 1)}, {{{d[0]}, {d[1]}, {d[2]}}}}}," for a, b, s, d in steps], 3)
print("};\n\n/* Cases of more than one code point. */\nstatic const case_many case_long[] = {")


def points(x):
    return "{" + ", ".join(f"{ord(y):#x}" for y in x) + "}"


FOLDS = [(c, chr(c).casefold()) for c in POINTS if chr(c).casefold() != chr(c).lower() and chr(c) != "Σ"]
rows([f"{{{c:#x}, {{{points(h[0])}, {points(h[1])}, {points(h[2])}}}}}," for c, h in many], 2)
print("};\n\n/* What casefold changes otherwise than lower. */\nstatic const fold_many case_fold[] = {")
rows([f"{{{c:#x}, {points(f)}}}," for c, f in FOLDS], 4)
print("};")
