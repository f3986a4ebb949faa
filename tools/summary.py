# SPDX-License-Identifier: Apache-2.0
"""summary.py CTEST_STATUS BUILD_DIR... - adds up what the test binaries counted.

Each binary ends with "N passed, N failed" (", N skipped"). One that ctest ran but that ended without
such a line (a crash, a timeout) counts as one failure. The sum is the last line; the exit status is
1 when anything failed or when ctest itself was not content."""
import pathlib
import re
import sys

LINE = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.M)
totals = [0, 0, 0]
for build in sys.argv[2:]:
    log = (pathlib.Path(build) / "Testing/Temporary/LastTest.log").read_text(errors="replace")
    for part in re.split(r"(?m)^\d+/\d+ Testing: ", log)[1:]:
        name = part.split("\n", 1)[0]
        found = LINE.findall(part)
        counts = [int(x or 0) for x in found[-1]] if found else [0, 1, 0]
        if not found or ("Test Passed." not in part and counts[1] == 0):
            counts[1] = max(counts[1], 1)
            print(f"{build}: {name} did not end as a test does")
        if counts[1]:
            print(f"{build}: {name}: {counts[1]} failed")
        totals = [a + b for a, b in zip(totals, counts)]
if int(sys.argv[1]) and not totals[1]:
    print(f"ctest ended with status {sys.argv[1]}")
    totals[1] = 1
print(f"{totals[0]} passed, {totals[1]} failed" + (f", {totals[2]} skipped" if totals[2] else ""))
sys.exit(totals[1] != 0)
