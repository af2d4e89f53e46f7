"""Whole networks: energies, forces and stress of atoms, in eV and Angstrom."""
from __future__ import annotations

import ctypes as c
import dataclasses
import errno
import hashlib
import math
import os
import pathlib
import re
import tempfile
from typing import (Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Union)

import numpy as np
import numpy.typing as npt

from . import _checks, _command
from . import _structs as s
from ._context import Context
from ._library import Error
from .training import Gradient, Labels, Loss, Tensors

DTYPES = {"f64": s.F64, "f32": s.F32}
FOREIGN = (".pth", ".model", ".nqx", ".zip", ".ckpt", ".pt2")  # what `clebsch convert` reads
Path = Union[str, "os.PathLike[str]"]


@_checks.exact_keywords
def convert(source: Path, target: Path, head: Optional[str] = None,
            modality: Optional[str] = None) -> None:
    """Writes the model file `target` from a model of NequIP, SevenNet, MACE or Nequix.

    head: of a MACE model with several.  modality: of a SevenNet model trained on several kinds of
    data.  Nothing in `source` is executed."""
    chosen = [f"--{name}={_checks.text(name, value)}"
              for name, value in (("head", head), ("modality", modality)) if value is not None]
    _command.run("convert", *chosen, "--", file_name(source), file_name(target))


def file_name(path: Path) -> str:
    return _checks.text("the name of a file", os.fspath(path))


def model_file(path: Path) -> str:
    """The file that the library takes for a path or a name of a model, as an absolute path."""
    asked = file_name(path)
    if os.path.exists(asked) or not re.fullmatch("[A-Za-z0-9_-]{1,100}", asked):
        return os.path.abspath(asked)
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    folder = os.environ.get("CLB_MODELS_DIR") or os.path.join(data, "clebsch", "models")
    named = os.path.join(folder, f"{asked.lower()}.safetensors")
    if not os.path.exists(named):
        raise FileNotFoundError(errno.ENOENT, f"No such file, and no model in {folder}; `clebsch "
                                "models` lists names, and `clebsch fetch` gets a model", asked)
    return os.path.abspath(named)


@dataclasses.dataclass(frozen=True, eq=False)
class Results:
    """What Model.compute found; the arrays belong to the caller."""

    energy: float
    """eV"""
    energies: np.ndarray
    """[n]: the energy of each atom, eV"""
    forces: Optional[np.ndarray]
    """[n][3]: -dE/dpositions, eV / Angstrom; None without derivatives"""
    stress: Optional[np.ndarray]
    """[3][3]: dE/dstrain / |det(cell)|, eV / Angstrom^3, symmetric; the pressure is -trace / 3.
    None without derivatives, and where there is no cell with a volume"""
    virials: Optional[np.ndarray]
    """[n][3][3]: each atom's part of dE/dstrain, eV, symmetric: stress is their sum over the volume.
    None unless asked for"""


class _Structure(NamedTuple):
    """What the library reads and writes, and the arrays that it points to."""

    atoms: s.model_atoms
    results: s.model_results
    inputs: tuple
    energy: np.ndarray
    energies: np.ndarray
    forces: Optional[np.ndarray]
    stress: Optional[np.ndarray]
    virials: Optional[np.ndarray]

    def found(self) -> Results:
        return Results(float(self.energy[0]), self.energies, self.forces, self.stress,
                       self.virials)


@dataclasses.dataclass(frozen=True)
class Neighbours:
    """The neighbour list of a model."""

    n_edges: int
    """directed edges of the last compute, those in the skin included"""
    rebuilds: int
    """how often the list was made since the model was opened"""


def has_volume(cell: np.ndarray) -> bool:
    """Its vectors are not nearly in a plane."""
    rows = cell.tolist()  # in Python, as NumPy takes longer for so few numbers
    lengths = [math.hypot(*row) for row in rows]
    if not all(lengths):
        return False
    (a, b, c), (d, e, f), (g, h, i) = ([x / n for x in row] for row, n in zip(rows, lengths))
    # A little more than what the library wants of them.
    return abs(a * (e * i - f * h) + b * (f * g - d * i) + c * (d * h - e * g)) > 1.000001e-6


class Model:
    """A model on a device.

    path: any file that `clebsch energy` takes, or the name of a model that `clebsch fetch` got.
    device: a name that `clebsch devices` shows ("":
    $CLB_DEVICE, else the first that opens), or a Context.  dtype: "f32" (default) or "f64", of
    features, weights and arithmetic; results are f64.  knots: of the splines that replace radial
    networks; None: as many as keep forces within 1e-5 (eV/Angstrom) of the networks' (the attributes
    knots and force_error say how many, and how near by an estimate); 0: the networks.  exact: f64
    and the networks, for references.  skin (Angstrom): neighbour lists are kept until an atom has
    moved by half of it; "auto": as is fastest for each structure.  atomics: gradients are added up
    faster, but the last digits of forces differ from call to call.  head, modality: as for convert.
    block_atoms: structures are computed in blocks of at most so many atoms, which takes less memory
    and more time; 0: only those that would not fit.  trains: gradient and set_tensors can be called;
    knots are those between which radial networks, which are trained, are interpolated (None: 2048
    in f32, else 0).  d3: the functional whose dispersion D3(BJ) is added, such as "pbe", or "pbe-atm" with triples; d3_cutoff
    (Angstrom): up to which distance; 0: 60 Bohr."""

    @_checks.exact_keywords
    def __init__(self, path: Path, device: Union[str, Context] = "",
                 dtype: Optional[str] = None, knots: Optional[int] = None,
                 skin: Union[float, str] = 0.0,
                 atomics: bool = False, head: Optional[str] = None,
                 modality: Optional[str] = None, exact: bool = False,
                 block_atoms: int = 0, trains: bool = False, d3: Optional[str] = None,
                 d3_cutoff: float = 0.0) -> None:
        if _checks.flag("exact", exact) and (dtype, knots) != (None, None):
            raise ValueError("exact: it means dtype 'f64' and knots 0, so that neither is given")
        _checks.flag("trains", trains)
        self.path = file_name(path)
        self.dtype = dtype if dtype is not None else "f64" if exact else "f32"
        chosen = -1 if exact else 0 if knots is None else _checks.count("knots", knots) or -1
        chosen_skin = isinstance(skin, str) and skin == "auto"
        self.skin = skin if chosen_skin else _checks.number("skin", skin, 0)
        self.atomics = _checks.flag("atomics", atomics)
        self.head = _checks.word_or_none("head", head)
        self.modality = _checks.word_or_none("modality", modality)
        self.d3 = _checks.word_or_none("d3", d3)
        self.d3_cutoff = _checks.number("d3_cutoff", d3_cutoff, 0)
        if d3_cutoff and d3 is None:
            raise ValueError(f"d3_cutoff: {d3_cutoff!r}; it is of d3, which is None")
        options = s.model_options(dtype=_checks.choice("dtype", self.dtype, DTYPES), knots=chosen,
                                  skin=s.AUTO_SKIN if chosen_skin else self.skin,
                                  atomics=int(self.atomics),
                                  block_atoms=_checks.count("block_atoms", block_atoms),
                                  trains=int(trains),
                                  d3=None if d3 is None else self.d3.encode(),
                                  d3_cutoff=self.d3_cutoff)
        self.context = device if isinstance(device, Context) else Context(device)
        with tempfile.TemporaryDirectory() as folder:
            file = self.path
            if pathlib.Path(file).suffix in FOREIGN:
                file = os.path.join(folder, "model.safetensors")
                convert(self.path, file, head, modality)
            elif head is not None or modality is not None:
                raise Error(f"{self.path}: its {'head' if modality is None else 'modality'} was "
                            f"chosen when it was converted")
            self._handle = self.context._make("model_open", "model", os.fsencode(file),
                                              c.byref(options))
        info = s.model_info()
        self.context._call("model_describe", c.byref(info), handle=self._handle)
        self.architecture: str = info.architecture.decode()
        self.r_max: float = info.r_max
        self.n_layers, self.l_max, self.parameters = info.n_layers, info.l_max, info.parameters
        self.knots, self.force_error = info.knots, info.table_force_error
        self.table_error, self.table_slope_error = info.table_error, info.table_slope_error
        self.symbols = [symbol.decode() for symbol in info.symbols[:info.n_species]]
        self.numbers = list(info.atomic_numbers[:info.n_species])
        self._tensors = Tensors(self) if trains else None
        self._species = np.full(max(self.numbers) + 1, -1, np.int32)
        self._last = np.zeros(0, int), np.zeros(0, np.int32)
        self._moving: Any = None  # atoms of which the last forces are, if they move on the device
        for number in self.numbers:
            self._species[number] = self.context._lib.clb_model_species(self._handle, number)

    def species(self, numbers: npt.ArrayLike) -> np.ndarray:
        """Indices of the model's elements, from atomic numbers."""
        return self._species_of(numbers).copy()

    def _species_of(self, numbers):
        """Those of the last call, if the atoms are the same: in dynamics they are."""
        known_numbers, species = self._last
        if type(numbers) is np.ndarray and numbers.dtype.kind in "iu" and \
                np.array_equal(numbers, known_numbers):
            return species
        whole = _checks.whole("numbers", numbers)
        known = (whole >= 0) & (whole < len(self._species))
        species = np.where(known, self._species[np.where(known, whole, 0)], -1).astype(np.int32)
        if species.size and species.min() < 0:
            lacking = sorted(set(whole[species < 0].tolist()))
            raise Error(f"{self.path} has no element of atomic number "
                        f"{', '.join(map(str, lacking))}; it knows {' '.join(self.symbols)}")
        self._last = whole, species
        return species

    @_checks.exact_keywords
    def compute(self, numbers: npt.ArrayLike, positions: npt.ArrayLike,
                cell: Optional[npt.ArrayLike] = None, periodic: Any = None,
                derivatives: bool = True, virials: bool = False, charge: int = 0,
                spin: int = 1) -> Results:
        """Energy, forces and stress.

        numbers: atomic numbers [n].  positions: [n][3].  cell: rows are lattice vectors.
        periodic: along each of the three, or all; None: all if there is a cell.
        derivatives=False: energies alone, which takes less time.  virials: each atom's part of
        stress is wanted, too.  charge: of all atoms, in e.  spin: the multiplicity.  Models that
        do not read these two ignore them."""
        given = self._structure(derivatives, numbers, positions, cell, periodic, charge, spin,
                                virials)
        self._moving = None
        self.context._call("model_compute", c.byref(given.atoms), c.byref(given.results),
                           handle=self._handle)
        return given.found()

    @_checks.exact_keywords
    def compute_many(self, structures: Iterable[Sequence[Any]],
                     derivatives: bool = True) -> List[Results]:
        """The same for many structures, each (numbers, positions), and then, if need be, cell,
        periodic, charge and spin as of compute.

        Small structures are computed together, which takes as long as one structure of as many
        atoms."""
        given = self._structures(derivatives, structures)
        atoms = (s.model_atoms * len(given))(*(one.atoms for one in given))
        results = (s.model_results * len(given))(*(one.results for one in given))
        self._moving = None
        self.context._call("model_compute_many", len(given), atoms, results, handle=self._handle)
        return [one.found() for one in given]

    def _structures(self, derivatives, structures):
        given = []
        for i, structure in enumerate(structures):
            if not 2 <= len(structure) <= 6:
                raise ValueError(f"structures: number {i} has {len(structure)} entries; it must be "
                                 f"(numbers, positions), with cell, periodic, charge and spin if "
                                 f"need be")
            try:
                given.append(self._structure(derivatives, *structure))
            except (Error, TypeError, ValueError) as error:
                raise type(error)(f"structure {i}: {error}") from None
        return given

    def _training(self):
        if self._tensors is None:
            raise Error(f"{self.path}: the model was opened without trains=True")
        return self._tensors

    @_checks.exact_keywords
    def gradient(self, structures: Iterable[Sequence[Any]], labels: Sequence[Labels],
                 loss: Loss = Loss()) -> Gradient:
        """The loss of structures, as of compute_many, with labels, all of them in one batch, and its
        gradient by each tensor of the model."""
        return self._training().gradient(self._structures(False, structures), list(labels), loss)

    def tensors(self) -> Dict[str, np.ndarray]:
        """The numbers of a model that trains, by the names and shapes of its file."""
        return self._training().read()

    def set_tensors(self, tensors: Mapping[str, npt.ArrayLike]) -> None:
        """Other numbers for some of them, from now on."""
        self._training().write(tensors)

    @_checks.exact_keywords
    def hessian(self, numbers: npt.ArrayLike, positions: npt.ArrayLike,
                cell: Optional[npt.ArrayLike] = None, periodic: Any = None,
                displacement: float = 0.01) -> np.ndarray:
        """[n][3][n][3]: second derivatives of the energy, eV / Angstrom^2.

        Differences of forces of atoms displaced by `displacement` (Angstrom) to both sides, made
        symmetric; many are computed together.  Small differences need precision: dtype="f64".  The
        other arguments are those of compute."""
        step = _checks.number("displacement", displacement, 1e-4)
        places = np.array(_checks.reals("positions", positions, (len(self.species(numbers)), 3)))

        def moved():
            for i in np.ndindex(places.shape):
                for sign in (1, -1):
                    other = places.copy()
                    other[i] += sign * step
                    yield numbers, other, cell, periodic

        forces = [found.forces for found in self.compute_many(moved())]
        rows = [(minus - plus) / (2 * step) for plus, minus in zip(forces[::2], forces[1::2])]
        matrix = np.array(rows).reshape(places.size, places.size)
        return ((matrix + matrix.T) / 2).reshape(places.shape * 2)

    def _structure(self, derivatives, numbers, positions, cell=None, periodic=None, charge=0,
                   spin=1, virials=False):
        species = self._species_of(numbers)
        n, whole = len(species), _checks.flag("derivatives", derivatives)
        places = _checks.reals("positions", positions, (n, 3))
        box = None if cell is None else _checks.reals("cell", cell, (3, 3))
        along = _checks.flags("periodic", cell is not None if periodic is None else periodic)
        if any(along) and box is None:
            raise ValueError(f"periodic: {periodic!r}; without a cell nothing is periodic")
        energy, energies = np.full(1, np.nan), np.full(n, np.nan)
        forces = np.full((n, 3), np.nan) if whole else None
        stress = np.full((3, 3), np.nan) if whole and box is not None and has_volume(box) else None
        atoms = s.model_atoms(n, *map(_pointer, (species, places, box)), (c.c_int * 3)(*along),
                              _checks.count("charge", charge, -2**31), _checks.count("spin", spin))
        parts = np.full((n, 3, 3), np.nan) if _checks.flag("virials", virials) else None
        results = s.model_results(*map(_pointer, (energy, energies, forces, stress, parts)))
        return _Structure(atoms, results, (species, places, box), energy, energies, forces, stress,
                          parts)

    def neighbours(self) -> Neighbours:
        """Of the last compute."""
        found = s.model_neighbours()
        self.context._call("model_last_neighbours", c.byref(found), handle=self._handle)
        return Neighbours(found.n_edges, found.rebuilds)

    def __repr__(self) -> str:
        return (f"<clebsch.Model {self.path}: {self.architecture} on {self.context.name}, dtype "
                f"{self.dtype}, knots {self.knots}, skin "
                f"{self.skin if isinstance(self.skin, str) else format(self.skin, 'g')}>")

    def __reduce__(self):
        raise TypeError("a clebsch.Model cannot be copied or pickled: its weights are on a device")


def _pointer(array):
    return None if array is None else array.__array_interface__["data"][0]


def sha256(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for part in iter(lambda: file.read(1 << 20), b""):
            digest.update(part)
    return digest.hexdigest()


def file_state(path: str) -> tuple:
    """What tells that a file has changed."""
    about = os.stat(path)
    return about.st_size, about.st_mtime_ns


def reopen(kind, settings, path, state):
    """For pickle: kind(**settings), of a file that is still the same."""
    if file_state(path) != state:
        raise Error(f"{path} has changed since it was opened")
    return kind(**settings)
