#!/usr/bin/env python3
"""Writes what the command says into docs: python3 ci/cli_docs.py CLEBSCH [--check]

docs/cli.md has the --help texts; docs/concepts.md, between "<!-- support -->" and "<!-- end -->",
the types in which each op has each pass, as `clebsch source` finds them on the interpreter.
CLEBSCH is the program, as build/tools/clebsch.  --check writes nothing, and fails if a page differs
from what would be written."""
import difflib
import json
import os
import pathlib
import re
import subprocess
import sys

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
COMMANDS = DOCS.parent / "tools" / "cli" / "commands.def"
PASSES = "forward", "backward", "double_backward", "triple_backward"
TYPES = "f64", "f32", "f16", "bf16"
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
    said = re.sub(r"\n+Report bugs to .*\n\Z", "", done.stdout)  # a packager's own words
    return "\n".join(line.rstrip() for line in said.splitlines()).strip()


def section(title, text):
    return f"{title}\n\n```text\n{text}\n```\n\n"


def page(command):
    whole = help_of(command, "")
    listed = re.search(r"^Commands:\n((?:  .*\n)+)", whole, re.M)
    if not listed:
        sys.exit("clebsch --help lists no commands")
    text, ops = HEAD + section("Its own help:", whole), None
    names = re.findall(r"^  (\w+)", listed[1], re.M)
    known = re.findall(r'^COMMAND\("(\w+)"', COMMANDS.read_text(), re.M)
    if names != known:  # a summary is too long for its line
        sys.exit(f"clebsch --help lists {', '.join(names)}, not {', '.join(known)}")
    for name in names:
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
    return text.rstrip() + "\n", ops[1]


def types(command, op, which):
    """Of memory, in which the op has this pass."""
    words = [command, "source", op, "--device", "cpu:interpreter", "--json", "--pass", which]
    done = subprocess.run([*words, *(f"--dtype={t}" for t in TYPES)], capture_output=True, text=True,
                          env={**os.environ, "CLB_CACHE_DIR": "off"})
    if done.returncode and f"{op} has no {which}" not in done.stderr:
        sys.exit(done.stderr)
    return " ".join(kernel["dtype"] for kernel in json.loads(done.stdout or "[]")) or "-"


def support(command, ops):
    rows = [["op", *(which.replace("_", " ") for which in PASSES)], ["---"] * 5]
    rows += [[f"`{op}`", *(types(command, op, which) for which in PASSES)] for op in ops]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def main():
    arguments = [a for a in sys.argv[1:] if a != "--check"]
    if len(arguments) != 1:
        sys.exit(__doc__)
    cli, ops = page(arguments[0])
    concepts, found = re.subn(r"(?s)(<!-- support -->\n\n).*?(\n<!-- end -->)",
                              rf"\g<1>{support(arguments[0], ops)}\2", (DOCS / "concepts.md").read_text())
    if found != 1:
        sys.exit("docs/concepts.md has no <!-- support --> with its <!-- end -->")
    for name, new in (("cli.md", cli), ("concepts.md", concepts)):
        old = (DOCS / name).read_text() if (DOCS / name).is_file() else ""
        if "--check" not in sys.argv:
            (DOCS / name).write_text(new)
        elif old != new:
            delta = difflib.unified_diff(old.splitlines(True), new.splitlines(True), name, "the command")
            sys.stdout.writelines(delta)
            sys.exit(f"docs/{name} is not what the command says: run ci/cli_docs.py")


main()
