#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# install_test.sh BUILD CC - what `cmake --install` puts into an empty folder is all that a program of
# others needs: it is moved, and api_use.c built against it by what pkg-config says.
set -uo pipefail
build=$1 cc=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
passed=0 failed=0

holds() { # holds WHAT COMMAND...
  if "${@:2}" >"$dir/log" 2>&1; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED $1"
    tail -n 20 "$dir/log"
  fi
}

install_and_move() {
  cmake --install "$build" --prefix "$dir/first" && mv "$dir/first" "$dir/quern"
}
same_headers() { diff -r include/quern "$dir/quern/include/quern"; }
same_version() {
  [ "quern $(pkg-config --modversion quern)" = "$("$dir/quern/bin/quern" version)" ]
}
builds_and_runs() { # builds_and_runs FLAGS_OF_PKG_CONFIG...
  local libs
  libs=$(pkg-config --cflags --libs "$@" quern) || return 1
  # shellcheck disable=SC2086 # flags are words
  "$cc" -std=c11 tests/api/api_use.c -o "$dir/use" $libs || return 1
  LD_LIBRARY_PATH=$lib "$dir/use"
}
no_shared_library() { rm "$lib"/libquern.so* && builds_and_runs --static; }

holds "an install can be moved" install_and_move
pc=$(find "$dir/quern" -name quern.pc)
lib=$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH=$lib/pkgconfig
holds "all public headers are there, and no other" same_headers
holds "program and pkg-config file tell one version" same_version
holds "a program builds against the shared library and runs" builds_and_runs
holds "a program builds against the static library and runs" no_shared_library
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
