"""Ops as functions of JAX's arrays, for jit, grad and vmap.  docs/jax.md of the sources has examples."""
import functools
from typing import Any

try:
    import jax as _jax
    _jax.ffi  # noqa: B018
except (ImportError, AttributeError) as error:
    raise ImportError(f"clebsch.jax needs JAX 0.5 or newer, pip install jax ({error})") from None

import clebsch as _clebsch

from .. import _checks
from ._function import Function, function_of

__all__ = ["Function", "convolution", "gate", "linear", "norm_activation", "rms_norm",
           "spherical_harmonics", "symmetric_contraction", "tensor_product"]


def _function_of(maker):
    @functools.wraps(maker)
    def make(*arguments: Any, **options: Any) -> Function:
        return function_of(maker, arguments, options)
    make.__annotations__["return"] = Function
    return _checks.exact_keywords(make)


spherical_harmonics = _function_of(_clebsch.spherical_harmonics)
tensor_product = _function_of(_clebsch.tensor_product)
convolution = _function_of(_clebsch.convolution)
symmetric_contraction = _function_of(_clebsch.symmetric_contraction)
linear = _function_of(_clebsch.linear)
rms_norm = _function_of(_clebsch.rms_norm)
gate = _function_of(_clebsch.gate)
norm_activation = _function_of(_clebsch.norm_activation)
