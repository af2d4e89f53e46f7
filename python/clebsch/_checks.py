"""Arguments of the public functions: understood exactly, or refused by name."""
from __future__ import annotations

import difflib
import functools
import inspect
import numbers
from typing import Any, Callable, Mapping, Optional, TypeVar

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])

# What other programs, and other parts of this one, call an argument; the first that a function has.
WORDS = {
    **dict.fromkeys("precision default_dtype float_dtype float_type storage".split(), ("dtype",)),
    **dict.fromkeys("model path file filename file_name model_path model_paths model_file models "
                    "checkpoint checkpoint_path compile_path potential".split(), ("model", "path")),
    **dict.fromkeys("modal task task_name data dataset".split(), ("modality",)),
    **dict.fromkeys("use_device map_location gpu backend".split(), ("device",)),
    **dict.fromkeys("splines n_splines table".split(), ("knots",)),
    **dict.fromkeys("pbc periodicity".split(), ("periodic",)),
    **dict.fromkeys("atomic_numbers species elements symbols".split(), ("numbers", "atoms")),
    **dict.fromkeys("coordinates coords xyz".split(), ("positions",)),
    **dict.fromkeys("box lattice unit_cell".split(), ("cell",)),
    **dict.fromkeys("forces gradients backward".split(), ("derivatives",)),
    **dict.fromkeys("lmax l_max irreps ls".split(), ("degrees",)),
    # Near to a word by its letters alone.
    **dict.fromkeys("atoms restart label directory file_type".split(), ()),
}


def exact_keywords(function: Function) -> Function:
    """A keyword that the function does not have is a TypeError that names the right one."""
    names = [name for name in inspect.signature(function).parameters if name != "self"]
    called = function.__qualname__.replace(".__init__", "")

    @functools.wraps(function)
    def checked(*arguments, **keywords):
        for word in keywords:
            if word not in names:
                raise TypeError(f"{called}: there is no keyword {word!r}; {right_word(word, names)}")
        return function(*arguments, **keywords)
    return checked  # type: ignore[return-value]


def right_word(word, names):
    key = word.lower().strip("_")
    found = [name for name in WORDS.get(key, ()) if name in names]
    if key not in WORDS:
        found = difflib.get_close_matches(key, names, 1, 0.6)
    return f"the word is {found[0]!r}" if found else f"there are {', '.join(map(repr, names))}"


def choice(what: str, value: Any, values: Mapping[str, int]) -> int:
    """The number of a word."""
    if not isinstance(value, str) or value not in values:
        raise ValueError(f"{what}: {value!r}; there are {', '.join(map(repr, values))}")
    return values[value]


def text(what: str, value: Any) -> str:
    """A word for C."""
    if not isinstance(value, str):
        raise TypeError(f"{what}: {value!r}; it must be a string")
    if "\0" in value:
        raise ValueError(f"{what}: {value!r} has a null character")
    return value


def word_or_none(what: str, value: Any) -> Optional[str]:
    return None if value is None else text(what, value)


def flag(what: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)) and not (type(value) is int and value in (0, 1)):
        raise TypeError(f"{what}: {value!r}; it must be True or False")
    return bool(value)


def flags(what: str, value: Any) -> tuple:
    """Three of them, or one for all."""
    if value is True or value is False:
        return (value,) * 3
    array = _array(what, value)
    bits = array.dtype.kind == "b" or array.dtype.kind in "iu" and np.isin(array, (0, 1)).all()
    if not bits or array.shape not in ((), (3,)):
        raise (ValueError if bits else TypeError)(
            f"{what}: {value!r}; it must be True or False, or three of them")
    return tuple(map(bool, np.broadcast_to(array, 3)))


def _is_number(value):
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))


def count(what: str, value: Any, least: int = 0, most: int = 2**31 - 1) -> int:
    if not (_is_number(value) and least <= value <= most and value == int(value)):
        raise (ValueError if _is_number(value) else TypeError)(
            f"{what}: {value!r}; it must be a whole number from {least} to {most}")
    return int(value)


def number(what: str, value: Any, least: float = -np.inf) -> float:
    if not (_is_number(value) and np.isfinite(float(value)) and value >= least):
        raise (ValueError if _is_number(value) else TypeError)(
            f"{what}: {value!r}; it must be a finite number"
            f"{'' if least == -np.inf else f', {least:g} or more'}")
    return float(value)


def _array(what, values):
    if any(map(np.ma.is_masked, values if isinstance(values, (list, tuple)) else [values])):
        raise ValueError(f"{what}: elements are masked; it must have all")
    try:
        return np.asarray(values)
    except ValueError as error:  # rows of unequal length
        raise ValueError(f"{what}: {error}") from None


def whole(what: str, values: Any) -> np.ndarray:
    """int64[n] of whole numbers."""
    array = _array(what, values)
    bools = isinstance(values, (list, tuple)) and any(isinstance(v, (bool, np.bool_))
                                                      for v in values)
    if array.dtype.kind not in "iuf" or bools:
        kind = "truth values" if bools or array.dtype.kind == "b" else f"{array.dtype}"
        raise TypeError(f"{what}: an array of {kind}; it must be whole numbers")
    if array.ndim != 1:
        raise ValueError(f"{what}: an array of shape {array.shape}; it must be (n,)")
    wide = array if array.dtype.itemsize >= 8 else array.astype(np.float64)
    with np.errstate(invalid="ignore"):
        wrong = np.flatnonzero(~((wide == np.floor(wide)) & (wide > -2**31) & (wide < 2**31)))
    if wrong.size:
        raise ValueError(f"{what}[{wrong[0]}] is {array[wrong[0]]}; it must be a whole number from "
                         "-2147483647 to 2147483647")
    return array.astype(np.int64)


def reals(what: str, values: Any, shape: Optional[tuple] = None) -> np.ndarray:
    """Contiguous float64[shape] of the same finite numbers."""
    array = _array(what, values)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{what}: an array of {array.dtype}; it must be real numbers")
    if shape is not None and array.shape != shape:
        raise ValueError(f"{what}: an array of shape {array.shape}; it must be {shape}")
    made = np.ascontiguousarray(array, np.float64)
    if not np.isfinite(made).all():
        at = tuple(map(int, np.argwhere(~np.isfinite(made))[0]))
        raise ValueError(f"{what}{list(at)} is {array[at]}; it must be finite")
    if array.dtype.itemsize >= 8 and array.dtype.kind + str(array.dtype.itemsize) != "f8" and (
            made != array).any():
        raise ValueError(f"{what}: float64 does not hold these numbers of {array.dtype} exactly")
    return made
