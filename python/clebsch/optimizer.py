"""Optimizers: parameters that are arrays of others, changed where they lie."""
from __future__ import annotations

import ctypes as c
import math
from typing import Any, Mapping, NamedTuple, Optional, Sequence, Union

from . import _arrays, _checks
from . import _structs as s
from ._checks import choice
from ._context import Context
from ._library import Error
from ._op import context_of

RULES = {"sgd": s.SGD, "adam": s.ADAM, "adamw": s.ADAMW,
         "schedule_free_adamw": s.SCHEDULE_FREE_ADAMW, "muon": s.MUON,
         "soap": s.SOAP}
MUONS = {"optax": s.MUON_OPTAX, "nequix": s.MUON_NEQUIX, "nequip": s.MUON_NEQUIP,
         "torch": s.MUON_TORCH, "torch_rms": s.MUON_TORCH_RMS}
CLIPS = {"none": s.CLIP_NONE, "torch": s.CLIP_TORCH, "optax": s.CLIP_OPTAX}
EMAS = {"none": s.EMA_NONE, "warm_up": s.EMA_WARM_UP, "warm_up_from_0": s.EMA_WARM_UP_FROM_0,
        "constant": s.EMA_CONSTANT}
NUMBERS = ("lr", "weight_decay", "beta1", "beta2", "epsilon", "momentum", "dampening")
FLAGS = ("nesterov", "amsgrad")
COUNTS = ("warm_up_steps", "refresh_steps", "longest_side")


class Progress(NamedTuple):
    """How far training has come."""

    steps: int
    skipped: int
    """steps left out, as gradients were not finite"""
    norm: float
    """of the last step's gradients, before clipping; 0 where it is not computed"""


def _group(what, given):
    """A dict of words as the library's struct."""
    if not isinstance(given, Mapping):
        raise TypeError(f"{what}: {given!r}; it must be a dict, such as {{'rule': 'adamw', "
                        "'lr': 1e-3}")
    known = ("rule", "muon") + COUNTS + NUMBERS + FLAGS
    for word in given:
        if word not in known:
            raise TypeError(f"{what}: there is no {word!r}; there are {', '.join(known)}")
    missing = [word for word in ("rule", "lr") if word not in given]
    if missing:
        raise ValueError(f"{what}: {missing[0]} is missing")
    group = s.optimizer_group(rule=choice(f"{what}: rule", given["rule"], RULES))
    for word in NUMBERS:
        setattr(group, word, _checks.number(f"{what}: {word}", given.get(word, 0)))
    for word in FLAGS:
        setattr(group, word, _checks.flag(f"{what}: {word}", given.get(word, False)))
    group.muon = choice(f"{what}: muon", given.get("muon", "optax"), MUONS)
    for word in COUNTS:
        setattr(group, word, _checks.count(f"{what}: {word}", given.get(word, 0)))
    return group


class _Arrays:
    """A list of arrays as places in memory; their type, and what keeps them."""

    def __init__(self, what, arrays, context, written):
        if not isinstance(arrays, (list, tuple)):
            raise TypeError(f"{what}: {type(arrays).__name__}; it must be a list of arrays")
        self.views = [_arrays.View(array, context, f"{what}[{i}]")
                      for i, array in enumerate(arrays)]
        for view in self.views:
            view.expect(context, None)
            if view.device == "host" and context.backend != "cpu":
                raise Error(f"{view.what} is in the host's memory; on {context.name} an optimizer "
                            "takes arrays of the device")
            if written and not view.writable:
                raise Error(f"{view.what} is read-only")
            if view.dtype != self.views[0].dtype:
                raise TypeError(f"{view.what} holds {view.dtype}, {self.views[0].what} "
                                f"{self.views[0].dtype}; all must be of one type")
            if 0 not in view.shape and not view.is_dense():
                raise Error(f"{view.what}: elements must follow each other; strides are "
                            f"{list(view.strides)}")
        self.buffers = [self._wrap(view, context) for view in self.views]

    @staticmethod
    def _wrap(view, context):
        size = math.prod(view.shape) * _arrays.BYTES[view.dtype]
        return context._make("buffer_wrap", "buffer", s.POINTER, view.pointer, size) if size else None

    @property
    def dtype(self):
        return _arrays.DTYPES[self.views[0].dtype] if self.views else 0

    def place(self, i):
        return s.place(self.buffers[i].value if self.buffers[i] else None, 0)


class Optimizer:
    """Changes parameters by their gradients, in one launch for all arrays.

    parameters, gradients: lists of arrays, NumPy's or of any library with __dlpack__, that stay
    where they are: f32 or f64, gradients also f16 or bf16.  groups: a dict of the numbers of
    clb_optimizer_group and its rule, "sgd", "adam", "adamw", "schedule_free_adamw", "soap" or "muon" (whose
    variant `muon` is "optax", "nequix", "nequip", "torch" or "torch_rms"), or a list of them, and
    then `members` has the number of the group of each array.  copies: arrays that get
    the new parameters in another type.  averages: arrays for the moving average (ema: "warm_up",
    "warm_up_from_0" or "constant"), or that of schedule-free rules.  clip: "torch" or "optax", by
    max_norm.  docs/optimizers.md has the formulas."""

    @_checks.exact_keywords
    def __init__(self, parameters: Sequence[Any], gradients: Sequence[Any],
                 groups: Union[Mapping[str, Any], Sequence[Mapping[str, Any]]],
                 members: Optional[Sequence[int]] = None, copies: Optional[Sequence[Any]] = None,
                 averages: Optional[Sequence[Any]] = None, clip: str = "none",
                 max_norm: float = 0, check_finite: bool = False, ema: str = "none",
                 ema_decay: float = 0, device: Union[str, Context] = "") -> None:
        self.context = context = context_of(device)
        given = [groups] if isinstance(groups, Mapping) else list(groups)
        self._groups = [dict(group) if isinstance(group, Mapping) else group for group in given]
        listed = (s.optimizer_group * len(given))(
            *(_group(f"groups[{i}]", group) for i, group in enumerate(self._groups)))
        arrays = {"parameters": parameters, "gradients": gradients, "copy": copies,
                  "average": averages}
        self._arrays = {what: _Arrays(what, found, context, what != "gradients")
                        for what, found in arrays.items() if found is not None}
        tensors = self._tensors(members, len(given))
        desc = s.optimizer_desc(
            tensors=tensors, n_tensors=len(tensors), groups=listed, n_groups=len(listed),
            clip=choice("clip", clip, CLIPS), max_norm=_checks.number("max_norm", max_norm),
            check_finite=_checks.flag("check_finite", check_finite),
            ema=choice("ema", ema, EMAS), ema_decay=_checks.number("ema_decay", ema_decay))
        for what in ("parameters", "gradients", "copy"):
            if what in self._arrays:
                setattr(desc, what, self._arrays[what].dtype)
        self._handle = context._make("optimizer_create", "optimizer", c.byref(desc))

    def _tensors(self, members, n_groups):
        shapes = [view.shape for view in self._arrays["parameters"].views]
        for what, arrays in self._arrays.items():
            found = [view.shape for view in arrays.views]
            if found != shapes:
                raise ValueError(f"{what} has the shapes {found}; parameters have {shapes}")
        numbers = [0] * len(shapes) if members is None else [
            _checks.count(f"members[{i}]", group, 0, n_groups - 1)
            for i, group in enumerate(members)]
        if len(numbers) != len(shapes):
            raise ValueError(f"members: {len(numbers)} numbers for {len(shapes)} arrays")
        tensors = (s.optimizer_tensor * len(shapes))()
        for i, shape in enumerate(shapes):
            tensors[i].rows = shape[0] if shape else 1
            tensors[i].columns = math.prod(shape[1:])
            tensors[i].group = numbers[i]
            for what, arrays in self._arrays.items():
                setattr(tensors[i], what, arrays.place(i))
        return tensors

    def step(self) -> None:
        """Of the gradients that are in memory now; on the caller's stream it does not wait."""
        self._call("step")

    @_checks.exact_keywords
    def set_group(self, number: int, numbers: Mapping[str, Any]) -> None:
        """New numbers of a group; what is not named stays."""
        number = _checks.count("number", number, 0, len(self._groups) - 1)
        changed = {**self._groups[number], **numbers}
        self._call("set_group", number, c.byref(_group(f"groups[{number}]", changed)))
        self._groups[number] = changed

    def progress(self) -> Progress:
        found = s.progress()
        self._call("progress", c.byref(found))
        return Progress(found.steps, found.skipped, found.norm)

    def average(self) -> None:
        """Writes the averages of schedule-free rules to `averages`."""
        self._call("average")

    def state(self) -> bytes:
        """Moments and counts, for load_state of an optimizer of the same arrays and rules."""
        size = c.c_uint64()
        self._call("state_bytes", c.byref(size))
        room = c.create_string_buffer(size.value)
        self._call("state_read", room, size.value)
        return room.raw

    def load_state(self, state: bytes) -> None:
        if not isinstance(state, bytes):
            raise TypeError(f"state: {type(state).__name__}; it must be bytes")
        self._call("state_write", state, len(state))

    def _call(self, name, *arguments):
        self.context._call(f"optimizer_{name}", *arguments, handle=self._handle)
