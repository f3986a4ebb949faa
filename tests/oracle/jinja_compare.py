# SPDX-License-Identifier: Apache-2.0
"""jinja_compare.py RENDER FILE... - chat templates through jinja2 and through jinja_render.

FILE is a .jinja template or a tokenizer_config.json. Prints each difference and a sum.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
from datetime import datetime

import jinja2
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_same"), [], [], body).set_lineno(line)

    def _same(self, caller):
        return caller()


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def refuse(message):
    raise jinja2.TemplateError(message)


env = ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation])
env.filters["tojson"] = tojson
env.globals["raise_exception"] = refuse
env.globals["strftime_now"] = lambda f: datetime.fromtimestamp(1700000000).strftime(f)

TOOL = {"type": "function", "function": {"name": "weather", "description": "Says how <it> is.", "parameters": {
    "type": "object", "required": ["city"], "properties": {
        "city": {"type": "string", "description": "where"}, "unit": {"type": "string", "enum": ["C", "F"]}}}}}
USER = {"role": "user", "content": "Hi, how's it? é"}
SAYS = {"role": "assistant", "content": "Fine."}
CALL = {"role": "assistant", "content": "", "tool_calls": [
    {"id": "call12345", "type": "function", "function": {"name": "weather", "arguments": {"city": "Ulm", "n": 1.5}}}]}
BACK = {"role": "tool", "name": "weather", "tool_call_id": "call12345", "content": "{\"t\": 3}"}
CASES = [
    {"messages": [USER]}, {"messages": [{"role": "system", "content": "Be brief."}, USER]},
    {"messages": [USER, SAYS, USER]}, {"messages": [USER], "tools": [TOOL]},
    {"messages": [USER, CALL, BACK], "tools": [TOOL]},
    {"messages": [USER, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nYes"}, USER], "enable_thinking": False},
    {"messages": [{"role": "user", "content": [{"type": "text", "text": "parts"}]}]},
    {"messages": [USER, SAYS], "add_generation_prompt": False},
]


def templates(path):
    text = pathlib.Path(path).read_text("utf-8")
    if not path.endswith(".json"):
        return [text]
    found = json.loads(text).get("chat_template") or []
    return [found] if isinstance(found, str) else [x["template"] for x in found]


def main(render, *paths):
    same = differ = both_refuse = n = 0
    for path in paths:
        for source in templates(path):
            n += 1
            for i, case in enumerate(CASES):
                values = {"bos_token": "<s>", "eos_token": "</s>", "tools": None, "documents": None,
                          "add_generation_prompt": True, **case}
                try:
                    want = env.from_string(source).render(**values)
                except Exception as e:  # whatever it is, ours must refuse too
                    want, why = None, e
                with tempfile.TemporaryDirectory() as d:
                    t, v = pathlib.Path(d, "t"), pathlib.Path(d, "v")
                    t.write_bytes(source.encode())
                    v.write_text(json.dumps(values))
                    r = subprocess.run([render, str(t), str(v)], capture_output=True)
                got = r.stdout.decode() if r.returncode == 0 else None
                if got == want:
                    same += got is not None
                    both_refuse += got is None
                    continue
                differ += 1
                at = next((k for k in range(min(len(want or ""), len(got or ""))) if want[k] != got[k]), 0)
                print(f"{path} case {i}: want {want[at:at + 60]!r}" if want is not None else f"{path} case {i}: jinja2: {why}",
                      "found", repr(got[at:at + 60]) if got is not None else r.stderr.decode().strip())
    print(f"{n} templates, {len(CASES)} conversations: {same} the same, {both_refuse} refused by both, {differ} differ")
    return differ != 0


sys.exit(main(*sys.argv[1:]))
