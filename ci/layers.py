#!/usr/bin/env python3
"""Checks that each folder uses only folders below it: python3 ci/layers.py [--list]

Includes are written from the repository's root.  A folder may include its own files, those of the
folders that MAY lists for it, and public headers.  An op is a folder in kernels/: what makes its
kernel, and in host/ what runs it, which is a layer of its own.  Only the command and programs call
functions of public*.c, never the library itself.  All headers have different names, and no folder
has more than MOST C files.  --list prints MAY, from the lowest folder up, without folders inside
others."""
import collections
import pathlib
import re
import sys

MAY = {  # folder: the folders that it may include, with their subfolders
    "src/base": "",
    "src/ir": "src/base",
    "src/problem": "src/base",
    "src/codegen": "src/ir src/base",
    "kernels": "src/problem src/ir src/base",
    "backends": "src/codegen src/ir src/base",
    "src/runtime": "kernels backends src/problem src/ir src/base",
    "kernels/host": "src/runtime kernels src/problem src/base",
    "src/tuning": "kernels/host src/runtime kernels src/problem src/ir src/base",
    "kernels/*/host": "src/tuning kernels/host src/runtime kernels src/problem src/ir src/base",
    "models": "kernels/*/host kernels/host src/runtime src/problem src/base",  # and all folders in it
    "models/atoms": "src/problem src/base",
    "models/edges": "models/atoms kernels/*/host src/runtime src/base",
    "models/ghosts": "kernels/*/host kernels/host src/runtime",
    "models/parameters": "src/base",
    "models/layers": "models/atoms models/ghosts models/parameters "
                     "kernels/*/host src/runtime src/problem src/base",
    "models/passes": "models/layers",
    "models/file": "models/layers src/base",
    "models/arch": "models/file models/layers",
    "tools": "models/atoms src/base",
    "examples": "",
    "bench": "",
}
MOST = 20
PROGRAMS = ("models", "tools", "examples", "bench")  # and what is like one

root = pathlib.Path(__file__).resolve().parent.parent


def folder_of(path):
    parts = re.sub(r"^kernels/\w+/host/", "kernels/*/host/", path)
    return next((f for f in sorted(MAY, key=len, reverse=True) if parts.startswith(f + "/")), None)


def allowed(folder, included):
    """Folders inside another one of MAY count as it, but host/ does not count as kernels."""
    of = folder_of(included)
    return any(of == f or (of and of.startswith(f + "/") and f != "kernels") for f in [folder] + MAY[folder].split())


def sources(folder):
    return sorted(p for p in (root / folder).rglob("*.[ch]") if p.is_file())


def main():
    if sys.argv[1:] == ["--list"]:
        for folder, may in MAY.items():
            if not any(folder.startswith(f + "/") for f in MAY if f != "kernels"):
                print(f"{folder}: {may or 'none'}")
        return
    if sys.argv[1:]:
        sys.exit(__doc__)
    bad, headers, counts, includes = [], collections.defaultdict(list), collections.Counter(), 0
    public = set()
    for path in (p for folder in ("src", "kernels") for p in sources(folder) if p.match("public*.c")):
        public |= set(re.findall(r"^\w[\w *]*?\b(clb_\w+?)(?:_sized)?\([^;]*?\) \{", path.read_text(), re.M | re.S))
    for top in sorted({f.split("/")[0] for f in MAY} | {"tests"}):
        for path in sources(top):
            name = str(path.relative_to(root))
            if name.startswith(("tests/data/", "bench/results/")):
                continue
            counts[str(path.parent.relative_to(root))] += 1
            if path.suffix == ".h":
                headers[path.name].append(name)
            folder, text = folder_of(name), path.read_text()
            for n, line in enumerate(text.splitlines(), 1):
                found = re.match(r'#include "([^"]+)"', line)
                if not found:
                    continue
                includes += 1
                if not (root / found[1]).is_file():
                    bad.append(f"{name}:{n}: {found[1]} is no path from the repository's root")
                elif folder and not allowed(folder, found[1]):
                    bad.append(f"{name}:{n}: {folder} may not include {found[1]}")
            if folder and not folder.startswith(PROGRAMS) and not path.match("public*.c"):
                for call in sorted(set(re.findall(r"\b(clb_\w+?)(?:_sized)?\(", text)) & public):
                    bad.append(f"{name}: calls {call}, which is for programs")
    bad += [f"header twice: {' '.join(p)}" for p in headers.values() if len(p) > 1]
    bad += [f"{f} has {n} files; at most {MOST}" for f, n in sorted(counts.items()) if n > MOST]
    print("\n".join(bad) if bad else f"layers: {includes} includes in {len(counts)} folders, "
          f"{len(public)} calls for programs only: each folder uses only those below it")
    sys.exit(bool(bad))


main()
