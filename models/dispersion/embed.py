"""Writes tables.txt, which make_tables.py describes, as C:  python3 embed.py tables.txt OUT.c"""
import pathlib
import sys

DIGITS = {c: i for i, c in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")}
ELEMENTS = 94


def number(digits):
    n = 0
    for c in digits:
        n = n << 6 | DIGITS[c]
    return n


def rows(values, text=str):
    cut = [", ".join(map(text, values[i:i + 16])) for i in range(0, len(values), 16)]
    return "{" + ",\n  ".join(cut) + "}"


def main():
    lines = [x for x in pathlib.Path(sys.argv[1]).read_text().splitlines() if x[0] != "#"]
    elements = [x.split()[1:] for x in lines[:ELEMENTS]]
    functionals = [x.split()[1:] for x in lines[ELEMENTS:] if x.startswith("functional ")]
    vdw = [x.split()[1] for x in lines[ELEMENTS:] if x.startswith("radii ")]
    c6 = [x for x in lines[ELEMENTS:] if " " not in x]
    first, systems = [0, 0], []
    for _, _, *numbers in elements:
        systems += numbers
        first.append(len(systems))
    assert [len(x) for x in c6] == [5 * (i + 1) for i in range(len(systems))]
    packed = [number(x[i:i + 5]) for x in c6 for i in range(0, len(x), 5)]
    assert [len(x) for x in vdw] == [3 * (i + 1) for i in range(ELEMENTS)]
    pairs = [number(x[i:i + 3]) for x in vdw for i in range(0, len(x), 3)]
    named = ",\n  ".join('{"%s", %s, %s, %s, %s}' % tuple(x) for x in functionals)
    pathlib.Path(sys.argv[2]).write_text(f"""#include "models/dispersion/d3_tables.h"

const double clb_d3_radius[CLB_D3_ELEMENTS + 1] = {rows(["0"] + [x[0] for x in elements])};
const double clb_d3_r4r2[CLB_D3_ELEMENTS + 1] = {rows(["0"] + [x[1] for x in elements])};
const int clb_d3_first[CLB_D3_ELEMENTS + 2] = {rows(first)};
const double clb_d3_number[] = {rows(systems)};
const uint32_t clb_d3_c6[] = {rows(packed)};
const uint16_t clb_d3_vdw[] = {rows(pairs)};
const clb_d3_functional clb_d3_functionals[] = {{
  {named},
  {{0, 0, 0, 0, 0}}}};
""")


main()
