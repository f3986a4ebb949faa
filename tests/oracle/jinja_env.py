# SPDX-License-Identifier: Apache-2.0
"""jinja_env.py - jinja2 as transformers sets it up for chat templates, with a fixed clock; and ours.

Where transformers is installed the environment is its own (its compile function); else one of the
same settings is built here, so that the corpus can be compared with jinja2 alone.
"""
import copy
import functools
import json
import re
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from datetime import datetime

import jinja2
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = 1700000000
warnings.simplefilter("ignore")  # Python's about templates that it compiles


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_same"), [], [], body).set_lineno(line)

    def _same(self, caller):
        return caller()


class Dict:
    """The sandbox hands out no type: a callable stands for dict."""

    def __call__(self, *args, **kwargs):
        return dict(*args, **kwargs)


class Space(jinja2.utils.Namespace):
    def __init__(*args, **kwargs):
        values = dict(*args[1:], **kwargs)
        for name in values:
            Space.check(name)
        jinja2.utils.Namespace.__init__(args[0], values)

    def __setitem__(self, name, value):
        Space.check(name)
        jinja2.utils.Namespace.__setitem__(self, name, value)

    @staticmethod
    def check(name):
        if isinstance(name, str) and name.startswith("_"):
            raise jinja2.exceptions.SecurityError(name)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def refuse(message):
    raise jinja2.TemplateError(message)


env = ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"])
env.filters["tojson"] = tojson
env.globals.update(raise_exception=refuse, dict=Dict(), namespace=Space,
                   strftime_now=lambda format: datetime.fromtimestamp(NOW).strftime(format))


def kind_of(e):
    """What kind of refusal it is, and the line it is on where jinja2 says so."""
    if isinstance(e, jinja2.TemplateSyntaxError):
        return "syntax", e.lineno
    if isinstance(e, SyntaxError):
        return "syntax", None
    line = None
    for frame in traceback.extract_tb(e.__traceback__):
        if frame.filename == "<template>":
            line = frame.lineno
    if type(e) is jinja2.TemplateError:
        return "raised:" + str(e), line
    if isinstance(e, jinja2.exceptions.SecurityError):
        return "other", line
    if isinstance(e, jinja2.UndefinedError):
        return "undefined", line
    return "other", line


@functools.lru_cache(4)
def compiled(source):
    return env.from_string(source)


def truth(source, variables):
    """(text, None, s) or (None, (kind, line), s)"""
    begin = time.perf_counter()
    try:
        text = compiled(source).render(**copy.deepcopy(variables))  # some filters change a list
        text.encode()
        return text, None, time.perf_counter() - begin
    except RecursionError:
        return None, ("deep", None), time.perf_counter() - begin
    except Exception as e:
        return None, kind_of(e), time.perf_counter() - begin


def ours(render, cases):
    """The same for a list of (source, variables), by one run of jinja_render."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".jsonl") as f:
        for source, variables in cases:
            f.write(json.dumps({"template": source, "variables": variables}, ensure_ascii=False) + "\n")
        f.flush()
        r = subprocess.run([render, "--batch", f.name], capture_output=True)
    lines = r.stdout.decode().split("\n")[:-1]
    if r.returncode or len(lines) != len(cases):
        at = len(lines)
        sys.exit(f"{render} ended after {at} of {len(cases)} cases ({r.returncode}): {r.stderr.decode()}\n{cases[at:at + 1]}")
    out = []
    for line in lines:
        a = json.loads(line)
        if "text" in a:
            out.append((a["text"], None, a["us"] / 1e6))
            continue
        m = re.match(r"line (\d+): (.*)", a["error"], re.S)
        line, said = (int(m[1]), m[2]) if m else (None, a["error"])
        kind = ("syntax" if not a.get("compiled") else "raised:" + said) if m else "other"
        out.append((None, (kind, line, said), a.get("us", 0) / 1e6))
    return out


def recorded(words):
    """Words as an error record holds them: up to a NUL, what is not printable as a question mark."""
    return re.sub(r"[\x01-\x1f\x7f-\x9f]", "?", words.split("\0")[0])


def agree(want, got, lines=True):
    """Why the two are not the same, or None."""
    if want[0] is not None or got[0] is not None:
        return None if want[0] == got[0] else "text"
    (kind, line), (ours_kind, ours_line, said) = want[1], got[1]
    if kind == "syntax" and ours_kind != "syntax":
        return "kind"
    if kind != "syntax" and ours_kind == "syntax":
        return "kind"
    if kind.startswith("raised:") and not recorded(kind[7:]).startswith(said):
        return "words"
    if kind == "undefined" and "undefined" not in said:
        return "kind"
    if lines and line is not None and kind != "other" and line != ours_line:
        return "line"
    return None
