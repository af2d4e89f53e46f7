#!/usr/bin/env python3
"""Checks that links between documents resolve: python3 ci/links.py

Every relative link of every committed *.md must name a file or folder of the tree, and its anchor,
if it has one, a heading of that file.  A path like `src/ir/ir.h` in the text or a picture of README.md
and docs/ must name a file; * and NAME stand for any name.  Links to the web are not checked."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SKIPPED = ("build", ".", "subprojects")  # prefixes of folders that are skipped
FENCE = re.compile(r"^(```|~~~).*?^\1", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")
FOLDERS = ("backends", "bench", "ci", "docs", "examples", "include", "kernels", "models", "python",
           "src", "tests", "tools")
PATH = re.compile(rf"(?<![\w/.$-])(?:{'|'.join(FOLDERS)})/(?:[\w./-]|(?<!\*)\*(?!\*))*")


def documents():
    for path in sorted(ROOT.rglob("*.md")):
        if not path.relative_to(ROOT).parts[0].startswith(SKIPPED):
            yield path


def anchors(path):
    """Of a file's headings, as GitHub makes them: lower case, without punctuation, spaces as -."""
    found, counts = set(), {}
    for heading in re.findall(r"^#+ +(.*)$", FENCE.sub("", path.read_text()), re.M):
        heading = re.sub(r"\]\([^)]*\)", "]", heading)
        name = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        seen = counts[name] = counts.get(name, -1) + 1
        found.add(f"{name}-{seen}" if seen else name)
    return found


def main():
    bad, count = [], 0
    for document in documents():
        name = document.relative_to(ROOT)
        for target in LINK.findall(FENCE.sub("", document.read_text())):
            if re.match(r"[a-z]+:", target):
                continue
            count += 1
            path, _, anchor = target.partition("#")
            there = (document.parent / path).resolve() if path else document
            if not there.exists() or not there.is_relative_to(ROOT):
                bad.append(f"{name}: no such file: {target}")
            elif anchor and (there.suffix != ".md" or anchor not in anchors(there)):
                bad.append(f"{name}: no such heading: {target}")
        if name.parts[0] in ("README.md", "docs"):
            for path in set(PATH.findall(document.read_text())):
                count += 1
                if not any(ROOT.glob(path.rstrip("./").replace("NAME", "*"))):
                    bad.append(f"{name}: no such path: {path}")
    print("\n".join(bad) if bad else f"links: {count} resolve")
    sys.exit(bool(bad) or not count)


if __name__ == "__main__":
    main()
