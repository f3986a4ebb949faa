# SPDX-License-Identifier: Apache-2.0
"""faults.py - do the tests notice? Plants one-line faults, one at a time, and wants a red test for each.

    python3 tools/faults.py [--list] [--only NAME ...] [--jobs N]

tools/faults.toml lists them: the file, the exact text (which must occur once), its replacement and
the tests that ought to notice. All of it happens in a copy of the working tree under build/faults,
kept between runs so that only what a fault touches is compiled anew. A fault that its own tests miss
is tried on the whole suite before it is said to survive.

Status 1: the suite is red without faults, a fault survived, or an entry fits the sources no more.
"""
import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
TREE = ROOT / "build" / "faults" / "tree"
BUILD = ROOT / "build" / "faults" / "build"
LEAST_SECONDS, SLOWER = 30, 6  # tests that take this and this much longer than without a fault hang: red


def run(command, **more):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, errors="replace", **more)


def sync():
    """Makes TREE equal to the working tree, touching only files that differ."""
    listed = run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "-z"])
    if listed.returncode:
        sys.exit(f"faults: git ls-files: {listed.stderr.strip()}")
    names = {n for n in listed.stdout.split("\0") if n and (ROOT / n).is_file()}
    for name in names:
        source, copy = ROOT / name, TREE / name
        if copy.is_file() and copy.read_bytes() == source.read_bytes():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
        shutil.copymode(source, copy)
    for copy in [p for p in TREE.rglob("*") if p.is_file()]:
        if str(copy.relative_to(TREE)) not in names:
            copy.unlink()


class Suite:
    """The build and the tests of TREE."""

    def __init__(self, jobs):
        self.jobs = str(jobs)
        self.seconds = {}  # test -> time without a fault
        self.env = dict(os.environ)
        starter = self.env.get("QUERN_TEST_STARTER") or run([ROOT / "tools" / "starter.sh"]).stdout.strip()
        done = run(["cmake", "-S", TREE, "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                    "-DCMAKE_C_FLAGS_RELEASE=-O2 -DNDEBUG", "-DQUERN_WERROR=OFF", f"-DQUERN_STARTER={starter}"])
        if done.returncode:
            sys.exit(f"faults: cmake: {done.stderr.strip()[-2000:]}")
        self.env["QUERN_TEST_STARTER"] = starter

    def names(self, pattern):
        """Test names that the regular expression selects."""
        out = run(["ctest", "-N", *self.select(pattern)], cwd=BUILD).stdout
        return re.findall(r"^\s*Test\s+#\d+: (\S+)", out, re.M)

    @staticmethod
    def select(pattern):
        return ["-R", pattern] if pattern else []

    def build(self, pattern):
        """None, or the end of the compiler's output. Builds only the chosen tests' programs."""
        known = set(run(["ninja", "-C", BUILD, "-t", "targets", "all"]).stdout.split())
        known = {t.removesuffix(":") for t in known}
        targets = [f"test_{n}" for n in self.names(pattern)] if pattern else ["all"]
        if any(t not in known for t in targets):
            targets = ["all"]
        done = run(["ninja", "-C", BUILD, "-j", self.jobs, *targets])
        return None if done.returncode == 0 else (done.stdout + done.stderr)[-3000:]

    def test(self, pattern):
        """[] when all are green, else the names of the red ones; stops at the first."""
        limit = LEAST_SECONDS + SLOWER * sum(self.seconds[n] for n in self.names(pattern)) if self.seconds else None
        child = subprocess.Popen(["ctest", "--stop-on-failure", "--no-tests=error", "-j", self.jobs,
                                  *self.select(pattern)], cwd=BUILD, env=self.env, text=True, errors="replace",
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            out, _ = child.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            out, _ = child.communicate()
            started = re.findall(r"^\s*Start\s+\d+: (\S+)", out, re.M)
            return [f"{started[-1] if started else 'a test'} (hangs)"]
        if not self.seconds:
            self.seconds = {n: float(t) for n, t in re.findall(r"Test\s+#\d+: (\S+) .*?([0-9.]+) sec$", out, re.M)}
        if child.returncode == 0:
            return []
        red = re.findall(r"^\s*\d+ - (\S+) \(([^)]*)\)", out, re.M)
        return [name if why == "Failed" else f"{name} ({why.lower()})" for name, why in red] or ["no test was found"]


def read_faults(only):
    faults = tomllib.loads((ROOT / "tools" / "faults.toml").read_text())["fault"]
    names = [f["name"] for f in faults]
    if len(set(names)) != len(names):
        sys.exit("faults: a name occurs twice")
    unknown = set(only or ()) - set(names)
    if unknown:
        sys.exit(f"faults: unknown: {', '.join(sorted(unknown))}")
    return [f for f in faults if not only or f["name"] in only]


def misfit(fault):
    """Why the entry does not fit the sources, or None."""
    path = TREE / fault["file"]
    if not path.is_file():
        return "no such file"
    n = path.read_text().count(fault["find"])
    return None if n == 1 else f"its text occurs {n} times"


def try_fault(fault, suite):
    """(verdict, detail): red, survived or broken."""
    path = TREE / fault["file"]
    original = path.read_text()
    pattern = fault.get("tests", "")
    try:
        path.write_text(original.replace(fault["find"], fault["replace"]))
        for chosen in dict.fromkeys((pattern, "")):
            if not suite.names(chosen):
                continue
            log = suite.build(chosen)
            if log is not None:
                return "broken", "does not compile: " + (re.findall(r"error: .*", log) or [log[-200:]])[0]
            red = suite.test(chosen)
            if red:
                return "red", red[0]
        return "survived", "every test is green"
    finally:
        path.write_text(original)


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--list", action="store_true", help="only say what would be planted")
    ap.add_argument("--only", nargs="+", metavar="NAME")
    ap.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    args = ap.parse_args()
    faults = read_faults(args.only)
    if args.list:
        for f in faults:
            print(f"{f['name']:34} {f['file']:34} {f.get('tests', 'all')}")
        return 0
    TREE.mkdir(parents=True, exist_ok=True)
    sync()
    stale = [(f["name"], why) for f in faults if (why := misfit(f))]
    for name, why in stale:
        print(f"{name}: does not fit: {why}")
    suite = Suite(args.jobs)
    log = suite.build("")
    if log is not None:
        sys.exit(f"faults: the tree does not build\n{log}")
    red = suite.test("")
    if red:
        sys.exit(f"faults: red without any fault: {', '.join(red)}")
    counts = {"red": 0, "survived": 0, "broken": len(stale)}
    for f in faults:
        if misfit(f):
            continue
        start = time.monotonic()
        verdict, detail = try_fault(f, suite)
        counts[verdict] += 1
        print(f"{f['name']:34} {f['file']:34} {verdict:9} {detail} ({time.monotonic() - start:.0f} s)", flush=True)
    print(f"{len(faults)} faults: {counts['red']} noticed, {counts['survived']} survived, {counts['broken']} do not fit")
    return 1 if counts["survived"] or counts["broken"] else 0


if __name__ == "__main__":
    sys.exit(main())
