#!/usr/bin/env python3
"""Checks that no files of the library depend on each other in a circle:

    python3 ci/circles.py LIBRARY.a

Dependencies are those of symbols that the object files define and need (nm).  PAIRS lists the
exceptions, each with its reason; a pair that is no longer a circle must be removed from it."""
import collections
import re
import subprocess
import sys

PAIRS = {
    ("src_ir_interpreter_interpret", "src_ir_interpreter_interpret_memory"): "the interpreter, and what it does with memory",
    ("kernels_convolution_host_convolution", "kernels_convolution_host_vectors"): "a convolution of edge vectors holds "
    "one without",
    ("kernels_convolution_host_passes", "kernels_convolution_host_vector_passes"): "and runs it",
}


def symbols(archive):
    """For each object file: the symbols that it defines, and those that it needs."""
    defined, needed, name = {}, collections.defaultdict(set), None
    listing = subprocess.run(["nm", archive], capture_output=True, text=True, check=True).stdout
    for line in listing.splitlines():
        header = re.match(r"(\S+)\.c\.o:$", line)
        words = line.split()
        if header:
            name = header[1]
            needed[name]
        elif len(words) >= 2 and words[-2] in "TDBRVWC":
            defined[words[-1]] = name
        elif len(words) >= 2 and words[-2] == "U":
            needed[name].add(words[-1])
    return defined, needed


def reached(calls, start):
    seen, todo = set(), [start]
    while todo:
        new = calls[todo.pop()] - seen
        seen |= new
        todo += new
    return seen


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    defined, needed = symbols(sys.argv[1])
    calls = {f: {defined[s] for s in n if s in defined} - {f} for f, n in needed.items()}
    if len(calls) < 50 or not any(calls.values()):
        sys.exit(f"circles: {sys.argv[1]} has only {len(calls)} objects, or their symbols are missing")
    reach = {f: reached(calls, f) for f in calls}
    circles = {tuple(sorted(g for g in reach[f] if f in reach[g])) for f in calls if f in reach[f]}
    bad = [f"circle of {len(c)} files: {' '.join(c)}" for c in sorted(circles - set(PAIRS))]
    bad += [f"no circle, but in PAIRS: {' '.join(c)}" for c in sorted(set(PAIRS) - circles)]
    print("\n".join(bad) if bad else f"circles: none among {len(calls)} files, but {len(PAIRS)} "
          "pairs that are one thing")
    sys.exit(bool(bad))


main()
