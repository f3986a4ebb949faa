# SPDX-License-Identifier: Apache-2.0
"""tokenizer_strings.py - seeded random and nasty texts for tokenizer comparisons.

Every text is bytes: a share of them is no valid UTF-8 on purpose. Nothing is taken from elsewhere.
"""
import random

LATIN = (
    "the of and to in is that for with as was on are by this have from or had not but what all were "
    "when your can said there use each which she do how their if will up other about out many then "
    "them these so some her would make like him into time has look two more write go see number no way "
    "could people my than first water been call who oil its now find long down day did get come made "
    "may part over new sound take only little work know place year live me back give most very after "
    "token model attention gradient bicycle quern mill grain straße naïve façade Ærøskøbing œuvre"
).split()
SCRIPTS = {
    "greek": (0x391, 0x3C9), "cyrillic": (0x410, 0x44F), "hebrew": (0x5D0, 0x5EA),
    "arabic": (0x621, 0x64A), "devanagari": (0x905, 0x94D), "bengali": (0x985, 0x9CD),
    "thai": (0xE01, 0xE4E), "georgian": (0x10D0, 0x10FA), "hangul": (0xAC00, 0xD7A3),
    "jamo": (0x1100, 0x11FF), "hiragana": (0x3041, 0x309F), "katakana": (0x30A0, 0x30FF),
    "cjk": (0x4E00, 0x9FA5), "cjk_b": (0x20000, 0x2A6DF), "ethiopic": (0x1200, 0x1357),
    "khmer": (0x1780, 0x17DD), "tamil": (0xB82, 0xBCD), "latin_ext": (0xC0, 0x24F),
    "math_letters": (0x1D400, 0x1D7FF), "fullwidth": (0xFF01, 0xFFEE), "tibetan": (0xF40, 0xFBC),
    "compat": (0xF900, 0xFAD9), "cherokee": (0x13A0, 0x13FD), "deseret": (0x10400, 0x1044F),
}
MARKS = [chr(c) for c in (*range(0x300, 0x36F), 0x591, 0x5B0, 0x64B, 0x651, 0x670, 0x93C, 0x94D,
                          0xE38, 0xE48, 0x1AB0, 0x1DC0, 0x20D0, 0x20DD, 0xFE20, 0x1D165, 0x302A)]
EMOJI = ["\U0001F600", "\U0001F468\u200D\U0001F469\u200D\U0001F467", "\U0001F3F3\uFE0F\u200D\U0001F308",
         "\U0001F1E9\U0001F1EA", "\U0001F44D\U0001F3FD", "\u2764\uFE0F", "1\uFE0F\u20E3", "\U0001FAE8",
         "\U0001F9D1\U0001F3FB\u200D\U0001F680", "\u00A9\uFE0E", "\U0001F441\uFE0F\u200D\U0001F5E8\uFE0F"]
SPACES = [" ", "  ", "   ", "\t", "\n", "\r", "\r\n", "\n\n", "\u00A0", "\u2003", "\u3000", "\u2028",
          "\u2029", "\u0085", "\u1680", "\u180E", "\u200B", "\u200C", "\u200D", "\uFEFF", "\v", "\f",
          "\u202F", "\u205F", "\u2581", "\u00AD"]
ODD_CASE = ["\u0130", "\u0131", "\u017F", "\u212A", "\u1E9E", "\u00DF", "\u0149", "\u01C5", "\u03C2",
            "\uFB01", "\uFB00", "\u2126", "\u0345", "\u1C80", "\u10A0"]
CONTRACTIONS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'T", "'RE", "'Ve", "'M", "'lL", "'D",
                "\u2019s", "'\u017F", "'st", "''s", "'s's", "'LLa", "'mm", " 's", "'\u212A", "'x"]
CODE = ["def f(x):\n\treturn x ** 2  # ok\n", "for (size_t i = 0; i < n; i++) {\n    a[i] += b[i];\n}\n",
        "<div class=\"a\">&nbsp;</div>", "SELECT * FROM t WHERE a='b';", "\\frac{1}{2}\\,x^{2}",
        "https://example.org/a?b=c&d=%20#e", "#!/bin/sh\nset -eu\n", "{\"k\": [1, 2.5e-3, null]}",
        "\t\t\tif (!p) return -1;\r\n\t\t}\r\n", "0xDEADBEEF && ~0b1010 || 1_000_000", "std::vector<int>&&",
        "```python\nprint('hi')\n```\n", "a->b.c[d]::e<f>()!?;", "/* */ // -- %% @@ $$ ^^ ~~ `` || \\\\"]
LOOKALIKES = ["<|", "|>", "<|im_start", "<|im_end|", "<|eot_id|>", "<|begin_of_text|>", "<s>", "</s>", "<unk>",
              "<0x0A>", "<0xff>", "<0x", "<bos>", "<eos>", "<pad>", "<start_of_turn>", "<end_of_turn>",
              "<|endoftext|>", "<|im_start|>", "<\uFF5Cbegin\u2581of\u2581sentence\uFF5C>", "<think>", "</think>",
              "<|channel|>", "<|message|>", "<|return|>", "[INST]", "[/INST]", "<unused7>", "<tool_call>",
              "<|reserved_special_token_9|>", "< |im_end|>", "<|IM_END|>", "<s", "s>", "<<s>>", "<\u2581s>"]


class Texts:
    """text(i) draws from one seeded stream; specials are spellings of the vocabulary's added tokens."""

    def __init__(self, seed, specials=()):
        self.r = random.Random(seed)
        self.specials = list(specials) or LOOKALIKES

    def word(self):
        r = self.r
        w = r.choice(LATIN)
        k = r.random()
        if k < 0.15:
            w = w.capitalize()
        elif k < 0.22:
            w = w.upper()
        elif k < 0.26:
            w = "".join(c.upper() if r.random() < 0.5 else c for c in w)
        elif k < 0.30:
            w += r.choice(CONTRACTIONS)
        return w

    def prose(self, n):
        r = self.r
        out = []
        for _ in range(n):
            out.append(self.word())
            out.append(r.choice([" ", " ", " ", " ", ", ", ". ", "; ", " - ", "? ", "! ", "\n", "  ", ""]))
        return "".join(out)

    def script(self, n):
        r = self.r
        a, b = SCRIPTS[r.choice(list(SCRIPTS))]
        out = []
        for _ in range(n):
            out.append(chr(r.randint(a, b)))
            if r.random() < 0.15:
                out.append(r.choice([" ", " ", r.choice(MARKS), "\u200D", "\u200C", ",", "\u3002", "1"]))
        return "".join(out)

    def digits(self):
        r = self.r
        zero = r.choice([0x30, 0x30, 0x30, 0x660, 0x966, 0xFF10, 0x1D7CE, 0x11DE0, 0x16AC0])
        s = "".join(chr(zero + r.randint(0, 9)) for _ in range(r.randint(1, 24)))
        return r.choice(["", "-", "+", "$", "\u00BD", "\u2167", "\u00B2"]) + s + r.choice(["", ".5", ",", "%", "th"])

    def marks(self):
        r = self.r
        base = r.choice(["a", "e", "o", "\u00E9", "\u1E69", "\uAC00", "\u0915", " ", "\u212B", "q", "\u4E00"])
        return base + "".join(r.choice(MARKS) for _ in range(r.randint(1, 9)))

    def point(self):
        r = self.r
        while True:
            c = r.choice([r.randint(0, 0x7F), r.randint(0, 0x7FF), r.randint(0, 0xFFFF), r.randint(0, 0x10FFFF),
                          r.randint(0x10000, 0x1FFFF)])
            if not 0xD800 <= c < 0xE000:
                return chr(c)

    def blank(self):
        r = self.r
        if r.random() < 0.4:
            return r.choice([" ", "\t", "\n", "\r\n", "\u3000"]) * r.randint(1, 70)
        return "".join(r.choice(SPACES) for _ in range(r.randint(1, 12)))

    def long_word(self):
        r = self.r
        k = r.randint(0, 4)
        n = r.randint(50, 600)
        if k == 0:
            return r.choice("aAzZ0=-_.") * n
        if k == 1:
            return "".join(r.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(n))
        if k == 2:
            return "".join(r.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZabc0123456789+/") for _ in range(n))
        if k == 3:
            return r.choice(["ab", "the", "na", "\u4E2D", "\U0001F600", "<s>", "\u00DF"]) * (n // 3)
        return "".join(r.choice("!?.,;:()[]{}<>/\\|@#$%^&*-_=+~`'\"") for _ in range(n))

    def special(self):
        r = self.r
        s = r.choice(self.specials) if r.random() < 0.6 else r.choice(LOOKALIKES)
        k = r.random()
        if k < 0.1:
            s = s[: r.randint(0, len(s))]
        elif k < 0.15:
            s = s.upper()
        return r.choice(["", "", " ", "\n", "x"]) + s + r.choice(["", "", " ", "  ", "\n", "s", s])

    def part(self):
        r = self.r
        k = r.random()
        if k < 0.22:
            return self.prose(r.randint(1, 14))
        if k < 0.36:
            return self.script(r.randint(1, 30))
        if k < 0.44:
            return self.digits()
        if k < 0.52:
            return self.marks()
        if k < 0.60:
            return self.blank()
        if k < 0.68:
            return "".join(self.point() for _ in range(r.randint(1, 16)))
        if k < 0.75:
            return "".join(r.choice(EMOJI) for _ in range(r.randint(1, 6)))
        if k < 0.82:
            return r.choice(CODE)
        if k < 0.91:
            return self.special()
        if k < 0.94:
            return r.choice(CONTRACTIONS) + self.word() + r.choice(ODD_CASE)
        if k < 0.97:
            return "".join(chr(r.randint(0, 0x9F)) for _ in range(r.randint(1, 10)))
        return self.long_word() if r.random() < 0.25 else r.choice(ODD_CASE) + self.word()

    def text(self):
        r = self.r
        s = "".join(self.part() for _ in range(r.choice([0, 1, 1, 1, 2, 2, 3, 4, 6, 9])))
        b = s.encode()
        if r.random() < 0.03:  # cut, spoil or shuffle bytes: no UTF-8 any more
            b = bytearray(b[: r.randint(0, len(b))])
            for _ in range(r.randint(1, 4)):
                b.insert(r.randint(0, len(b)), r.choice([0x80, 0xBF, 0xC0, 0xC3, 0xE2, 0xED, 0xF0, 0xF4, 0xFF]))
            b = bytes(b)
        return b
