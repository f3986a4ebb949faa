# SPDX-License-Identifier: Apache-2.0
"""make_jinja_seeds.py - writes tests/fuzz/corpus/jinja/g*: the templates of tests/golden/jinja, many to a file and
parted by NUL, so that what the fuzzer starts from reaches every filter, test, method and tag."""
import json
import pathlib

out = pathlib.Path("tests/fuzz/corpus/jinja")
for old in out.glob("g*"):
    old.unlink()
all = [json.loads(x)["template"] for x in open("tests/golden/jinja/cases.jsonl")]
for i in range(0, len(all), 40):
    (out / f"g{i // 40:02}").write_bytes("\0".join(all[i:i + 40]).encode())
