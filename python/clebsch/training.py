"""What models are trained on: labels, losses, and a loss's gradient by a model's tensors."""
from __future__ import annotations

import ctypes as c
import dataclasses
from typing import Any, Dict, List, Mapping, Optional, Sequence

import numpy as np
import numpy.typing as npt

from . import _checks
from . import _structs as s

FUNCTIONS = {"mse": s.LOSS_MSE, "mae": s.LOSS_MAE, "huber": s.LOSS_HUBER}


@dataclasses.dataclass(frozen=True, eq=False)
class Labels:
    """What is known of a structure; None, or nan among the numbers: not known."""

    energy: Optional[float] = None
    """eV"""
    forces: Optional[npt.ArrayLike] = None
    """[n][3], eV / Angstrom"""
    stress: Optional[npt.ArrayLike] = None
    """[3][3], eV / Angstrom^3, as in Results"""
    weight: float = 1.0
    """its factor in all terms"""


@dataclasses.dataclass(frozen=True)
class Loss:
    """energy, forces and stress are the factors of three means; docs/training.md has the formulas."""

    function: str = "mse"
    """"mse", "mae" or "huber" """
    energy: float = 1.0
    forces: float = 1.0
    stress: float = 0.0
    delta: float = 0.01
    """of Huber's function"""
    force_norm: bool = False
    """lengths of differences of forces count, not components"""
    stress_unit: float = 1.0
    """factor of differences of stresses: 1602.1766208 for kbar"""


@dataclasses.dataclass(frozen=True, eq=False)
class Gradient:
    """A loss, and its gradient."""

    loss: float
    terms: Dict[str, float]
    """"energy", "forces" and "stress", before their factors"""
    tensors: Dict[str, np.ndarray]
    """dloss / dtensor, by the names and shapes of the model's file"""


class Tensors:
    """The tensors of a model that trains, and where their numbers are among its parameters."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.places = {}
        info = s.tensor_info()
        call = model.context._lib.clb_model_tensor_sized
        while not call(model._handle, len(self.places), c.byref(info), c.sizeof(info)):
            self.places[info.name.decode()] = (info.first, info.count,
                                               tuple(info.shape[:info.rank]))

    def split(self, numbers: np.ndarray) -> Dict[str, np.ndarray]:
        return {name: numbers[first:first + count].reshape(shape)
                for name, (first, count, shape) in self.places.items()}

    def read(self) -> Dict[str, np.ndarray]:
        numbers = np.full(self._model.parameters, np.nan)
        self._model.context._call("model_parameters", _doubles(numbers),
                                  handle=self._model._handle)
        return self.split(numbers)

    def write(self, tensors: Mapping[str, npt.ArrayLike]) -> None:
        now = self.read()
        for name, values in tensors.items():
            if name not in now:
                raise ValueError(f"tensors: the model has no {name!r}")
            now[name] = _checks.reals(f"tensors[{name!r}]", values, now[name].shape)
        numbers = np.concatenate([np.ravel(now[name]) for name in self.places])
        self._model.context._call("model_set_parameters", _doubles(numbers),
                                  handle=self._model._handle)

    def gradient(self, given: List[Any], labels: Sequence[Labels], loss: Loss) -> Gradient:
        if len(labels) != len(given):
            raise ValueError(f"labels: there are {len(labels)}, of {len(given)} structures")
        kept: List[np.ndarray] = []
        atoms = (s.model_atoms * len(given))(*(one.atoms for one in given))
        known = (s.labels * len(given))(*(_labels(i, one, atoms[i].n, kept)
                                          for i, one in enumerate(labels)))
        value, terms = np.full(1, np.nan), np.full(3, np.nan)
        numbers = np.full(self._model.parameters, np.nan)
        results = s.gradient_results(loss=value.ctypes.data, terms=terms.ctypes.data,
                                     gradient=numbers.ctypes.data)
        self._model.context._call("model_gradient", len(given), atoms, known,
                                  c.byref(_loss(loss)), c.byref(results),
                                  handle=self._model._handle)
        return Gradient(float(value[0]), dict(zip(("energy", "forces", "stress"), terms.tolist())),
                        self.split(numbers))


def _doubles(numbers):
    return numbers.ctypes.data_as(c.POINTER(c.c_double))


def _labels(i, labels, n, kept):
    if not isinstance(labels, Labels):
        raise TypeError(f"labels: number {i} is {labels!r}, not a clebsch.Labels")
    shapes = {"energy": (), "forces": (n, 3), "stress": (3, 3), "weight": ()}
    places = []
    for name, shape in shapes.items():
        values = getattr(labels, name)
        if values is not None:
            values = np.array(values, np.float64, order="C")
            if values.shape != shape:
                raise ValueError(f"labels: {name} of number {i} has shape {values.shape}, not "
                                 f"{shape}")
            kept.append(values)
        places.append(None if values is None else values.ctypes.data)
    return s.labels(*places)


def _loss(loss):
    return s.loss(function=_checks.choice("function", loss.function, FUNCTIONS),
                  delta=_checks.number("delta", loss.delta, 0),
                  energy=_checks.number("energy", loss.energy, 0),
                  forces=_checks.number("forces", loss.forces, 0),
                  stress=_checks.number("stress", loss.stress, 0),
                  force_norm=int(_checks.flag("force_norm", loss.force_norm)),
                  stress_unit=_checks.number("stress_unit", loss.stress_unit, 0))

