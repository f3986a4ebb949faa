# SPDX-License-Identifier: Apache-2.0
"""unicode_tables.py - writes src/dep/unicode_new.inc, what the oracle knows beyond Unicode 14.0.

Our Unicode and regular-expression libraries carry the tables of 14.0 or later; Python's unicodedata
here must carry exactly 14.0 (Python 3.11), so that the difference covers every such library. The
oracle is the `tokenizers` package, which mixes versions: its patterns classify by 16.0, its digit
test by 17.0, its punctuation test by an old one, and it normalises by an old one too. Ids equal the
oracle's only if each mixture is kept.

    python tests/oracle/unicode_tables.py > src/dep/unicode_new.inc
"""
import sys
import unicodedata as ucd

from tokenizers import Regex, normalizers, pre_tokenizers

assert ucd.unidata_version == "14.0.0", ucd.unidata_version
POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
CATEGORIES = (
    "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co".split()
)


def in_class(cls):
    """Code points that the oracle's pattern [cls] matches."""
    keep = pre_tokenizers.Split(Regex(f"[{cls}]+"), "removed", invert=True)
    found = set()
    for i in range(0, len(POINTS), 4096):
        for text, _ in keep.pre_tokenize_str("".join(map(chr, POINTS[i : i + 4096]))):
            found.update(map(ord, text))
    return found


def alone(pre):
    """Code points that a splitting pre-tokenizer sets apart from letters."""
    found = set()
    for i in range(0, len(POINTS), 4096):
        for text, _ in pre.pre_tokenize_str("a".join(map(chr, POINTS[i : i + 4096]))):
            if len(text) == 1:
                found.add(ord(text))
    return found - {ord("a")}


def ranges(points):
    out = []
    for c in sorted(points):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def table(comment, name, kind, rows, per_line=4):
    print(f"\n/* {comment} */\nstatic const {kind} {name}[] = {{")
    for i in range(0, len(rows), per_line):
        print("    " + " ".join(rows[i : i + per_line]))
    print("};")


def main():
    category = {c: name for name in CATEGORIES for c in in_class(rf"\p{{{name}}}")}
    new = {}
    for c in POINTS:
        now = category.get(c, "Cn")
        if now != ucd.category(chr(c)):
            new[c] = now
    rows = []
    for name in CATEGORIES:
        for a, b in ranges(c for c in new if new[c] == name):
            rows.append((a, f"{{0x{a:X}, 0x{b:X}, QN_UCAT_{name.upper()}}},"))
    assert "Cn" not in new.values()
    scripts = []
    for name in ("Han", "Hangul", "Hiragana", "Katakana"):
        for a, b in ranges(in_class(rf"\p{{{name}}}") & new.keys()):
            scripts.append(f"{{0x{a:X}, 0x{b:X}, \"{name}\"}},")

    forms = [("NFC", normalizers.NFC()), ("NFD", normalizers.NFD()),
             ("NFKC", normalizers.NFKC()), ("NFKD", normalizers.NFKD())]
    inert = set(new)
    for c in POINTS:
        s = chr(c)
        for form, oracle in forms:
            # behind a mark of the lowest class and before one of the highest, to see the class too
            for probe in (s, "a\u0345" + s, "a" + s + "\u0334"):
                if ucd.normalize(form, probe) != oracle.normalize_str(probe):
                    inert.add(c)
    for c in list(inert):  # both halves of a composition that the oracle does not know
        parts = ucd.decomposition(chr(c)).split()
        if parts and not parts[0].startswith("<"):
            inert.update(int(p, 16) for p in parts[1:])

    lower = []
    oracle = normalizers.Lowercase()
    for c in POINTS:
        want = oracle.normalize_str(chr(c))
        if want != chr(c).lower():
            assert len(want) == 1, hex(c)
            lower.append(f"{{0x{c:X}, 0x{ord(want):X}}},")

    numbers = {c for c in category if category[c][0] == "N"}
    digits = alone(pre_tokenizers.Digits(True))
    punct = {c for c in category if category[c][0] == "P"}
    ascii_punct = set(map(ord, "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"))
    marks = alone(pre_tokenizers.Punctuation())

    def pairs(points):
        return [f"{{0x{a:X}, 0x{b:X}}}," for a, b in ranges(points)]

    print("/* SPDX-License-Identifier: Apache-2.0 */")
    print("/* unicode_new.inc - written by tests/oracle/unicode_tables.py; do not edit. */")
    table("Assigned or recategorised after Unicode 14.0, by first code point.", "new_category",
          "qn_category_range", [text for _, text in sorted(rows)], 3)
    table("Additions to the scripts that patterns name.", "new_script", "qn_script_range", scripts, 3)
    table("No normal form changes or moves these: the oracle's normaliser is older than they are.",
          "norm_inert", "struct point_range", pairs(inert))
    table("Lower case that Unicode 14.0 lacks.", "new_lower", "struct point_pair", lower)
    table("Where the oracle's digit test contradicts the number categories.", "digit_flip",
          "struct point_range", pairs(numbers ^ digits))
    table("Where its punctuation test contradicts the punctuation categories, ASCII aside.",
          "punct_flip", "struct point_range", pairs((punct ^ marks) - ascii_punct))
    print(f"\n/* {len(new)} new, {len(inert)} inert */", file=sys.stdout)


main()
