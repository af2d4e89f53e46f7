#!/bin/sh
# Unpacks jansson and zlib of arm64, Debian's packages, into FOLDER/root, and prints that:  root=$(packaging/arm64_root.sh FOLDER)
set -eu
folder=$(mkdir -p "$1" && cd "$1" && pwd)
root=$folder/root libraries=$folder/root/usr/lib/aarch64-linux-gnu
if [ ! -e "$root/complete" ]; then
  mkdir -p "$root" "$folder/apt/lists/partial" "$folder/apt/cache/archives/partial"
  arm64() {
    apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root -o Dir::State="$folder/apt" \
      -o Dir::State::status=/dev/null -o Dir::Cache="$folder/apt/cache" "$@" >&2
  }
  arm64 update
  (cd "$folder/apt" && arm64 download libjansson4 libjansson-dev zlib1g zlib1g-dev)
  for package in "$folder"/apt/*.deb; do dpkg -x "$package" "$root"; done
  cp -a "$root"/lib/aarch64-linux-gnu/* "$libraries"
  ln -sf libz.so.1 "$libraries/libz.so"
  sed -i "s#^prefix=.*#prefix=$root/usr#; s#=/usr/lib#=$root/usr/lib#; s#^libdir=.*#libdir=$libraries#" "$libraries"/pkgconfig/*.pc
  touch "$root/complete"
fi
echo "$root"
