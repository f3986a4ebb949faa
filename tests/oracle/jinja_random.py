# SPDX-License-Identifier: Apache-2.0
"""jinja_random.py RENDER [N [SEED]] - N random small templates through jinja2 and through jinja_render.

Expressions are drawn over all filters, tests, operators and methods of the sandbox, with arguments that
fit more often than not; statements over all tags. A text that names an address in memory, and a number
beyond 64 bits, is left out. Prints what differs, shrunk, and the sums; fails where anything differs.
"""
import random
import re
import sys

from jinja_env import agree, ours, truth

CONTEXT = {
    "n": 7, "z": 0, "neg": -3, "f": 2.5, "g": -0.125, "big": 1234567, "t": True, "no": False, "nil": None, "e": "",
    "s": "Hello wOrld", "w": "  two\twords \n", "h": "<a href='x'>T&C</a> \"q\"", "u": "Straße ﬁn ÉLAN ΣΑΣ ǆ 😀", "d": "42", "r": "3.75",
    "p": "a-b_c.d", "m": {"k": "v", "n": None, "b": True, "i": 3}, "l": [3, 1, 2], "ls": ["b", "A", "c", "a"], "mix": [1, "1", 1.0, None, True],
    "nest": [[1, 2], [3], []], "rows": [{"a": 2, "b": "x"}, {"a": 1, "b": "Y"}, {"a": 2, "b": "X"}, {"b": "z"}],
    "deep": {"x": {"y": [{"z": 1}, {"z": "two"}]}}, "long": "The quick brown-fox jumps over -- the lazy dog; antidisestablishmentarianism twice.\nAnd on.",
    "el": [], "em": {}, "esc": "a\\b'c\"d\n\x01\x7f\xa0é", "ns": {"items": 1, "get": 2}, "html": "<!-- c --><p>1 &lt; 2 &amp;&#39; x</p> <b"}
NAMES = list(CONTEXT) + ["missing"]
STR = ["s", "w", "h", "u", "d", "r", "p", "e", "long", "esc", "html"]
LITERALS = ["1", "0", "-1", "3", "2.5", "'a'", "'l'", "' '", "''", "'o'", "true", "false", "none", "[1, 2]", "'a,b'", "{'a': 1}", "(1,)", "()", "10", "'%s'", "'é'"]
METHODS = {
    "upper": 0, "lower": 0, "title": 0, "capitalize": 0, "swapcase": 0, "casefold": 0, "strip": (0, 1), "lstrip": (0, 1), "rstrip": (0, 1),
    "split": (0, 2), "rsplit": (0, 2), "splitlines": (0, 1), "startswith": (1, 2), "endswith": (1, 2), "find": (1, 3), "rfind": (1, 3),
    "index": 1, "rindex": 1, "count": (1, 3), "replace": (2, 3), "join": 1, "partition": 1, "rpartition": 1, "removeprefix": 1,
    "removesuffix": 1, "center": (1, 2), "ljust": (1, 2), "rjust": (1, 2), "zfill": 1, "expandtabs": (0, 1), "isalpha": 0, "isalnum": 0,
    "isascii": 0, "isdecimal": 0, "isdigit": 0, "isidentifier": 0, "islower": 0, "isnumeric": 0, "isprintable": 0, "isspace": 0,
    "istitle": 0, "isupper": 0, "format": (0, 2)}
DICT_METHODS = {"items": 0, "keys": 0, "values": 0, "get": (1, 2), "copy": 0}
FILTERS = {
    "abs": [], "capitalize": [], "center": ["int"], "count": [], "default": ["any", "bool"], "dictsort": ["bool", "by", "bool"],
    "e": [], "escape": [], "filesizeformat": ["bool"], "first": [], "float": ["any"], "forceescape": [], "format": ["any", "any"],
    "groupby": ["attr"], "indent": ["width", "bool", "bool"], "int": ["any", "base"], "items": [], "join": ["str", "attr?"], "last": [],
    "length": [], "list": [], "lower": [], "max": ["bool"], "min": ["bool"], "pprint": [], "replace": ["str", "str", "int?"], "reverse": [],
    "round": ["digits", "how"], "safe": [], "slice": ["int", "any?"], "batch": ["int", "any?"], "sort": ["bool"], "string": [],
    "striptags": [], "sum": [], "title": [], "tojson": [], "trim": ["str?"], "truncate": ["len", "bool", "str?", "int?"],
    "unique": ["bool"], "upper": [], "urlencode": [], "wordcount": [], "wordwrap": ["len", "bool"], "xmlattr": ["bool"]}
TESTS = {"defined": 0, "undefined": 0, "none": 0, "string": 0, "mapping": 0, "sequence": 0, "iterable": 0, "boolean": 0, "true": 0, "false": 0,
         "integer": 0, "float": 0, "number": 0, "callable": 0, "escaped": 0, "odd": 0, "even": 0, "divisibleby": 1, "lower": 0, "upper": 0,
         "sameas": 1, "filter": 0, "test": 0, "in": 1, "eq": 1, "ne": 1, "lt": 1, "gt": 1, "le": 1, "ge": 1, "equalto": 1, "==": 1, "<": 1, ">=": 1}
SPECS = ["", "5", "<6", ">6", "^7", "*^9", "05", "+", " ", "x", "#x", "b", "o", "d", "e", ".2f", "8.3f", ",", ",.1f", "_", "%", ".1%", "g", ".3g", "s", ".2", "010,", "=+8", "c", "n"]
PERCENT = ["%s", "%d", "%5d", "%-5s|", "%05.1f", "%x", "%#o", "%e", "%g", "%r", "%c", "%%", "%+d", "%.3s", "%(k)s", "%i", "%5.1f", "%a"]


class Maker:
    def __init__(self, rng):
        self.r = rng

    def pick(self, *what):
        return self.r.choice(what)

    def atom(self):
        r = self.r.random()
        return self.r.choice(NAMES) if r < 0.7 else self.r.choice(LITERALS)

    def text(self):
        return self.r.choice(STR) if self.r.random() < 0.8 else self.pick("'a b'", "'x'", "'<i>'", "n", "missing", "l")

    def argument(self, kind):
        k = kind.rstrip("?")
        if k == "int":
            return self.pick("1", "2", "3", "5", "12", "0", "-1", "n", "t", "none")
        if k == "len":
            return self.pick("3", "5", "10", "20", "7", "0")
        if k == "digits":
            return self.pick("0", "1", "2", "-1", "3", "-2")
        if k == "how":
            return self.pick("'common'", "'ceil'", "'floor'", "'x'")
        if k == "by":
            return self.pick("'key'", "'value'", "'x'")
        if k == "base":
            return self.pick("10", "16", "2", "8", "0")
        if k == "width":
            return self.pick("2", "4", "'> '", "0", "1")
        if k == "bool":
            return self.pick("true", "false")
        if k == "attr":
            return self.pick("'a'", "'b'", "0", "'x.y'")
        if k == "str":
            return self.pick("'l'", "'o'", "', '", "'-'", "''", "' '", "s", "h|safe", "n")
        return self.atom()

    def filter(self):
        r = self.r.random()
        if r < 0.12:
            return "map(" + self.pick("'upper'", "'string'", "'length'", "'int'", "attribute='a'", "attribute='b', default='q'", "'default', 1", "'nofilter'", "") + ")" + self.pick("", "|list", "|join(',')", "|first")
        if r < 0.24:
            f = self.pick("select", "reject")
            return f + self.pick("", "('odd')", "('string')", "('gt', 1)", "('in', [1, 2])", "('divisibleby', 2)", "('none')") + self.pick("", "|list", "|list|length", "|first")
        if r < 0.34:
            f = self.pick("selectattr", "rejectattr")
            return f + "(" + self.pick("'a'", "'b', 'equalto', 'x'", "'a', '>', 1", "'a', 'defined'", "'b', 'in', ['x', 'z']", "'a.b'", "0") + ")" + self.pick("", "|list", "|list|length")
        if r < 0.40:
            return self.pick("sort(attribute='a')", "sort(attribute='b,a')", "unique(attribute='a')|list", "min(attribute='a')", "max(attribute='b')", "sum('a')", "sum(start=1)",
                             "tojson(indent=2)", "tojson(sort_keys=true)", "tojson(ensure_ascii=true)", "tojson(separators=(',', ':'))", "tojson(indent='-')", "join(attribute='b')",
                             "groupby('b', default='none')", "wordwrap(10, break_on_hyphens=false)", "attr('k')", "attr('upper')", "sort(reverse=true)", "truncate(9, leeway=0)")
        name, args = self.r.choice(list(FILTERS.items()))
        need = 1 if name in ("replace", "center", "groupby", "slice", "batch") and args else 0
        need = 2 if name == "replace" else need
        n = self.r.randint(min(need, len(args)), len(args)) if args else 0
        if self.r.random() < 0.02:
            n = max(0, n - 1)
        out = name + ("(" + ", ".join(self.argument(a) for a in args[:n]) + ")" if n else "")
        if name in ("slice", "batch", "unique", "items", "reverse") and self.r.random() < 0.8:
            out += self.pick("|list", "|list", "|join('/')")
        return out

    def method(self, table):
        name, n = self.r.choice(list(table.items()))
        n = n if isinstance(n, int) else self.r.randint(*n)
        args = [self.pick("'l'", "' '", "'o'", "1", "3", "'-'", "''", "ls", "none", "2", "'he'", "('H', 's')") for _ in range(n)]
        if name in ("center", "ljust", "rjust", "zfill", "expandtabs"):
            args = [self.pick("5", "12", "20", "0")] + (["'*'"] if n > 1 else [])
            args = args[:n]
        return f".{name}({', '.join(args)})"

    def expr(self, depth):
        r = self.r.random()
        if depth <= 0 or r < 0.08:
            return self.atom()
        if r < 0.40:
            return f"{self.sub(depth)}|{self.filter()}"
        if r < 0.52:
            return f"{self.text()}{self.method(METHODS)}"
        if r < 0.55:
            return f"{self.pick('m', 'em', 'ns', 'deep')}{self.method(DICT_METHODS)}{self.pick('', '|list', '|list')}"
        if r < 0.64:
            return f"{self.sub(depth)} {self.pick('+', '-', '*', '/', '//', '%', '~', '~', '+')} {self.sub(depth)}"
        if r < 0.70:
            return f"{self.sub(depth)} {self.pick('==', '!=', '<', '>', '<=', '>=', 'in', 'not in')} {self.sub(depth)}" + (f" {self.pick('<', '==')} {self.sub(depth)}" if self.r.random() < 0.15 else "")
        if r < 0.76:
            name, n = self.r.choice(list(TESTS.items()))
            return f"{self.sub(depth)} is {self.pick('', '', 'not ')}{name}" + (f"({self.atom()})" if n else "")
        if r < 0.80:
            return f"{self.pick('not ', '-', '+')}{self.sub(depth)}"
        if r < 0.84:
            return f"{self.sub(depth)} {self.pick('and', 'or')} {self.sub(depth)}"
        if r < 0.87:
            return f"({self.expr(depth - 1)} if {self.expr(depth - 1)}{self.pick('', ' else ' + self.sub(depth))})"
        if r < 0.92:
            at = lambda: self.pick("", "1", "-1", "2", "-3", "0", "10", "n")
            return f"{self.pick('s', 'u', 'l', 'ls', 'e', 'el', 'range(5)', 'm', 'missing', self.sub(depth))}[{at()}:{at()}{self.pick('', ':' + self.pick('1', '2', '-1', '-2', ''))}]"
        if r < 0.96:
            return f"{self.sub(depth)}{self.pick('[0]', '[-1]', '.x', '.k', chr(46) + 'items', '[1]', '.a', '.0', '[9]', chr(91) + chr(39) + 'k' + chr(39) + chr(93), '.__class__', '.append', '._x')}"
        if r < 0.98:
            return f"'{self.pick(*PERCENT)}{self.pick('', ' ', '%s')}' % {self.pick(self.atom(), f'({self.atom()}, {self.atom()})', 'm')}"
        if r < 0.995:
            return f"'{{{self.pick('', '0', '1')}{self.pick('', '!r', '!s')}:{self.pick(*SPECS)}}}'.format({self.atom()}, {self.atom()})"
        return self.pick("range(3)", "range(1, 9, 3)", "dict(a=1)", "namespace(a=2)", "[" + self.expr(depth - 1) + "]", "{'q': " + self.expr(depth - 1) + "}", "range(5, 0, -2)|list")

    def sub(self, depth):
        e = self.expr(depth - 1)
        return e if re.fullmatch(r"\w+", e) else f"({e})"

    def out(self, depth=2):
        return "{{" + self.pick("", "-", "", "") + " " + self.expr(depth) + " " + self.pick("", "-", "", "") + "}}"

    def body(self, depth):
        return "".join(self.statement(depth) for _ in range(self.r.randint(1, 2)))

    def tag(self, text):
        return self.pick("{% ", "{%- ", "{% ", "{%+ ", "  {% ") + text + self.pick(" %}", " -%}", " %}\n", " +%}", "%}")

    def statement(self, depth):
        r = self.r.random()
        if depth <= 0 or r < 0.3:
            return self.pick("", " ", "a\n", "\n  ", "x") + self.out(1)
        inner = lambda: self.body(depth - 1)
        if r < 0.42:
            return self.tag("if " + self.expr(1)) + inner() + (self.tag("elif " + self.expr(1)) + inner() if self.r.random() < 0.3 else "") + (self.tag("else") + inner() if self.r.random() < 0.5 else "") + self.tag("endif")
        if r < 0.62:
            what = self.pick("{{ loop.index }}", "{{ loop.last }}", "{{ loop.cycle('a', 'b') }}", "{{ loop.previtem }}", "{{ loop.nextitem }}", "{{ loop.length }}", "{{ loop.changed(q) }}", "{{ loop.revindex0 }}", "", "{{ loop }}")
            stop = self.pick("", "", "", "{% if q == 1 %}{% break %}{% endif %}", "{% if loop.first %}{% continue %}{% endif %}")
            return (self.tag(f"for {self.pick('q', 'q', 'q, v')} in {self.pick('l', 'ls', 'rows', 'm', 'm.items()', 'range(3)', 's', 'el', 'l|select', 'mix', self.expr(1))}{self.pick('', '', ' if q', ' if q is string')}")
                    + stop + what + self.pick("{{ q }}", "") + inner() + (self.tag("else") + inner() if self.r.random() < 0.3 else "") + self.tag("endfor"))
        if r < 0.72:
            name = self.pick("x", "s", "n", "l")
            return self.tag(f"set {name} = {self.expr(2)}") + "{{ " + name + " }}"
        if r < 0.77:
            return self.tag("set x" + self.pick("", " | upper", " | trim | length")) + inner() + self.tag("endset") + "{{ x }}"
        if r < 0.81:
            return self.tag(f"filter {self.pick('upper', 'trim', 'length', 'indent(2)', 'escape', 'replace(chr, 1)', 'title')}") + inner() + self.tag("endfilter")
        if r < 0.87:
            args = self.pick("()", "(a)", "(a, b=2)", "(a=n, b=s)")
            return self.tag("macro f" + args) + self.pick("{{ a }}", "{{ b }}{{ varargs }}", "{{ kwargs }}", "{{ caller() if caller }}", "{{ x }}") + inner() + self.tag("endmacro") + "{{ " + self.pick("f()", "f(1)", "f(1, 2)", "f(b=3)", "f(1, c=4)", "f(*l)", "f(**m)", "f", "f.name") + " }}"
        if r < 0.90:
            return "{% macro g(a) %}[{{ caller(a) }}]{% endmacro %}" + self.tag("call" + self.pick("", "(y)", "(y=1)") + " g(" + self.atom() + ")") + inner() + self.pick("{{ y }}", "") + self.tag("endcall")
        if r < 0.94:
            return self.tag(f"with x = {self.expr(1)}, y = {self.pick('x', 'n', '1')}") + "{{ x }}{{ y }}" + inner() + self.tag("endwith")
        if r < 0.96:
            return "{% set o = namespace(c=0) %}{% for q in l %}{% set o.c = o.c + q %}{% endfor %}{{ o.c }}{{ o }}"
        if r < 0.97:
            return self.tag("generation") + inner() + self.tag("endgeneration")
        if r < 0.98:
            return "{% for q in nest recursive %}{{ loop.depth }}{% if q is iterable %}({{ loop(q) }}){% else %}{{ q }}{% endif %}{% endfor %}"
        if r < 0.985:
            return self.tag("autoescape " + self.pick("true", "false", "t")) + inner() + self.out(2) + self.tag("endautoescape")
        if r < 0.99:
            return self.tag(f"block b{self.r.randint(0, 99)}") + inner() + self.tag("endblock")
        return self.pick("{# c #}", "{#- c -#}", "{% raw %}{{ x }}{% endraw %}", "  {%- raw -%} {% a %} {%- endraw %}\n", "{{ joiner('|')() }}", "{% set c = cycler(1, 2) %}{{ c.next() }}{{ c.current }}", "{% include 'x' %}", "{% if", "{{ 'a", "{{ 1 | }}", "{% endfor %}")

    def template(self):
        return self.out(3) if self.r.random() < 0.5 else self.body(3)


def outside(want, mine):
    """Addresses differ each time; numbers beyond 64 bits and urlize are told as what ours has not."""
    if want[0] is not None and re.search(r" at 0x[0-9a-f]+>", want[0]):
        return True
    return mine[1] is not None and re.search(r"64 bits|is no text|urlize|arithmetic of sets|no real number|longer than|more than \d+ bytes", mine[1][2])


def shrink(render, source):
    """A shorter template on which the two still differ, by cutting pieces out."""
    best = source
    for width in (64, 32, 16, 8, 4, 2, 1):
        at = 0
        while at < len(best) and width < len(best):
            less = best[:at] + best[at + width:]
            want, mine = truth(less, CONTEXT), ours(render, [(less, CONTEXT)])[0]
            if agree(want, mine) == agree(truth(best, CONTEXT), ours(render, [(best, CONTEXT)])[0]) and not outside(want, mine):
                best = less
            else:
                at += width
    return best


def main(render, n="20000", seed="1"):
    maker = Maker(random.Random(int(seed)))
    sources = [maker.template() for _ in range(int(n))]
    got = ours(render, [(s, CONTEXT) for s in sources])
    texts = refusals = left = 0
    bad = []
    for source, mine in zip(sources, got):
        want = truth(source, CONTEXT)
        if outside(want, mine):
            left += 1
        elif agree(want, mine):
            bad.append((source, want, mine))
        elif want[0] is None:
            refusals += 1
        else:
            texts += 1
    for source, want, mine in bad[:40]:
        print(f"{agree(want, mine)}: {source!r}\n   want {want[0]!r} {want[1]}\n   ours {mine[0]!r} {mine[1]}")
    print(f"templates {len(sources)} of seed {seed}: equal texts {texts}, equal refusals {refusals}, left out {left}, differ {len(bad)}")
    return len(bad) != 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
