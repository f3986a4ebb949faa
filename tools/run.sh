#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh - the main job after a build: the starter model completes a sentence.
set -euo pipefail
cd "$(dirname "$0")/.."
model=$(tools/starter.sh)
[ -f "$model" ] || { echo "run: no model; tools/starter.sh needs the network once" >&2; exit 1; }
prompt=${PROMPT:-"The capital of France is"}
printf 'quern generate --model %s --temp 0 --max-tokens 24 "%s"\n\n%s' "$model" "$prompt" "$prompt"
exec build/release/bin/quern generate --model "$model" --temp 0 --max-tokens 24 "$prompt"
