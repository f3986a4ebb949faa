#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# checks.sh - what a machine can see without building: layers, names, format.
set -euo pipefail
cd "$(dirname "$0")/.."
python3 tools/check_layers.py
python3 tools/check_names.py
git ls-files '*.c' '*.h' | xargs clang-format-14 --dry-run --Werror
echo "checks: layers, names and format are in order"
