#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# install-deps.sh [--list] - Debian packages that the build and `make test` need; nothing else installs any.
# With all of them there it only asks dpkg, which takes a few hundredths of a second.
set -euo pipefail

packages=(
  gcc g++ libc6-dev make cmake ninja-build pkg-config         # the build; C++ for one test
  libjansson-dev libpcre2-dev libutf8proc-dev libxxhash-dev   # behind src/dep
  libssl-dev                                                  # SHA-256 of model files
  libcurl4-openssl-dev ca-certificates                        # models from a hub
  libedit-dev                                                 # the line editor of chat
  libhttp-parser-dev                                          # HTTP of the server
  esbuild                                                     # web/: TypeScript to one script
  curl                                                        # tests: the transcripts of docs/api.md
  libcmocka-dev                                               # tests/qt.c
  clang-format-14 git                                         # the format check
  python3 python3-pip xz-utils                                # tools/*.py; the starter's package
)

if [ "${1:-}" = --list ]; then
  printf '%s\n' "${packages[@]}"
  exit 0
fi

say() { printf 'install-deps: %s\n' "$*" >&2; }

if ! command -v dpkg-query >/dev/null; then
  say "this is no Debian system; install the counterparts of: ${packages[*]}"
  for tool in cmake ninja pkg-config cc python3; do
    command -v "$tool" >/dev/null || { say "$tool is missing"; exit 1; }
  done
  exit 0
fi

missing=()
for p in "${packages[@]}"; do
  [ "$(dpkg-query -W -f='${db:Status-Abbrev}' "$p" 2>/dev/null)" = "ii " ] || missing+=("$p")
done
[ ${#missing[@]} -eq 0 ] && exit 0
say "missing: ${missing[*]}"

if [ "$(id -u)" -eq 0 ]; then
  root=()
elif command -v sudo >/dev/null; then
  root=(sudo)
else
  say "not root and no sudo here; as root: apt-get install ${missing[*]}"
  exit 1
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() { # apt WHAT ARGUMENTS...: quiet while it works, its last words when it does not
  local what=$1
  shift
  if ! "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@" >"$log" 2>&1 </dev/null; then
    tail -n 12 "$log" >&2
    say "$what failed: apt-get $*"
    exit 1
  fi
}
apt "refreshing the package lists" update
apt "installing ${#missing[@]} packages" install --no-install-recommends "${missing[@]}"
say "installed ${#missing[@]} packages"
