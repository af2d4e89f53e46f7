"""Writes the measurements in README.md and docs/ from bench/results:

    python3 bench/tables [--check]

A table is between the lines "<!-- table NAME -->" and "<!-- end -->": what a function NAME of the
files beside this one returns. A single number is in
"<!-- n:NAME ARGUMENTS -->4.80<!-- / -->" (runs.py has the names), and docs/peers.svg is a chart.
--check writes nothing.  It fails if a file differs from what would be written, or if a page has a
time, a speed or a percentage that was typed by hand."""

import re
import sys

import ablation
import chart
import kernels
import models
import peers
import training
from runs import ROOT, number, read, version

FILES = (ablation, kernels, models, peers, training)
GENERATED = re.compile(r"<!-- table (\w+) -->\n.*?<!-- end -->", re.S)
NUMBER = re.compile(r"<!-- n:([^>]+) -->.*?<!-- / -->", re.S)
MEASURED = re.compile(r"\d[\d.,]*\s*(?:ms|us|ns|%|[GT]B/s|GiB|eV)(?!\w)")


def with_version(name):
    """A table, and below it the version that it is of."""
    read.clear()
    rows, of = next(getattr(f, name) for f in FILES if hasattr(f, name))(), version(*read)
    return (
        f"<!-- table {name} -->\n{rows}\n\n"
        + (f"*Clebsch {of}*\n\n" if of else "")
        + "<!-- end -->"
    )


def written(text):
    text = GENERATED.sub(lambda m: with_version(m[1]), text)
    return NUMBER.sub(lambda m: f"<!-- n:{m[1]} -->{number(m[1])}<!-- / -->", text)


def typed_by_hand(text):
    """Measurements outside of the generated tables and numbers."""
    return MEASURED.findall(NUMBER.sub("", GENERATED.sub("", text)))


def main():
    bad, check = [], "--check" in sys.argv
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    made = {page: written(page.read_text()) for page in pages}
    made[ROOT / "docs" / "peers.svg"] = chart.svg()
    for path, after in made.items():
        name = path.relative_to(ROOT)
        if not check:
            path.write_text(after)
        elif not path.exists() or path.read_text() != after:
            bad.append(f"{name} is not made of bench/results; run python3 bench/tables")
        by_hand = typed_by_hand(after) if path in pages else []
        if by_hand:
            bad.append(f"{name}: typed by hand: {', '.join(by_hand)}")
    sys.exit("\n".join(bad) if bad else 0)


main()
