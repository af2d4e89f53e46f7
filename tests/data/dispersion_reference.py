"""dispersion_reference.py - prints dispersion_reference.json: energies, forces (eV, Angstrom) and
virials of D3(BJ) by dftd3 1.7.0, for tests/models/test_dispersion.c.

    pip install dftd3==1.7.0 numpy==2.4.6
    python3 tests/data/dispersion_reference.py > tests/data/dispersion_reference.json"""
import json

import numpy as np
from dftd3.interface import DispersionModel, RationalDampingParam

BOHR, HARTREE = 0.529177210903, 27.211386245988
random = np.random.default_rng(20)


def places(n, cell, nearest):
    """Random ones in a cell, of which no two are near each other or their images."""
    shifts = np.array([(i, j, k) for i in (-1, 0, 1) for j in (-1, 0, 1) for k in (-1, 0, 1)]) @ cell
    x = []
    while len(x) < n:
        new = random.random(3) @ cell
        if all(np.linalg.norm(new - y + shifts, axis=1).min() > nearest for y in x):
            x.append(new)
    return np.array(x)


def case(numbers, x, cell=None, pbc=(True, True, True), functional="pbe", cutoffs=(60, 40), atm=False):
    numbers, x = np.array(numbers), np.round(np.array(x, float), 6)
    cell = None if cell is None else np.array(cell, float)
    if cell is None:
        pbc = (False, False, False)
    model = DispersionModel(numbers, x / BOHR, None if cell is None else cell / BOHR, np.array(pbc))
    model.set_realspace_cutoff(cutoffs[0], cutoffs[1], cutoffs[1])
    d = model.get_dispersion(RationalDampingParam(method=functional, atm=atm), grad=True)
    return {"functional": functional, "cutoffs": [c * BOHR for c in cutoffs], "three_body": atm,
            "Z": numbers.tolist(), "pos": x.tolist(), "cell": None if cell is None else cell.tolist(),
            "pbc": list(pbc), "E": d["energy"] * HARTREE,
            "F": (-d["gradient"] * HARTREE / BOHR).tolist(),
            "virial": (d["virial"] * HARTREE).tolist()}


skew = np.array([[7.0, 0, 0], [2.1, 6.3, 0], [-1.4, 0.7, 7.7]])
thin = np.array([[2.6, 0, 0], [0.4, 9.1, 0], [0.3, -0.8, 3.1]])
lean = np.array([[11.0, 0, 0], [5.1, 10.4, 0], [-4.4, 3.7, 10.1]])
ring = [(6, 1.39 * np.cos(k * np.pi / 3), 1.39 * np.sin(k * np.pi / 3), 0.0) for k in range(6)]
ring += [(1, 2.48 * np.cos(k * np.pi / 3), 2.48 * np.sin(k * np.pi / 3), 0.1 * k) for k in range(6)]
water = [(8, 0.1, 0.2, 4.5), (1, 0.9, 0.2, 3.9), (1, -0.7, 0.3, 4.0)]
both = ring + water
cases = {
    "molecules": case([a[0] for a in both], [a[1:] for a in both]),
    "atom": case([79], [[1, 2, 3]]),
    "far": case([18, 18, 18], [[0, 0, 0], [31.7, 0, 0], [31.7, 31.8, 0]]),
    "skew": case([6, 8, 1, 17, 26, 92, 83], places(7, skew, 1.6) + 3 * skew[0], skew, functional="r2scan"),
    "thin": case([14, 8, 1], places(3, thin, 1.3), thin, functional="b3lyp", cutoffs=(25, 20)),
    "slab": case([78, 6, 8, 1, 1], places(5, skew, 1.2) - skew[1], skew, (True, False, True), cutoffs=(30, 30)),
    "chain": case([6, 1, 1], [[1.2, 3, 1.3], [1.2, 4, 1.6], [1.2, 2, 1.7]], thin, (True, False, False)),
    "copper": case([29], [[0.3, 0.4, 0.5]], [[0, 1.8, 1.8], [1.8, 0, 1.8], [1.8, 1.8, 0]]),
    "elements": case(range(1, 95), places(94, np.eye(3) * 13.0, 1.9)),
    "large": case(random.choice([1, 6, 8, 17, 47], 61), places(61, lean, 1.1), lean, cutoffs=(17, 13)),
    "few": case([8, 1, 1, 6, 8], places(5, skew * 0.9, 1.1), skew * 0.9, cutoffs=(16, 12)),
    "triples": case([a[0] for a in both], [a[1:] for a in both], atm=True),
    "triples in a cell": case([6, 8, 1, 17, 92], places(5, skew * 0.9, 1.6), skew * 0.9, cutoffs=(15, 11),
                              atm=True),
    "triples of images": case([14, 8], places(2, thin, 1.3), thin, (True, False, True), functional="b3lyp",
                              cutoffs=(18, 14), atm=True),
}
print("{" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in cases.items()) + "}")
