#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh - real clients against a real server: the type check of web/, the chat page in Chromium, OpenAI's
# SDKs for Node and for Python. The packages are pinned and stay under build/clients.
#
#   QUERN_TEST_STARTER  the model to serve (default: what tools/starter.sh prints)
#   QUERN_URL           a server that already runs, instead of one started here; it should end answers
#                       that nobody ends (--max-tokens), since a drawn story may go on for minutes
#   QUERN_SHOT=FILE     the page's screenshot for the docs is taken as well
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$PWD/build/clients
mkdir -p "$work"

for tool in npm chromium python3; do
  command -v "$tool" >/dev/null || { echo "clients: $tool is missing"; exit 1; }
done
cp tests/clients/*.mjs tests/clients/package.json tests/clients/package-lock.json "$work/"
lock=$(sha256sum <"$work/package-lock.json")
if [ "$(cat "$work/.npm" 2>/dev/null)" != "$lock" ]; then
  (cd "$work" && npm ci --no-audit --no-fund --silent)
  echo "$lock" >"$work/.npm"
fi
needs=$(cat tests/oracle/clients/requirements.txt)
if [ "$(cat "$work/.pip" 2>/dev/null)" != "$needs" ]; then
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install -q --disable-pip-version-check -r tests/oracle/clients/requirements.txt
  echo "$needs" >"$work/.pip"
fi

"$work/node_modules/.bin/tsc" -p web
echo "clients: web/ has no type error"

server=
stop() { [ -z "$server" ] || { kill -INT "$server" 2>/dev/null || true; wait "$server" || true; }; }
trap stop EXIT
if [ -z "${QUERN_URL:-}" ]; then
  model=${QUERN_TEST_STARTER:-$(tools/starter.sh)}
  build/release/bin/quern serve --model "$model" --port 0 --max-tokens 400 >"$work/serve.out" 2>"$work/serve.log" &
  server=$!
  for _ in $(seq 600); do
    QUERN_URL=$(grep -hoE 'http://127\.0\.0\.1:[0-9]+' "$work/serve.out" "$work/serve.log" | head -n 1 || true)
    [ -n "$QUERN_URL" ] && break
    kill -0 "$server" 2>/dev/null || { tail -n 20 "$work/serve.log"; exit 1; }
    sleep 0.1
  done
  [ -n "$QUERN_URL" ] || { echo "clients: the server tells no address"; tail -n 20 "$work/serve.log"; exit 1; }
fi
export QUERN_URL

status=0
node=$work/node_modules/.bin/node
for part in page openai; do
  echo "== $part (Node $("$node" --version))"
  "$node" "$work/${part}_test.mjs" || status=1
done
echo "== openai (Python)"
"$work/venv/bin/python" tests/oracle/clients/openai_client.py || status=1
exit "$status"
