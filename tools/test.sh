#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test.sh - what `make test` does once the packages are there: style checks, the program, the models (the
# program puts the starter into its store), the release build, all tests; the tests that watch allocation run in the debug build too. The last line
# is the sum: "N passed, N failed" (", N skipped").
#
#   QUERN_OFFLINE=1  goes on without the starter model; tests that need it are then left out, by name
#   QUERN_TEST_GEMMA=1  fetches Gemma-3-270M too (253 MB); without, its tests run where the file is there
#   CI=...           makes every warning an error
set -euo pipefail
cd "$(dirname "$0")/.."
none() { echo "$1"; echo "0 passed, 1 failed"; exit 1; }

tools/checks.sh || none "the checks failed"
tools/build.sh release quern || none "the release build failed"
QUERN_TEST_STARTER=$(tools/starter.sh) || none "no starter model"
export QUERN_TEST_STARTER
[ -n "$QUERN_TEST_STARTER" ] || echo "offline: golden_smollm2 and tools_mlx_copy are left out"
if [ "${QUERN_TEST_GEMMA:-0}" = 1 ]; then
  QUERN_TEST_GEMMA_FILE=$(tools/gemma.sh) || none "no Gemma model"
else
  QUERN_TEST_GEMMA_FILE=$(QUERN_OFFLINE=1 tools/gemma.sh 2>/dev/null) || QUERN_TEST_GEMMA_FILE=
fi
export QUERN_TEST_GEMMA_FILE
[ -n "$QUERN_TEST_GEMMA_FILE" ] || echo "golden_gemma3_270m is left out: no model file (QUERN_TEST_GEMMA=1 fetches it)"

tools/build.sh release || none "the release build failed"
# Layers whose debug assertions are tests of their own: no allocation inside a decode step.
tools/build.sh debug || none "the debug build failed"

status=0
ctest --preset release -j "$(nproc)" --no-tests=error || status=$?
ctest --preset debug -j "$(nproc)" -R '^(engine|graph)' --no-tests=error || status=$?
exec python3 tools/summary.py "$status" build/release build/debug
