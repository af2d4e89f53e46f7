#!/usr/bin/env python3
"""Compares lists of files in packaging/ with what is installed: ci/packaging.py BUILD

Each file that `meson install` of BUILD installs is in exactly one of Debian's packages, each line of
their lists means such a file, and the version is that of meson.build.  Plugins of other programs
(HOSTS), which Debian's packages lack, are left out."""
import fnmatch
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
HOSTS = "lib/clebsch/", "lib/lammps/", "lib/kim-api/"
DEBIAN = ROOT / "packaging" / "debian"


def installed(build):
    """Paths below the prefix, of files and links; libraries as if they went to lib."""
    about = pathlib.Path(build, "meson-info")
    options = {o["name"]: o["value"]
               for o in json.loads((about / "intro-buildoptions.json").read_text())}
    files = json.loads((about / "intro-installed.json").read_text()).values()
    below = (str(pathlib.Path(f).relative_to(options["prefix"])) for f in files)
    return sorted({re.sub(f"^{re.escape(options['libdir'])}/", "lib/", f) for f in below})


def lists():
    """(list, pattern below the prefix) of what Debian's packages take of the installed files."""
    for path in sorted(DEBIAN.glob("*.install")):
        for line in filter(None, path.read_text().splitlines()):
            taken = line.split()[0]
            if taken.startswith("usr/"):
                yield path.name, re.sub(r"^lib/\*/", "lib/", taken[len("usr/"):])
            elif not (ROOT / taken).exists():
                sys.exit(f"{path.relative_to(ROOT)}: there is no {taken}")


def takes(pattern, file):
    return fnmatch.fnmatch(file, pattern) or file.startswith(pattern + "/")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    files = [f for f in installed(sys.argv[1]) if not f.startswith(HOSTS)]
    wanted, bad = list(lists()), []
    for file in files:
        of = [name for name, pattern in wanted if takes(pattern, file)]
        if len(of) != 1:
            bad.append(f"{file} is in {' and '.join(of) or 'no package'}")
    bad += [f"packaging/debian/{name}: no file is {pattern}" for name, pattern in wanted
            if not any(takes(pattern, file) for file in files)]
    version = re.search(r"version: '(.*?)'", (ROOT / "meson.build").read_text())[1]
    said = re.match(r"clebsch \((.*)-", (DEBIAN / "changelog").read_text())[1]
    if said != version:
        bad.append(f"packaging/debian/changelog: version {said}, and of meson.build {version}")
    abi = ".".join(version.split(".")[:2 if version.startswith("0.") else 1])
    if f"\nPackage: libclebsch{abi}\n" not in (DEBIAN / "control").read_text():
        bad.append(f"packaging/debian/control: no package libclebsch{abi}, of this ABI")
    sys.exit("\n".join(bad) if bad or not files else 0)


main()
