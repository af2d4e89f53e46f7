"""Cuts files of built-ins into definitions, as C strings: embed.py OUT FILE...

FILE.ext becomes the table clb_builtins_FILE.  A definition begins with a line `#define NAME`,
`DEVICE type NAME` or `typedef type NAME`, and goes on until the next one.  One that has several of
these is a paragraph headed by `//: NAME`; the language itself has those of `//: NAMES` alone.
Comments are lines that begin with //; they and blank lines are left out.  A line that ends with a
backslash right behind a letter or sign is too long for one line here: the two are joined by a
blank, as any blank will do."""
import json
import pathlib
import re
import sys


def definitions(path):
    rows, headed = [], False
    for line in re.sub(r"(?<=\S)\\\n *", " ", path.read_text()).splitlines():
        begun = re.match(r"(?:#define|DEVICE \w+|typedef \w+) (\w+)", line)
        if line.startswith("//:"):
            rows += [[name] for name in line[3:].split()]
        elif begun and not headed:
            rows.append([begun[1], line])
        elif line and not line.startswith("//"):
            rows[-1].append(line)
        headed = bool(line) and (headed or line.startswith("//:"))
    return rows


def main():
    out, *paths = map(pathlib.Path, sys.argv[1:])
    text = '#include "src/codegen/builtins/builtins.h"\n'
    for path in paths:
        text += f"\nconst clb_builtin clb_builtins_{path.stem}[] = {{\n"
        for name, *lines in definitions(path):  # strings of JSON are strings of C
            value = "".join(line + "\n" for line in lines)
            text += f"  {{{json.dumps(name)}, {json.dumps(value)}}},\n"
        text += "  {0, 0}};\n"
    out.write_text(text)


main()
