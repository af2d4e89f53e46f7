"""Whole networks: energies, forces and stress of atoms, in eV and Angstrom."""
import ctypes as c
import os
import pathlib
import tempfile
import types

import numpy as np

from . import _command
from . import _structs as s
from ._context import Context
from ._library import Error

DTYPES = {"f64": s.F64, "f32": s.F32}
FOREIGN = (".pth", ".model", ".nqx")  # what `clebsch convert` reads


def convert(source, target, head=None, modality=None):
    """Writes the model file `target` from a model of NequIP, SevenNet, MACE or Nequix.

    head: of a MACE model with several.  modality: of a SevenNet model trained on several kinds of
    data.  Nothing in `source` is executed."""
    chosen = [f"--{name}={value}" for name, value in (("head", head), ("modality", modality))
              if value is not None]
    _command.run("convert", *chosen, "--", os.fspath(source), os.fspath(target))


def _array(values, shape, what):
    array = np.ascontiguousarray(values, np.float64)
    if array.shape != shape:
        raise ValueError(f"{what}: an array of shape {array.shape}; it must be {shape}")
    return array


class Model:
    """A model on a device.

    path: any file that `clebsch energy` takes.  device: a name that `clebsch devices` shows ("":
    $CLB_DEVICE, else the first that opens), or a Context.  dtype: "f64" or "f32", of features,
    weights and arithmetic; results are f64.  knots: 0, or the number of knots of splines that
    replace radial networks.  skin (Angstrom): neighbour lists are kept until an atom has moved by
    half of it.  atomics: gradients are added up faster, but the last digits of forces differ from
    call to call.  head, modality: as for convert."""

    def __init__(self, path, device="", dtype="f64", knots=0, skin=0.0, atomics=False, head=None,
                 modality=None):
        if dtype not in DTYPES:
            raise ValueError(f"dtype: {dtype!r}; it must be 'f64' or 'f32'")
        self.path = os.fspath(path)
        self.context = device if isinstance(device, Context) else Context(device)
        options = s.model_options(precision=DTYPES[dtype], knots=knots, skin=skin,
                                  atomics=int(atomics))
        with tempfile.TemporaryDirectory() as folder:
            file = self.path
            if pathlib.Path(file).suffix in FOREIGN:
                file = os.path.join(folder, "model.safetensors")
                convert(self.path, file, head, modality)
            elif head is not None or modality is not None:
                raise Error(f"{self.path}: its {'head' if modality is None else 'modality'} was "
                            f"chosen when it was converted")
            self._handle = self.context.make("model_open", "model", file.encode(), c.byref(options))
        info = s.model_info()
        self.context.call("model_describe", c.byref(info), handle=self._handle)
        self.architecture, self.r_max = info.architecture.decode(), info.r_max
        self.n_layers, self.l_max, self.parameters = info.n_layers, info.l_max, info.parameters
        self.table_error, self.table_slope_error = info.table_error, info.table_slope_error
        self.symbols = [symbol.decode() for symbol in info.symbols[:info.n_species]]
        self.numbers = list(info.atomic_numbers[:info.n_species])
        self._species = np.full(max(self.numbers) + 1, -1, np.int32)
        for number in self.numbers:
            self._species[number] = self.context.lib.clb_model_species(self._handle, number)

    def species(self, numbers):
        """Indices of the model's elements, from atomic numbers."""
        numbers = np.asarray(numbers, np.int64).ravel()
        known = (numbers >= 0) & (numbers < len(self._species))
        species = np.where(known, self._species[np.where(known, numbers, 0)], -1).astype(np.int32)
        if species.size and species.min() < 0:
            lacking = sorted(set(numbers[species < 0].tolist()))
            raise Error(f"{self.path} has no element of atomic number "
                        f"{', '.join(map(str, lacking))}; it knows {' '.join(self.symbols)}")
        return species

    def compute(self, numbers, positions, cell=None, periodic=True, derivatives=True):
        """energy (eV), energies[n], forces[n][3] (eV / Angstrom), stress[3][3] (eV / Angstrom^3).

        numbers: atomic numbers [n].  positions: [n][3].  cell: rows are lattice vectors; None:
        nothing is periodic.  periodic: of each of the three, or of all.  Stress is dE/dstrain /
        volume and None unless all three directions are periodic.  derivatives=False: energies
        alone, the rest None."""
        species = self.species(numbers)
        n = len(species)
        positions = _array(positions, (n, 3), "positions")
        periodic = np.broadcast_to(np.asarray(periodic, bool) & (cell is not None), 3)
        cell = _array(cell, (3, 3), "cell") if any(periodic) else None
        energy, energies = np.full(1, np.nan), np.full(n, np.nan)
        forces = np.full((n, 3), np.nan) if derivatives else None
        stress = np.full((3, 3), np.nan) if derivatives and all(periodic) else None
        atoms = s.model_atoms(n, *map(_pointer, (species, positions, cell)),
                              (c.c_int * 3)(*map(int, periodic)))
        results = s.model_results(*map(_pointer, (energy, energies, forces, stress)))
        self.context.call("model_compute", c.byref(atoms), c.byref(results), handle=self._handle)
        return types.SimpleNamespace(energy=float(energy[0]), energies=energies, forces=forces,
                                     stress=stress)

    def neighbours(self):
        """Of the last compute: n_edges, and the number of rebuilds since the model was opened."""
        found = s.model_neighbours()
        self.context.call("model_last_neighbours", c.byref(found), handle=self._handle)
        return types.SimpleNamespace(n_edges=found.n_edges, rebuilds=found.rebuilds)

    def __repr__(self):
        return f"<clebsch.Model {self.path}: {self.architecture} on {self.context.name}>"

    def __reduce__(self):
        raise TypeError("a clebsch.Model cannot be copied or pickled: its weights are on a device")


def _pointer(array):
    return None if array is None else array.ctypes.data


def file_state(path):
    """What tells that a file has changed."""
    about = os.stat(path)
    return about.st_size, about.st_mtime_ns


def reopen(kind, settings, path, state):
    """For pickle: kind(**settings), of a file that is still the same."""
    if file_state(path) != state:
        raise Error(f"{path} has changed since it was opened")
    return kind(**settings)
