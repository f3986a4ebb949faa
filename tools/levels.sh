#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# levels.sh - the tests that depend on an instruction set, on each level that QUERN_ISA can force: what this
# machine has; an emulated x86 without AVX; ARM, cross-built and emulated, with and without dot products of
# bytes. Prints level x group of tests: passed tests, or FAILED. Needs a full release build, qemu-user and
# gcc-aarch64-linux-gnu; `tools/levels.sh here` leaves ARM out. A model of real size runs on vector levels of this machine only. LEVEL_SECONDS (1800) is the most for one cell.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${LEVEL_SECONDS:-1800}
export QUERN_OFFLINE=1
sysroot=$PWD/build/sysroot-arm64
logs=build/levels
rm -rf "$logs"
mkdir -p "$logs"

groups=(op format text golden)
tests_of() { # tests_of GROUP BUILD: its binaries there
  case $1 in
  format) ls "$2"/bin/test_format_* "$2"/bin/test_tensor_* ;;
  golden) ls "$2"/bin/test_golden_{tiny,engine,smollm2} 2>/dev/null || true ;;
  *) ls "$2"/bin/test_"$1"_* ;;
  esac
}

# cell GROUP BUILD LEVEL RUNNER...: "N", or FAILED with the log's end on stderr
cell() {
  local group=$1 build=$2 level=$3 passed=0 test log line filter
  shift 3
  for test in $(tests_of "$group" "$build"); do
    case $test in
    *_op_variants) filter=on_$level ;;        # the others are not allowed anyway
    *_smollm2) filter=; [ $# -eq 0 ] && [ "$level" != generic ] || continue ;; # too long in an emulator and for plain C
    *) filter= ;;
    esac
    log=$logs/$level.${test##*/}.log
    if ! QUERN_ISA=$level timeout "$seconds" nice "$@" "$test" $filter >"$log" 2>&1; then
      tail -n 20 "$log" >&2
      echo FAILED
      return
    fi
    line=$(tail -n 1 "$log")
    passed=$((passed + ${line%% passed*}))
  done
  [ "$passed" -gt 0 ] && echo "$passed" || echo FAILED
}

status=0
row() { # row NAME BUILD LEVEL RUNNER...
  local name=$1 results=() group r
  shift
  for group in "${groups[@]}"; do
    r=$(cell "$group" "$@")
    [ "$r" != FAILED ] || status=1
    results+=("$r")
  done
  # shellcheck disable=SC2059 # one format for head and rows
  printf "$form" "$name" "${results[@]}"
}
form='%-34s %7s %7s %7s %7s\n'
printf "$form" level "${groups[@]}"

can() { QUERN_ISA=$1 build/release/bin/test_op_rows >"$logs/can.log" 2>&1 || [ $? -ne 2 ]; }
case $(uname -m) in
x86_64) here=(generic avx2 avx2_vnni avx512_base avx512) ;;
aarch64) here=(generic neon neon_dot neon_i8mm) ;;
*) here=(generic) ;;
esac
for level in "${here[@]}"; do
  if can "$level"; then
    row "$level" build/release "$level"
  else
    printf "$form" "$level" "not on" this machine ""
  fi
done
[ "$(uname -m)" = x86_64 ] || exit "$status"
row "generic, no AVX (emulated)" build/release generic qemu-x86_64 -cpu Nehalem
[ "${1:-}" != here ] || exit "$status"

tools/sysroot.sh arm64 >&2
mapfile -t targets < <(for g in "${groups[@]}"; do tests_of "$g" build/release; done | sed 's|.*/||' | grep -v smollm2)
nice tools/build.sh aarch64 "${targets[@]}"
arm() { row "$1 (emulated $3)" build/aarch64 "$2" qemu-aarch64 -L "$sysroot" -cpu "$3"; }
arm neon neon cortex-a53
arm neon_dot neon_dot cortex-a76
arm neon_i8mm neon_i8mm max
exit "$status"
