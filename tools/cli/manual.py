#!/usr/bin/env python3
"""Writes the manual page clebsch(1): manual.py docs/cli.md VERSION [ADDRESS]

docs/cli.md is what the command's --help says, word by word, as a test compares.  ADDRESS is where
faults are reported."""
import pathlib
import re
import sys
import textwrap

HEAD = """.\\" Written by tools/cli/manual.py from the command's own help.
.TH CLEBSCH 1 "" "Clebsch {version}" "User Commands"
.nh
.SH NAME
clebsch \\- kernels and models of O(3)\\-equivariant networks
.SH SYNOPSIS
"""
FILES = """.SH SEE ALSO
The documentation beside the sources, and the headers
.I clebsch/clebsch.h
and
.IR clebsch/model.h .
"""
# What argp says in each help text; the manual says it once, or not at all.
COMMON = ("Mandatory or optional arguments to long options",)
HELP = re.compile(r"-h, --help|--usage|-V, --version")


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("^", "\\(ha")
    return text.replace("~", "\\(ti").replace("'", "\\(aq")


def filled(text):
    """Lines of at most 80 letters, none of which is taken for a request."""
    return "".join(("\\&" if part.startswith((".", "\\(aq")) else "") + part + "\n"
                   for part in textwrap.wrap(text, 76, break_long_words=False,
                                             break_on_hyphens=False))


def options(lines):
    """(name, text) of each option: names begin a line, texts are in column 29."""
    found = []
    for text in lines:
        if re.match(r" {1,6}-", text):
            name, _, rest = text.strip().partition("  ")
            found.append([name, rest.strip()])
        elif not text.startswith("  "):
            found.append([None, text.strip()])  # the title of a group
        else:
            found[-1][1] += " " + text.strip()
    return [(name, text.strip()) for name, text in found if not (name and HELP.match(name))]


def paragraph(lines):
    if all(re.match(r" {1,6}-", text) or text.startswith(" ") for text in lines):
        out = ""
        for name, text in options(lines):
            title = f".TP\n.B {escaped(name)}\n" if name else ".PP\n"
            out += title + filled(escaped(text))
        return out
    if any(text.startswith(" ") for text in lines):  # laid out by hand
        return ".PP\n.nf\n" + "".join(f"\\&{escaped(text)}\n" for text in lines) + ".fi\n"
    return ".PP\n" + filled(escaped(" ".join(lines)))


def usage(text):
    """The lines of a usage, and what follows them."""
    words, rest = [], text.split("\n")
    while rest and re.match(r"Usage: |  or:  | {7,}\S", rest[0]):
        text = rest.pop(0)
        if text.startswith("    "):
            words[-1] += " " + text.strip()
        else:
            words.append(text.partition(":")[2].strip())
    return "".join(f".B {escaped(w)}\n.br\n" for w in words)[:-len(".br\n")], "\n".join(rest)


def block(text):
    out = ""
    for part in re.split(r"\n{2,}", text.strip("\n")):
        if not part.startswith(COMMON):
            out += paragraph(part.split("\n"))
    return out


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    parts = re.findall(r"^(#{2,3} [^\n]*|Its own help:)\n+(.*?)```text\n(.*?)```",
                       pathlib.Path(sys.argv[1]).read_text(), re.M | re.S)
    if not parts or parts[0][0] != "Its own help:":
        sys.exit(f"{sys.argv[1]}: not what ci/cli_docs.py writes")
    out = HEAD.format(version=sys.argv[2])
    for title, _, text in parts:
        said, rest = usage(text)
        if title == "Its own help:":
            out += said + ".SH DESCRIPTION\n" + block(rest).removeprefix(".PP\n")
            continue
        level = ".SH" if title.startswith("## ") else ".SS"
        out += f"{level} {escaped(title.lstrip('# '))}\n"
        out += (said + block(rest)) if said else paragraph(text.strip("\n").split("\n"))
    if sys.argv[3:] and sys.argv[3]:
        out += f".SH REPORTING BUGS\n{filled(escaped(sys.argv[3]))}"
    sys.stdout.write(out + FILES)


main()
