#!/bin/sh
# Run by `meson install` without DESTDIR: root's loader learns of the library (Meson 1.0 leaves that to us).
[ "$(id -u)" != 0 ] || PATH=$PATH:/sbin:/usr/sbin ldconfig || true
