# SPDX-License-Identifier: Apache-2.0
"""check_layers.py - layers.txt lists each layer with what it may include, lowest first.

A file of src/<layer>/ may include its own layer, the layers of its line and the public headers
(quern/); headers named *_int.h stay inside their layer. Quoted includes always carry their layer.
"""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def read_layers(path):
    allowed = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        name, deps = (part.strip() for part in line.split(":"))
        unknown = set(deps.split()) - allowed.keys()
        if unknown:  # what is not listed yet is higher: this also rules out cycles
            sys.exit(f"{path}:{number}: {name}: unknown or higher layer: {' '.join(sorted(unknown))}")
        if name in allowed:
            sys.exit(f"{path}:{number}: {name} is listed twice")
        allowed[name] = {name, *deps.split()}
    return allowed


def check_file(path, own, allowed):
    text = path.read_text()
    for match in INCLUDE.finditer(text):
        place = f"{path}:{text.count(chr(10), 0, match.start()) + 1}"
        layer, slash, rest = match[1].partition("/")
        if layer == "quern" and slash:
            continue
        if not slash or ".." in match[1]:
            yield f'{place}: "{match[1]}": write the layer in front, as "{own}/{match[1]}"'
        elif layer not in allowed[own]:
            yield f"{place}: {own} may not include {layer}/{rest}"
        elif layer != own and rest.endswith("_int.h"):
            yield f"{place}: {layer}/{rest} is private to {layer}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    allowed = read_layers(root / "layers.txt")
    bad = []
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in {".c", ".h", ".cu", ".cuh", ".inc", ".def"}:
            continue
        parts = path.relative_to(root / "src").parts
        if len(parts) == 1:
            continue  # a table above all layers, such as features.def, includes nothing
        own = parts[0]
        if own not in allowed:
            bad.append(f"{path}: layer {own} is not in layers.txt")
            continue
        bad.extend(check_file(path, own, allowed))
    print("\n".join(bad), end="\n" if bad else "")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
