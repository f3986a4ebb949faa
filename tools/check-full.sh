#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check-full.sh - what is too long for `make test`: sanitizers over all tests, the thread sanitizer over
# whatever has threads, long fuzzing, each level of instructions (ARM cross-built and emulated), the instruction-set check, the
# promise fuzzer with more draws, chat templates against jinja2, and the mutation run. FUZZ_SECONDS (600) is per target.
set -euo pipefail
cd "$(dirname "$0")/.."
fuzz_seconds=${FUZZ_SECONDS:-600}
extra=(clang-14 libclang-rt-14-dev llvm-14 clang-tidy-14 qemu-user gcc-aarch64-linux-gnu g++-aarch64-linux-gnu g++ chromium python3-venv)
command -v npm >/dev/null || extra+=(npm) # another Node than Debian's brings its own
missing=()
for p in "${extra[@]}"; do
  [ "$(dpkg-query -W -f='${db:Status-Abbrev}' "$p" 2>/dev/null)" = "ii " ] || missing+=("$p")
done
if [ ${#missing[@]} -gt 0 ]; then
  root=(); [ "$(id -u)" -eq 0 ] || root=(sudo)
  "${root[@]}" apt-get update -qq
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
fi
tools/build.sh release quern
QUERN_TEST_STARTER=$(tools/starter.sh)
QUERN_TEST_GEMMA_FILE=$(tools/gemma.sh)
export QUERN_TEST_STARTER QUERN_TEST_GEMMA_FILE QUERN_TEST_GEMMA=1

build() { CI=1 nice tools/build.sh "$1" || exit 1; }
step() { printf '\n== %s\n' "$*"; }

step "checks"; tools/checks.sh
step "release build, instruction sets"; build release; tools/check_isa.sh build/release; python3 tools/check_names.py build/release
step "address and undefined-behaviour sanitizers"; build asan
ctest --preset asan -j "$(nproc)" --no-tests=error
step "thread sanitizer"; build tsan
ctest --preset tsan -R '^(base|wire|device|graph|engine|promise)' --no-tests=error
step "each level of instructions, emulated where it is not here"; tools/levels.sh
step "fuzzing, $fuzz_seconds s a target"; build fuzz
for f in build/fuzz/bin/fuzz_*; do
  name=${f##*/fuzz_}
  mkdir -p "build/fuzz/corpus/$name"
  dict=(); [ ! -f "tests/fuzz/$name.dict" ] || dict=(-dict="tests/fuzz/$name.dict")
  "$f" "${dict[@]}" -max_total_time="$fuzz_seconds" -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 \
    "build/fuzz/corpus/$name" "tests/fuzz/corpus/$name" >"build/fuzz/$name.log" 2>&1 ||
    { tail -n 30 "build/fuzz/$name.log"; exit 1; }
  grep -E 'stat::number_of_executed_units' "build/fuzz/$name.log" | sed "s/^/$name /"
done
step "chat templates of packages, against jinja2"; tools/templates.sh
step "real clients: the page in a browser, SDKs"; tests/clients/run.sh
step "faults"; python3 tools/faults.py
step "all tests"; exec tools/test.sh
