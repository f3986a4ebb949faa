# SPDX-License-Identifier: Apache-2.0
"""make_jinja_seeds.py - writes tests/fuzz/corpus/jinja/g*: templates of the goldens, several to a file, so that
what the fuzzer starts from reaches every filter, test, method and tag."""
import json
import pathlib

out = pathlib.Path("tests/fuzz/corpus/jinja")
good = [json.loads(x) for x in open("tests/golden/jinja/cases.jsonl")]
good = [x["template"] for x in good if "text" in x]
names = {"n": "f", "z": "f", "l": "a", "ls": "a", "rows": "msgs", "s": "s"}
head = "".join("{% set " + k + " = " + v + " %}" for k, v in names.items())
for i in range(0, len(good), 24):
    (out / f"g{i // 24:02}").write_text(head + "\n".join(good[i:i + 24]))
