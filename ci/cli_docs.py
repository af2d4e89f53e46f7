#!/usr/bin/env python3
"""Writes docs/cli.md from the --help texts of the command: python3 ci/cli_docs.py CLEBSCH [--check]

CLEBSCH is the program, as build/tools/clebsch.  --check writes nothing, and fails if the page
differs from what would be written.  No device is opened."""
import difflib
import os
import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "cli.md"
# Subcommands with more than one --help text, and the first arguments of the others.
MORE = {"bench": ["launches", "optimizer", "--suite standard", "--without each"]}
HEAD = """# The command `clebsch`

<!-- Written by ci/cli_docs.py from the programs' --help; a test compares. -->

"""


def help_of(command, arguments):
    # glibc wraps a line of 79 characters by a byte that it has not written.
    drop = ("ARGP_HELP_FMT", "MALLOC_PERTURB_")
    environment = {k: v for k, v in os.environ.items() if k not in drop}
    environment.update(LC_ALL="C", CLB_DEVICE="none")  # opening a device would fail
    words = [command, *arguments.split(), "--help"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    if done.returncode or done.stderr:
        sys.exit(f"{' '.join(words)}: exit status {done.returncode}: {done.stderr}")
    return "\n".join(line.rstrip() for line in done.stdout.splitlines()).strip()


def section(title, text):
    return f"{title}\n\n```text\n{text}\n```\n\n"


def page(command):
    whole = help_of(command, "")
    listed = re.search(r"^Commands:\n((?:  .*\n)+)", whole, re.M)
    if not listed:
        sys.exit("clebsch --help lists no commands")
    text, ops = HEAD + section("Its own help:", whole), None
    for name in re.findall(r"^  (\w+)", listed[1], re.M):
        own = help_of(command, name)
        text += section(f"## clebsch {name}", own)
        for more in MORE.get(name, []):
            text += section(f"### clebsch {name} {more}", help_of(command, f"{name} {more}"))
        found = re.search(r"^OP is one of ([\w,\s]+)\.", own, re.M)
        ops = ops or found and (name, re.findall(r"\w+", found[1]))
    if not ops:
        sys.exit("no subcommand says which ops there are")
    text += "## Problems of the ops\n\n"
    text += f"The same in every command that takes an OP; here as `{ops[0]}` tells them.\n\n"
    for op in ops[1]:
        said = help_of(command, f"{ops[0]} {op}")
        problem = re.search(r"^ The problem of \w+:\n(.*?)\n\n", said, re.M | re.S)
        if not problem:
            sys.exit(f"{op} has no options of its problem")
        text += section(f"### {op}", problem[1])
    return text.rstrip() + "\n"


def main():
    arguments = [a for a in sys.argv[1:] if a != "--check"]
    if len(arguments) != 1:
        sys.exit(__doc__)
    new = page(arguments[0])
    if "--check" not in sys.argv:
        PAGE.write_text(new)
        return
    old = PAGE.read_text() if PAGE.is_file() else ""
    if old != new:
        names = "docs/cli.md", "--help"
        delta = difflib.unified_diff(old.splitlines(True), new.splitlines(True), *names)
        sys.stdout.writelines(delta)
        sys.exit("docs/cli.md is not what the command says: run ci/cli_docs.py")


main()
