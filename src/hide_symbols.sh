#!/bin/sh
# Run by `meson install`: the static library becomes one object whose only global symbols are those
# of the public headers, so that it collides with nothing that a program brings.
# src/hide_symbols.sh LIBDIR [LD OBJCOPY AR]
set -eu
archive=$MESON_INSTALL_DESTDIR_PREFIX/$1/libclebsch.a
[ -e "$archive" ] || exit 0 # only the shared library was asked for
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${2:-ld}" -r --whole-archive "$archive" -o "$folder/clebsch.o"
"${3:-objcopy}" --localize-hidden "$folder/clebsch.o"
rm "$archive"
"${4:-ar}" rcs "$archive" "$folder/clebsch.o"
