#!/usr/bin/env python3
"""Checks how the documents look where they are rendered: ci/rendered.py [FILE ...]

Parses every *.md of the tree, or FILEs, with cmark-gfm, GitHub's parser, and fails where a line of
a paragraph is something else: the start of an HTML block or a list, a row of a table that is none,
or what makes the lines above a heading; and where a row of a table has other columns than its head."""
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

from links import ROOT, documents

MARKUP = "{http://commonmark.org/xml/1.0}"
COMMENT = re.compile(r"<!--.*?-->", re.S)
PIPE = re.compile(r"(?<!\\)\|")  # in code, too, it ends a cell
SPLITS = {"html_block": "an HTML block", "list": "a list", "code_block": "code", "table": "a table",
          "thematic_break": "a line", "block_quote": "a quotation"}


def blocks(path):
    """What GitHub makes of a file: (name, first line, last line, text) of each block."""
    done = subprocess.run(["cmark-gfm", "-e", "table", "--sourcepos", "-t", "xml", path],
                          capture_output=True, text=True, check=True)
    for node in ElementTree.fromstring(done.stdout).iter():
        if "sourcepos" in node.attrib:
            first, last = (int(place.split(":")[0]) for place in node.get("sourcepos").split("-"))
            yield node.tag.removeprefix(MARKUP), first, last, node.text or ""


def columns(row):
    return len(PIPE.findall(row.strip().removeprefix("|").removesuffix("|")))


def faults(path):
    lines, ends, head = path.read_text().split("\n"), set(), ""
    for name, first, last, text in blocks(path):
        line = lines[first - 1]
        if name in SPLITS and first - 1 in ends:
            yield first, f"{SPLITS[name]} begins within a paragraph"
        if name == "html_block" and COMMENT.sub("", text).strip():
            yield first, "text after a comment at the start of a line is not Markdown"
        if name == "heading" and last > first:
            yield last, "this line makes those above a heading"
        if name == "paragraph":
            ends.add(last)
            for number in range(first, last + 1):
                if re.match(r"[ >]*\|[ :-]", lines[number - 1]):
                    yield number, "a row of a table that is none"
        if name == "table_header":
            head = line
        if name == "table_row" and columns(line) != columns(head):
            yield first, f"{columns(line) + 1} columns under {columns(head) + 1}"


def main():
    files = [ROOT / name for name in sys.argv[1:]] or list(documents())
    bad = [f"{path.relative_to(ROOT)}:{line}: {what}" for path in files
           for line, what in faults(path)]
    print("\n".join(bad) if bad else f"rendered: {len(files)} documents")
    sys.exit(bool(bad) or not files)


main()
