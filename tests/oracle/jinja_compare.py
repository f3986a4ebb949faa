# SPDX-License-Identifier: Apache-2.0
"""jinja_compare.py RENDER FILE... - chat templates through jinja2 and through jinja_render.

FILE is a .jinja template, a JSON file with a chat_template (tokenizer_config.json), or a folder of
such files. Each template renders every conversation of jinja_cases.py. Prints each difference and a table.
"""
import json
import pathlib
import sys

from jinja_cases import CASES
from jinja_env import agree, ours, truth


def templates(path):
    if path.is_dir():
        for p in sorted(path.rglob("*")):
            if p.is_file() and (p.suffix == ".jinja" or p.name in ("tokenizer_config.json", "chat_template.json")):
                yield from templates(p)
        return
    text = path.read_text("utf-8")
    if path.suffix != ".json":
        yield path.name, text
        return
    found = json.loads(text).get("chat_template") or []
    for i, x in enumerate([found] if isinstance(found, str) else found):
        yield f"{path.parent.name}/{path.name}{i}", x if isinstance(x, str) else x["template"]


def main(render, *paths):
    seen, todo = {}, []
    for p in paths:
        for name, source in templates(pathlib.Path(p)):
            if seen.setdefault(source, name) == name:
                todo.append((name, source))
    cases = [(name, i, source, case) for name, source in todo for i, case in enumerate(CASES)]
    got = ours(render, [(s, c) for _, _, s, c in cases])
    texts = refusals = differ = 0
    slow = (0, ""), (0, "")
    for (name, i, source, case), mine in zip(cases, got):
        want = truth(source, case)
        slow = max(slow[0], (mine[2], f"{name} {i}")), max(slow[1], (want[2], f"{name} {i}"))
        why = agree(want, mine)
        if why:
            differ += 1
            a, b = want[0], mine[0]
            at = next((k for k in range(min(len(a), len(b))) if a[k] != b[k]), min(len(a), len(b))) if a and b else 0
            print(f"{name} case {i}: {why}: want {a[at:at + 60]!r}" if a is not None else f"{name} case {i}: {why}: want {want[1]}",
                  "found", repr(b[at:at + 60]) if b is not None else mine[1])
        elif want[0] is None:
            refusals += 1
        else:
            texts += 1
    print(f"templates {len(todo)}, conversations {len(CASES)}, renderings {len(cases)}")
    print(f"equal texts {texts}, equal refusals {refusals}, differ {differ}")
    print(f"slowest: ours {slow[0][0] * 1e3:.2f} ms ({slow[0][1]}), jinja2 with compiling {slow[1][0] * 1e3:.1f} ms ({slow[1][1]})")
    return differ != 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
