#!/bin/sh
# Run by `meson install` without DESTDIR: programs must find the library.  The system's list of libraries is made anew, which root may do;
# where the list has not this one, the user is told what to set.
# src/find_library.sh LIBDIR BINDIR
set -eu
libraries=$MESON_INSTALL_DESTDIR_PREFIX/$1
PATH=$PATH:/sbin:/usr/sbin
command -v ldconfig >/dev/null || exit 0
[ "$(id -u)" != 0 ] || ldconfig || true
! ldconfig -p | grep -qF "=> $libraries/libclebsch.so" || exit 0
[ -z "${MESON_INSTALL_QUIET:-}" ] || exit 0
cat <<END
Compilers and programs do not look into $MESON_INSTALL_DESTDIR_PREFIX by themselves:
  export PATH="$MESON_INSTALL_DESTDIR_PREFIX/$2:\$PATH"
  export PKG_CONFIG_PATH="$libraries/pkgconfig"
  export LD_LIBRARY_PATH="$libraries"
END
