#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check_isa.sh BUILD_DIR - no instruction that an old processor lacks outside the files that ask first.
# Files named in a qn_isa(...) line of a src/*/CMakeLists.txt may use ymm and zmm registers (and must:
# else their flags were lost); any other object of ours that does so fails.
set -euo pipefail
build=${1:?"usage: tools/check_isa.sh BUILD_DIR"}
build=$(cd "$build" && pwd)
cd "$(dirname "$0")/.."

case $(uname -m) in
x86_64) ;;
*) echo "isa: nothing to check on $(uname -m)"; exit 0 ;;
esac

isa=$(for list in src/*/CMakeLists.txt; do
  layer=$(basename "$(dirname "$list")")
  tr '\n' ' ' <"$list" | grep -o 'qn_isa([^)]*)' | grep -o '[A-Za-z0-9_/]*\.c\b' | sed "s|^|$layer/|" || true
done)

wide() { objdump -d --no-show-raw-insn "$1" | grep -cE '%(y|z)mm[0-9]' || true; }

bad=0 checked=0
while IFS= read -r object; do
  rel=${object#"$build"/src/}               # kern/CMakeFiles/qn_kern.dir/x86/avx2.c.o
  layer=${rel%%/*}
  file=$layer/${rel#*.dir/}
  file=${file%.o}
  count=$(wide "$object")
  checked=$((checked + 1))
  if grep -qxF "$file" <<<"$isa"; then
    case $file in */x86/*) if [ "$count" -eq 0 ]; then echo "isa: $file has flags but no wide register"; bad=1; fi ;; esac
  elif [ "$count" -gt 0 ]; then
    echo "isa: $file uses ymm or zmm in $count instructions, and no qn_isa line names it"
    bad=1
  fi
done < <(find "$build/src" -name '*.c.o' | sort)
[ "$checked" -gt 0 ] || { echo "isa: no objects under $build/src"; exit 1; }
[ "$bad" -eq 0 ] || exit 1
echo "isa: $checked objects, wide registers only in $(wc -w <<<"$isa") files of qn_isa"
