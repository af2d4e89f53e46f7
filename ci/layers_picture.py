#!/usr/bin/env python3
"""Draws the picture of the layers in docs/architecture.md:

    python3 ci/layers_picture.py [--check]

Folders and what each may include come from ci/layers.py --list, so that the picture always agrees
with that check.  It is between "<!-- layers -->" and "<!-- end -->".  --check writes nothing and
fails if a picture is out of date."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "architecture.md"
SAYS = {
    "tools": "the command: what it prints, and files that it reads",
    "examples": "programs: to copy, on public headers",
    "bench": "measurements: and the comparison with other libraries",
    "models": "whole networks: files, energies, forces",
    "src/tuning": "timing of candidates: on the device, when an op is created",
    "kernels/*/host": "what runs an op: public calls, operands, workspaces, launches",
    "kernels/host": "operands of a pass: lists of all ops by kind",
    "src/runtime": "contexts, launches, caches: and buffers, recordings, wisdom",
    "kernels": "a folder an op: its problem becomes a kernel",
    "backends": "drivers: text becomes a binary, and runs",
    "src/codegen": "text and SPIR-V: of a kernel, in a device's language",
    "src/problem": "irreps: descriptions of ops, Wigner 3j symbols",
    "src/ir": "kernel language: builder, verifier, interpreter",
    "src/base": "strings, errors: hashes, files kept between runs",
}


def folders():
    listed = subprocess.run([sys.executable, str(ROOT / "ci" / "layers.py"), "--list"],
                            check=True, capture_output=True, text=True).stdout
    lines = (line.split(": ") for line in listed.splitlines())
    return {name: [] if may == "none" else may.split() for name, may in lines}


def floors():
    """The level of each folder: one above those that it may include."""
    may, floor = folders(), {}
    for name, below in may.items():  # listed from the lowest up; models/atoms counts as models
        known = [floor[f] if f in floor else floor[f.split("/")[0]] for f in below]
        floor[name] = 1 + max(known, default=-1)
    programs = "tools", "examples", "bench"  # these use the installed library, so they are at the top
    top = 1 + max(f for name, f in floor.items() if name not in programs)
    floor.update((name, top) for name in programs)
    return {n: [name for name in may if floor[name] == n] for n in range(top, -1, -1)}


def picture():
    """A line for each folder."""
    return "\n".join(f"    {n if name == names[0] else ' '}  {name:<14} {SAYS[name]}"
                     for n, names in floors().items() for name in names)


def main():
    if set(folders()) != set(SAYS):
        sys.exit(f"layers_picture.py: not told of {set(folders()) ^ set(SAYS)}")
    between = re.compile(r"(<!-- layers -->\n\n).*?(\n\n<!-- end -->)", re.S)
    before = PAGE.read_text()
    after, pictures = between.subn(lambda m: m[1] + picture() + m[2], before)
    name = PAGE.relative_to(ROOT)
    if not pictures:
        sys.exit(f"{name} has no picture of the layers")
    if "--check" not in sys.argv:
        PAGE.write_text(after)
    elif after != before:
        sys.exit(f"{name} is out of date; run python3 ci/layers_picture.py")


main()
