#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh - the main job after a build: the starter model is served; Ctrl-C ends it. PORT (8080) chooses
# where, 0 takes a free port.
set -euo pipefail
cd "$(dirname "$0")/.."
model=$(tools/starter.sh)
[ -f "$model" ] || { echo "run: no model; tools/starter.sh needs the network once" >&2; exit 1; }
exec build/release/bin/quern serve --model "$model" --port "${PORT:-8080}"
