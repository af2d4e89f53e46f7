"""ASE: atoms.calc = clebsch.ase.Calculator("model.safetensors"), and dynamics on the device."""
from __future__ import annotations

import ctypes as c
import math
from typing import Any, Dict, Optional, Union

import numpy as np
from ase import Atoms, units
from ase.calculators.calculator import (Calculator as Base, PropertyNotImplementedError,
                                        all_changes)
from ase.data import chemical_symbols
from ase.md.md import MolecularDynamics
from ase.stress import full_3x3_to_voigt_6_stress

from . import _checks
from . import _structs as s
from ._context import Context
from ._library import Error
from ._structs import VERSION
from .model import Model, Path, file_state, has_volume, model_file, reopen, sha256


class Calculator(Base):
    """Energy, forces, stress and energies of atoms; the arguments are those of clebsch.Model.

    Every computation gives all of them but stresses of atoms, which are computed when they are asked
    for; stress and stresses where the cell has a volume.  With a `skin`
    (Angstrom), neighbour lists are kept until an atom has moved by half of it.  Copies and unpickled
    calculators open the model's file again; it must not have changed.

    parameters, which ase.db and trajectories keep: the model's file and its SHA-256, the device,
    the settings, and the version of Clebsch."""

    name = "clebsch"
    implemented_properties = ["energy", "free_energy", "energies", "forces", "stress", "stresses"]
    ignored_changes = {"initial_charges", "initial_magmoms"}

    @_checks.exact_keywords
    def __init__(self, model: Path, device: Union[str, Context] = "",
                 dtype: Optional[str] = None, knots: Optional[int] = None,
                 skin: Union[float, str] = "auto",
                 atomics: bool = False, head: Optional[str] = None,
                 modality: Optional[str] = None, exact: bool = False, d3: Optional[str] = None,
                 d3_cutoff: float = 0.0) -> None:
        super().__init__()
        file = model_file(model)
        self._settings = {"model": file, "device": device, "dtype": dtype, "knots": knots,
                          "skin": skin, "atomics": atomics, "head": head, "modality": modality,
                          "exact": exact, "d3": d3, "d3_cutoff": d3_cutoff}
        self._state = file_state(file)
        self.model = Model(model, device, dtype, knots, skin, atomics, head, modality, exact, d3=d3,
                           d3_cutoff=d3_cutoff)
        self.parameters.update(
            model=file, model_sha256=sha256(file), architecture=self.model.architecture,
            device=self.model.context.name, device_description=self.model.context.description,
            dtype=self.model.dtype, knots=self.model.knots, skin=self.model.skin,
            atomics=self.model.atomics, head=head, modality=modality, d3=d3, d3_cutoff=d3_cutoff,
            version=VERSION)

    def set(self, **keywords):
        """Refused: the model is open, with the settings it was opened with."""
        if keywords:
            raise TypeError(f"{', '.join(keywords)}: a calculator's settings are those with which "
                            "its model was opened; make a new one")
        return {}

    def calculate(self, atoms=None, properties=("energy",), system_changes=all_changes):
        super().calculate(atoms, properties, system_changes)
        self.results = {}  # those of other atoms, if what follows fails
        a = self.atoms
        if {"stress", "stresses"} & set(properties) and not has_volume(a.cell.array):
            raise PropertyNotImplementedError(
                "stress is dE/dstrain / volume, and the cell has no volume: "
                f"{a.cell.array.tolist()}; a slab needs a third vector, its thickness with vacuum")
        self._check_elements(a)
        charge, spin = _charge_and_spin(a)
        found = self.model.compute(a.numbers, a.positions, a.cell.array, a.pbc,
                                   virials="stresses" in properties, charge=charge, spin=spin)
        self.results = {"energies": found.energies,
                        **_results(found.energy, found.forces, found.stress)}
        if found.virials is not None:
            self.results["stresses"] = full_3x3_to_voigt_6_stress(found.virials) / a.cell.volume

    def check_state(self, atoms, tol=1e-15):
        changes = super().check_state(atoms, tol)
        if self.atoms is not None and _charge_and_spin(atoms) != _charge_and_spin(self.atoms):
            changes.append("initial_charges")
        return changes

    def _check_elements(self, atoms):
        lacking = sorted(set(atoms.numbers.tolist()) - set(self.model.numbers))
        if lacking:
            raise Error(f"{self.model.path} does not know {', '.join(map(_symbol, lacking))}; it "
                        f"knows {', '.join(self.model.symbols)}")

    def __repr__(self) -> str:
        return repr(self.model).replace("clebsch.Model", "clebsch.ase.Calculator")

    def __reduce__(self):
        return reopen, (type(self), self._settings, self._settings["model"], self._state)


def _charge_and_spin(atoms):
    return atoms.info.get("charge", 0), atoms.info.get("spin", 1)


def _results(energy, forces, stress):
    found = {"energy": energy, "free_energy": energy, "forces": forces}
    return found if stress is None else {**found, "stress": full_3x3_to_voigt_6_stress(stress)}


def _symbol(number):
    return chemical_symbols[number] if 0 < number < len(chemical_symbols) else str(number)


# ---- dynamics ----

def _rows(array):
    return array.ctypes.data_as(c.POINTER(c.c_double))


def _move(grow=1, keep=1, grow_again=1, **members):
    return s.dynamics_move(grow=grow, keep=keep, grow_again=grow_again, **members)


class _Moving:
    """Atoms on the device, in ASE's units, in which accelerations are forces / masses."""

    def __init__(self, atoms, calculator):
        calculator._check_elements(atoms)
        self.model, self.cell = calculator.model, atoms.cell.array
        self.has_stress = has_volume(self.cell)
        n = len(atoms)
        positions, velocities, masses = (np.ascontiguousarray(x, np.float64) for x in (
            atoms.positions, atoms.get_velocities(), atoms.get_masses()))
        given = self.model._structure(False, atoms.numbers, positions,
                                      self.cell if self.cell.any() else None, atoms.pbc,
                                      *_charge_and_spin(atoms))
        self.handle = self.model.context._make(
            "dynamics_create", "dynamics", c.byref(given.atoms), _rows(masses), _rows(velocities),
            None, handle=self.model._handle)
        self.rows = [np.empty((n, 3)) for _ in range(3)]
        self.view = s.dynamics_view()
        self.compute()

    def _call(self, name, *arguments):
        self.model.context._call(f"dynamics_{name}", *arguments, handle=self.handle)

    def compute(self):
        """Forces where the atoms are."""
        self._call("compute", None, int(self.has_stress))
        self.model._moving = self

    def _hold(self):
        """Forces are not those of other atoms."""
        if self.model._moving is not self:
            self.compute()

    def move(self, move):
        self._hold()
        self._call("run", c.byref(move))

    def see(self):
        self._hold()
        self._call("see", c.byref(self.view))
        return self.view

    def read(self):
        """Positions, velocities, forces."""
        self._call("read", *map(_rows, self.rows), None)
        return self.rows


class VelocityVerlet(MolecularDynamics):
    """ASE's class of this name, of atoms that move on the device: positions, velocities and forces
    stay there, and `atoms` has them, with results, whenever an observer, trajectory or logfile is
    due, and at the end of `run`.  atoms.calc is a clebsch.ase.Calculator; constraints are refused.

    timestep: in ASE's units.  keywords: those of ASE's MolecularDynamics."""

    def __init__(self, atoms: Atoms, timestep: float, **keywords: Any) -> None:
        if not isinstance(atoms.calc, Calculator):
            raise TypeError(f"atoms.calc is {atoms.calc!r}; it must be a clebsch.ase.Calculator")
        self._check_free(atoms)
        _checks.number("timestep", timestep)
        super().__init__(atoms, timestep, **keywords)
        self._moving: Optional[_Moving] = None
        self._known: tuple = ()
        self._steps = 0  # of which random numbers are functions

    @staticmethod
    def _check_free(atoms):
        if atoms.constraints:
            raise ValueError("atoms.constraints: on the device all atoms move freely; the "
                             "dynamics of ase.md can hold some")

    def _state(self):
        a = self.atoms
        return (a.positions, a.get_momenta(), a.cell.array, a.pbc, a.numbers, a.get_masses(),
                _charge_and_spin(a), a.calc.model)

    def _start(self):
        """Puts the atoms on the device, unless they are there, as they were when they were read."""
        self._check_free(self.atoms)
        state = self._state()
        same = self._known and state[-1] is self._known[-1] and all(
            map(np.array_equal, state[:-1], self._known[:-1]))
        if not same:
            self._moving = _Moving(self.atoms, self.atoms.calc)
            self._fetch()

    def _fetch(self):
        atoms, moving = self.atoms, self._moving
        view = moving.see()
        positions, velocities, forces = moving.read()
        atoms.positions[:] = positions
        atoms.set_velocities(velocities)
        calculator = atoms.calc
        calculator.atoms = atoms.copy()
        calculator.results = _results(
            view.energy, forces.copy(),
            np.array(view.stress).reshape(3, 3) if moving.has_stress else None)
        self._seen(view)
        self._known = tuple(np.copy(x) for x in self._state()[:-1]) + (calculator.model,)

    def _seen(self, view):
        pass

    def _first_half(self):
        self._moving.move(_move(kick=self.dt / 2, reach=self.dt))

    def _advance(self):
        self._first_half()
        self._moving.compute()
        self._moving.move(_move(kick=self.dt / 2))
        self._steps += 1

    def step(self, forces: Any = None) -> np.ndarray:
        """One step, after which atoms have their new places; `run` is faster."""
        self._start()
        self._advance()
        self._fetch()
        return self.atoms.calc.results["forces"].copy()

    def _is_due(self):
        return any(self.nsteps % interval == 0 if interval > 0 else self.nsteps == -interval
                   for _, interval, *_ in self.observers)

    def run(self, steps: int = 50) -> bool:
        """So many steps; True."""
        self.max_steps = self.nsteps + steps
        self._start()
        if self.nsteps == 0:
            self.call_observers()
        while self.nsteps < self.max_steps:
            self._start()  # an observer may have changed the atoms
            due = False
            while not due:
                self._advance()
                self.nsteps += 1
                due = self._is_due() or self.nsteps == self.max_steps
            self._fetch()
            self.call_observers()
        return True


class _Thermostat(VelocityVerlet):
    """heat: the energy that it has taken from the atoms so far, eV; their energy and it together
    are conserved."""

    _told: tuple = ()

    def __init__(self, atoms, timestep, temperature_K, seed, **keywords):
        super().__init__(atoms, timestep, **keywords)
        self.temperature_K = _checks.number("temperature_K", temperature_K, 0)
        self.seed = _checks.count("seed", seed, 0, 2**64 - 1)
        self.heat = 0.0

    def _seen(self, view):
        self.heat += view.heat

    def todict(self) -> Dict[str, Any]:
        """What trajectories keep of it."""
        return {**super().todict(), **{name: getattr(self, name) for name in self._told}}


class Langevin(_Thermostat):
    """ASE's class of this name on the device, as VelocityVerlet is: friction and noise on every atom
    in the middle of a step (BAOAB), which change the total momentum, too.

    friction: per unit of ASE's time.  seed: random numbers are functions of it, the step's number
    and the atom's, and the same on all devices.  keywords: those of ASE's MolecularDynamics."""

    _told = "temperature_K", "friction", "seed"

    def __init__(self, atoms: Atoms, timestep: float, temperature_K: float, friction: float,
                 seed: int = 0, **keywords: Any) -> None:
        super().__init__(atoms, timestep, temperature_K, seed, **keywords)
        self.friction = _checks.number("friction", friction, 0)

    def _first_half(self):
        dt, gone = self.dt, self.friction * self.dt
        self._moving.move(_move(
            kick=dt / 2, reach=dt / 2, keep=math.exp(-gone),
            width=-math.expm1(-2 * gone) * units.kB * self.temperature_K, seed=self.seed,
            step=self._steps, reach_again=dt / 2))


class Bussi(_Thermostat):
    """ASE's class of this name on the device, as VelocityVerlet is: stochastic velocity rescaling in
    the middle of a step, which keeps the total momentum.  So 3 N - 3 coordinates have the
    temperature, of which ASE's class counts 3 N.

    taut: in ASE's units.  seed: random numbers are functions of it and of the step's number.
    keywords: those of ASE's MolecularDynamics."""

    _told = "temperature_K", "taut", "seed"

    def __init__(self, atoms: Atoms, timestep: float, temperature_K: float, taut: float,
                 seed: int = 0, **keywords: Any) -> None:
        super().__init__(atoms, timestep, temperature_K, seed, **keywords)
        self.taut = _checks.number("taut", taut)
        if taut <= 0 or len(atoms) < 2:
            raise ValueError(f"taut: {taut!r}; it must be above 0" if taut <= 0 else
                             f"atoms: {len(atoms)}; a temperature needs two at least")

    def _first_half(self):
        moving, dt, scale = self._moving, self.dt, 1.0
        moving.move(_move(kick=dt / 2, reach=dt / 2))
        view = moving.see()
        self._seen(view)
        if view.kinetic > 0:
            freedom, random = 3 * len(self.atoms) - 3, np.random.default_rng([self.seed, self._steps])
            kept = math.exp(-dt / self.taut)
            part = (1 - kept) * units.kB * self.temperature_K / (2 * view.kinetic)
            one, others = random.standard_normal(), 2 * random.standard_gamma((freedom - 1) / 2)
            square = kept + part * (one**2 + others) + 2 * one * math.sqrt(kept * part)
            sign = one * math.sqrt(part) + math.sqrt(kept)  # Bussi and Parrinello (2008)
            scale = math.copysign(math.sqrt(max(square, 0)), sign)
        moving.move(_move(keep=scale, reach_again=dt / 2))
