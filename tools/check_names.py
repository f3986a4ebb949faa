# SPDX-License-Identifier: Apache-2.0
"""check_names.py [BUILD_DIR] - what may not stand in our sources, because each is a class of fault.

Without a build: calls by name (heap, unbounded string functions, locale-bound parsing, jumps, the
environment, the end of the process), the licence line, and variables at file scope. With a build
directory: writable data in the object files too, which sees static variables inside functions.
src/base is the place that wraps these calls, so it is exempt; tests are not looked at.
"""
import pathlib
import re
import subprocess
import sys

HEAP = "malloc calloc realloc reallocarray free strdup strndup aligned_alloc posix_memalign memalign asprintf vasprintf"
STRINGS = "strcpy stpcpy strcat sprintf vsprintf strncpy strncat strtok strtok_r gets"
NUMBERS = "atoi atol atoll atof sscanf fscanf scanf"
CONTROL = "setjmp longjmp sigsetjmp siglongjmp alloca"
ENDS = "exit _exit _Exit quick_exit abort"
BANNED = " ".join([HEAP, STRINGS, NUMBERS, CONTROL]).split()
# layer -> names that it may use after all
ALLOWED = {"cli": {"getenv", *ENDS.split()}}
SKIPPED = {"base"}
LICENCE = "/* SPDX-License-Identifier: Apache-2.0 */"
SOURCES = {".c", ".h", ".cu", ".cuh", ".inc"}

TOKENS = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.M)


def blank(match):
    """The same text with everything but line ends as spaces, so that places stay right."""
    text = match[0]
    quote = text[0] if text[0] in "\"'" else " "
    return quote + re.sub(r"[^\n]", " ", text[1:-1]) + (quote if len(text) > 1 else "")


def find_names(text, names):
    pattern = re.compile(r"(?<![\w.>])(" + "|".join(names) + r")\s*\(")
    for match in pattern.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match[1]


def statements(text):
    """(line, statement) at file scope, with the inside of braces left out."""
    depth, start, out, line, first = 0, 0, [], 1, 1
    for i, ch in enumerate(text):
        if ch == "\n":
            line += 1
        if depth == 0 and not "".join(out).strip():
            first = line
        if ch == "{":
            if depth == 0:
                out.append("{}")
            depth += 1
        elif ch == "}":
            depth -= 1
            if depth == 0 and re.search(r"\)\s*(?:__attribute__\s*\(\(.*\)\)\s*)?\{\}$", "".join(out), re.S):
                out = []  # a function's body ends its definition
        elif depth == 0 and ch == ";":
            yield first, " ".join("".join(out).split())
            out = []
        elif depth == 0:
            out.append(ch)


def is_writable(statement):
    if not statement or re.match(r"(typedef|extern|_Static_assert)\b", statement):
        return False
    left = statement.split("=")[0].replace("{}", " ").strip()
    if "=" not in statement:
        if re.search(r"\(\s*\*\s*\w+(\s*\[[^]]*\])*\s*\)\s*\(", left):
            return True  # a function pointer
        if "(" in left:
            return False  # a prototype or a macro call
        if re.match(r"(struct|union|enum)(\s+\w+)?\s*(\{\})?$", statement):
            return False  # a type
        if not re.search(r"\w\s+\*?\s*\w|\*\s*\w", left):
            return False
    pointer = re.search(r"\*\s*(const\b)?[^*]*$", left)
    if pointer:
        return pointer[1] is None
    return not re.search(r"\bconst\b|\bconstexpr\b", left)


def check_source(path, layer):
    text = path.read_text()
    if not text.startswith(LICENCE):
        yield f"{path}:1: the first line is not {LICENCE}"
    if layer in SKIPPED:
        return
    text = TOKENS.sub(blank, text)
    names = [n for n in BANNED + ENDS.split() + ["getenv", "secure_getenv", "putenv", "setenv"]
             if n not in ALLOWED.get(layer, ())]
    for line, name in find_names(text, names):
        yield f"{path}:{line}: {name}: not outside {'cli' if name in ENDS.split() or 'env' in name else 'base'}"
    for line, statement in statements(DIRECTIVE.sub(blank, text)):
        if is_writable(statement):
            yield f"{path}:{line}: writable at file scope: {statement[:70]}"


def check_objects(build):
    for path in sorted(build.glob("src/*/CMakeFiles/*/**/*.o")):
        layer = path.relative_to(build / "src").parts[0]
        if layer in SKIPPED:
            continue
        table = subprocess.run(["objdump", "-t", str(path)], check=True, capture_output=True, text=True).stdout
        for line in table.splitlines():
            match = re.match(r"\S+ .{7} (\*COM\*|\.(?:data|bss|tdata|tbss)(?!\.rel\.ro)\S*)\t(\S+)\s+(.*)$", line)
            if match and int(match[2], 16) and not match[3].startswith("."):
                name = match[3]
                if not name.startswith(("__asan", "__tsan", "__ubsan", "__sancov", "__gcov")):
                    yield f"{path.relative_to(build)}: writable data: {name} in {match[1]}"


def main():
    bad = []
    for path in sorted(pathlib.Path("src").rglob("*")):
        if path.suffix in SOURCES:
            bad.extend(check_source(path, path.parts[1]))
    if len(sys.argv) > 1:
        bad.extend(check_objects(pathlib.Path(sys.argv[1])))
    print("\n".join(bad), end="\n" if bad else "")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
