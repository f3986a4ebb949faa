#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# sysroot.sh ARCHITECTURE - Debian's libraries of another architecture, for cross builds: what the build
# needs (the lib*-dev packages of install-deps.sh) and all that those need, unpacked under
# build/sysroot-ARCHITECTURE. Nothing is installed, dpkg learns of no second architecture, and no root is
# needed: apt works on a state of its own. Made once; remove the folder to make it anew.
set -euo pipefail
cd "$(dirname "$0")/.."
arch=${1:?"usage: tools/sysroot.sh ARCHITECTURE, such as arm64"}
root=$PWD/build/sysroot-$arch
[ -e "$root/.complete" ] && exit 0

mapfile -t packages < <(tools/install-deps.sh --list | grep -E '^lib.*-dev$')
work=$PWD/build/sysroot-$arch.apt
rm -rf "$work" "$root"
mkdir -p "$work"/lists/partial "$work"/cache/archives/partial "$root"
: >"$work/status"
apt() {
  apt-get -qq -o "APT::Architecture=$arch" -o "APT::Architectures=$arch" -o "Dir::State::status=$work/status" \
    -o "Dir::State::Lists=$work/lists" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root \
    -o Debug::NoLocking=1 -o APT::Install-Recommends=false "$@" >"$work/log" 2>&1 </dev/null ||
    { tail -n 12 "$work/log" >&2; echo "sysroot: apt-get $* failed" >&2; exit 1; }
}
apt update
apt -y --download-only install "${packages[@]}"
for deb in "$work"/cache/archives/*.deb; do dpkg-deb -x "$deb" "$root"; done

# Links and linker scripts that begin at / would lead to the files of the machine itself.
find "$root" -type l -lname '/*' | while IFS= read -r link; do
  ln -sfn "$(realpath -m --relative-to="$(dirname "$link")" "$root$(readlink "$link")")" "$link"
done
rm -rf "$work"
touch "$root/.complete"
echo "sysroot: $(find "$root" -name '*.so*' | wc -l) libraries for $arch in build/sysroot-$arch"
