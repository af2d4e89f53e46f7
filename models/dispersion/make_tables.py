"""Writes tables.txt: the numbers of the dispersion model D3, as S. Grimme, J. Antony, S. Ehrlich and
H. Krieg (10.1063/1.3382344), S. Grimme, S. Ehrlich and L. Goerigk (10.1002/jcc.21759) and, for
actinides, L. Wittmann, I. Gordiy, M. Friede, B. Helmich-Paris, S. Grimme, A. Hansen and M. Bursch
(10.1039/D4CP01514B) published them.

  pip download --no-deps tad-dftd3==0.7.0 tad-mctc==0.11.3 torch-dftd==0.5.3
  python3 make_tables.py *.whl > tables.txt

Coordination numbers, C6 and r4/r2 are read from tad-dftd3, covalent radii and van der Waals radii of
pairs from tad-mctc (both Apache-2.0), damping parameters from torch-dftd (MIT), but for four, which are
from their papers. No code of these packages is run or copied.

tables.txt has, after comments,
  - a line an element, of those from H to Pu: symbol, covalent radius (Angstrom), <r^4>/<r^2> (Bohr^2),
    then the coordination numbers of its reference systems;
  - a line a functional: `functional`, its name, s6, s8, a1, a2 (Bohr);
  - a line an element: `radii`, its van der Waals radius with each of the elements up to itself, in 1e-4
    Angstrom, as three digits of base 64 each;
  - a line a reference system, in the order of elements: its C6 with each of the systems up to
    itself, in 1e-4 Hartree Bohr^6, as five digits of base 64 each (A-Z a-z 0-9 + /)."""
import array
import ast
import math
import re
import sys
import zipfile

ELEMENTS = 94
BOHR = 0.529177210903
DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
PAPERS = {  # s6, s8, a1, a2
    "r2scan": (1.0, 0.78981345, 0.49484001, 5.73083694),  # 10.1063/5.0041008
    "wb97m": (1.0, 0.3908, 0.566, 3.128),                 # 10.1021/acs.jctc.8b00842
    "rscan": (1.0, 1.08859014, 0.47023427, 5.73408312),    # the same
    "b973c": (1.0, 1.50, 0.37, 4.10),                     # 10.1063/1.5012601
}


def numbers(text, name):
    """The list of numbers that begins after a name; comments are left out."""
    body = text[text.index(name):]
    body = body[body.index("["):]
    end = re.search(r"^\s*\]", body, re.M).end()
    return ast.literal_eval(re.sub(r"#.*", "", body[:end]).strip())


def functionals(text):
    """Of the branch for this damping: tests of names, and assignments below them."""
    found, names, s6 = {}, [], 1.0
    body = text[text.index('damping == "bj"'):]
    body = body[:body.index("elif damping ==", 20)]
    for line in body.splitlines():
        test = re.match(r"\s*(?:el)?if xc == \"([^\"]+)\"", line)
        value = re.match(r"\s*(s6|rs6|s18|rs18) = ([\d.e+-]+)$", line)
        if test:
            names = [re.sub(r"[^a-z0-9]", "", test[1].lower())]
            found[names[0]] = {"s6": 1.0}
        elif value and names:
            found[names[0]][value[1]] = float(value[2])
    return {k: (v["s6"], v["s18"], v["rs6"], v["rs18"]) for k, v in found.items()
            if "rs18" in v and k != "hf3cv"}  # its numbers there are not those of other programs


def packed(x, digits=5):
    n = round(x * 1e4)
    assert abs(n - x * 1e4) < 1e-5 and n < 64**digits
    return "".join(DIGITS[n >> 6 * i & 63] for i in reversed(range(digits)))


def main():
    files = {}
    for path in sys.argv[1:]:
        wheel = zipfile.ZipFile(path)
        files |= {n: wheel for n in wheel.namelist()}
    text = {n: w.read(n).decode() for n, w in files.items() if n.endswith(".py")}
    cn = [[x for x in row if x >= 0] for row in numbers(text["tad_dftd3/reference.py"], "torch.tensor(")]
    radius = numbers(text["tad_mctc/data/radii.py"], "_COV_2009")
    r4r2 = numbers(text["tad_dftd3/data/r4r2.py"], "_r4_over_r2")
    symbols = re.findall(r'"([A-Z][a-z]?)":\s*(\d+)', text["tad_mctc/data/pse.py"])
    symbol = {int(z): s for s, z in symbols}
    tensor = zipfile.ZipFile(files["tad_dftd3/reference-c6.pt"].open("tad_dftd3/reference-c6.pt"))
    c6 = array.array("d", tensor.read("archive/data/0"))
    side, most = len(cn), 7  # C6 of elements z, y and their systems i, j: [side][side][most][most]
    tensor = zipfile.ZipFile(files["tad_mctc/data/vdw-pairwise.pt"].open("tad_mctc/data/vdw-pairwise.pt"))
    vdw = array.array("d", tensor.read("vdw-pairwise/data/0"))  # in Bohr, from element 0 on
    most_z = math.isqrt(len(vdw))
    print("# The dispersion model D3: made by make_tables.py, which says what the lines are, from "
          "tad-dftd3 0.7.0,\n# tad-mctc 0.11.3 (Apache-2.0) and torch-dftd 0.5.3 (MIT).")
    for z in range(1, ELEMENTS + 1):
        print(symbol[z], f"{radius[z]:g}", f"{r4r2[z]:g}", *(f"{x:g}" for x in cn[z]))
    for name, row in sorted((functionals(text["torch_dftd/dftd3_xc_params.py"]) | PAPERS).items()):
        print("functional", name, *(f"{x:g}" if float(f"{x:g}") == x else repr(x) for x in row))
    for z in range(1, ELEMENTS + 1):
        print("radii", "".join(packed(vdw[z * most_z + y] * BOHR, 3) for y in range(1, z + 1)))
    systems = [(z, i) for z in range(1, ELEMENTS + 1) for i in range(len(cn[z]))]
    for at, (z, i) in enumerate(systems):
        print("".join(packed(c6[((z * side + y) * most + i) * most + j]) for y, j in systems[:at + 1]))


main()
