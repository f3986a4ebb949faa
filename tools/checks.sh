#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# checks.sh - what a machine can see without building: layers, names, format, no built program among
# the sources.
set -euo pipefail
cd "$(dirname "$0")/.."
python3 tools/check_layers.py
python3 tools/check_names.py
git ls-files '*.c' '*.h' | xargs clang-format-14 --dry-run --Werror
if git grep -laP '^\x7fELF' -- .; then
  echo "checks: what is built is not committed"
  exit 1
fi
echo "checks: layers, names and format are in order"
