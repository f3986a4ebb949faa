#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test.sh - what `make test` does once the packages are there: style checks, the starter model, the
# release build with every warning an error, all tests; the tests that watch allocation run in the
# debug build too. The last line is the sum: "N passed, N failed" (", N skipped").
#
#   QUERN_OFFLINE=1  goes on without the starter model; tests that need it are then left out, by name
set -euo pipefail
cd "$(dirname "$0")/.."

tools/checks.sh
starter=$(tools/starter.sh)
export QUERN_TEST_STARTER=$starter

cmake --preset release -DQUERN_WERROR=ON "-DQUERN_STARTER=$starter" >build.log 2>&1 || { cat build.log; exit 1; }
cmake --build --preset release >build.log 2>&1 || { tail -n 60 build.log; echo "0 passed, 1 failed"; exit 1; }
# Layers whose debug assertions are tests of their own: no allocation inside a decode step.
cmake --preset debug -DQUERN_WERROR=ON "-DQUERN_STARTER=$starter" >build.log 2>&1 || { cat build.log; exit 1; }
cmake --build --preset debug >build.log 2>&1 || { tail -n 60 build.log; echo "0 passed, 1 failed"; exit 1; }
rm -f build.log

status=0
ctest --preset release -j "$(nproc)" --no-tests=error || status=$?
ctest --preset debug -j "$(nproc)" -R '^(engine|graph)' --no-tests=error || status=$?
exec python3 tools/summary.py "$status" build/release build/debug
