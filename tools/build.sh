#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build.sh PRESET [TARGET...]: configure and build it. Warnings are errors under CI only, so that `make run` and
# `make test` share one build. On a terminal ninja shows its progress; elsewhere only what went wrong.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
targets=()
[ $# -eq 0 ] || targets=(--target "$@")
log=$(mktemp)
trap 'rm -f "$log"' EXIT
options=()
[ -z "${CI:-}" ] || options+=(-DQUERN_WERROR=ON)
[ -z "${QUERN_TEST_STARTER:-}" ] || options+=("-DQUERN_STARTER=$QUERN_TEST_STARTER")
[ -z "${QUERN_TEST_GEMMA_FILE:-}" ] || options+=("-DQUERN_GEMMA=$QUERN_TEST_GEMMA_FILE")
# Ninja configures anew by itself when a list of files changed; that leaves the first time and new options.
ninja=build/$preset/build.ninja
if [ ${#options[@]} -gt 0 ] || [ ! -f "$ninja" ] || [ CMakePresets.json -nt "$ninja" ]; then
  cmake --preset "$preset" "${options[@]}" >"$log" 2>&1 || { cat "$log"; exit 1; }
fi
if [ -t 1 ]; then
  cmake --build --preset "$preset" "${targets[@]}"
else
  cmake --build --preset "$preset" "${targets[@]}" >"$log" 2>&1 || { tail -n 60 "$log"; exit 1; }
fi
