#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh - the main job after a build: the starter model is put into the store and served; Ctrl-C ends it.
# PORT (8080) chooses where, 0 takes a free port.
set -euo pipefail
cd "$(dirname "$0")/.."
model=$(tools/starter.sh)
[ -n "$model" ] || { echo "run: no model; tools/starter.sh needs the network once" >&2; exit 1; }
exec build/release/bin/quern serve --model starter --port "${PORT:-8080}"
