"""Ops as modules, with the arguments and the state of e3nn's modules of these names."""
from __future__ import annotations

import ctypes as c
import math
import re
from typing import Any, Optional, Sequence, Tuple

import torch

import clebsch

from . import _functions
from ._ops import described

_TERM = re.compile(r"(?:(\d+)x)?(\d+)([eoy])")
_FUNCTIONS = {
    "silu": torch.nn.functional.silu, "tanh": torch.tanh, "sigmoid": torch.sigmoid,
    "relu": torch.relu, "abs": torch.abs, "identity": lambda x: x,
    "ssp": lambda x: torch.nn.functional.softplus(x) - math.log(2)}


def terms(irreps):
    """[(multiplicity, degree, parity)] of a text of irreps, or of e3nn's."""
    found = []
    for term in filter(None, str(irreps).replace(" ", "").split("+")):
        match = _TERM.fullmatch(term)
        if not match:
            raise ValueError(f"irreps: {term!r}; a term is like '8x1o'")
        degree = int(match[2])
        odd = match[3] == "o" or match[3] == "y" and degree % 2
        found.append((int(match[1] or 1), degree, -1 if odd else 1))
    return found


class Module(torch.nn.Module):
    """One op.  What e3nn's modules keep for their own code is left out of checkpoints."""

    _foreign = ("_compiled_main",)

    def _load_from_state_dict(self, state_dict, prefix, *rest):
        for key in [key for key in state_dict
                    if key.startswith(tuple(prefix + word for word in self._foreign))]:
            del state_dict[key]
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def _set(self, name, internal, count, start=torch.randn):
        """A parameter, or as e3nn a buffer of no elements."""
        if internal and count:
            self.register_parameter(name, torch.nn.Parameter(start(count)))
        else:
            self.register_buffer(name, torch.empty(0))

    def _of_rows(self, x, *rest):
        """The op of an operand with any leading dimensions, of which some may be 0."""
        if x.dim() == 2:
            return self.function(x, *rest)
        z = self.function(x.reshape(-1, x.shape[-1]), *rest)
        return z.reshape(*x.shape[:-1], z.shape[-1])


class SphericalHarmonics(Module):
    """e3nn.o3.SphericalHarmonics: irreps_out is irreps, a degree, or a list of degrees."""

    def __init__(self, irreps_out: Any, normalize: bool, normalization: str = "integral",
                 irreps_in: Any = None) -> None:
        super().__init__()
        if isinstance(irreps_out, int):
            degrees = [irreps_out]
        elif isinstance(irreps_out, (list, tuple)) and all(isinstance(i, int) for i in irreps_out):
            degrees = list(irreps_out)
        else:
            degrees = self._degrees(terms(irreps_out), irreps_in)
        self.irreps_in, self.irreps_out = irreps_in, irreps_out
        self.normalize, self.normalization = normalize, normalization
        self.function = _functions.spherical_harmonics(degrees, normalize=normalize,
                                                       normalization=normalization)

    @staticmethod
    def _degrees(found, irreps_in):
        given = None if irreps_in is None else terms(irreps_in)
        pseudo = any(degree % 2 and parity == 1 for _, degree, parity in found)
        given = given or [(1, 1, 1 if pseudo else -1)]
        if given not in ([(1, 1, 1)], [(1, 1, -1)]):
            raise ValueError(f"irreps_in: {irreps_in}; it must be 1x1o or 1x1e")
        for _, degree, parity in found:
            if parity != given[0][2] ** degree:
                raise ValueError(f"irreps_out: no harmonics of degree {degree} and this parity")
        return [degree for count, degree, _ in found for _ in range(count)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self._of_rows(x)


class _Weighted(Module):
    """weight: a parameter, where weights are of the module."""

    def _choose(self, internal, shared, weighted):
        """e3nn's rules of what is not given."""
        if shared is None:
            shared = True
        if internal is None:
            internal = shared and weighted
        if internal and not shared:
            raise ValueError("internal_weights: weights of the module are shared by all rows")
        self.internal_weights, self.shared_weights = internal, shared

    def _weight(self, weight):
        if not self.weight_numel:
            return None
        if weight is None:
            if not self.internal_weights:
                raise ValueError("weight is missing: the module has none (internal_weights)")
            return self.weight
        if isinstance(weight, (list, tuple)):
            lead = 0 if self.shared_weights else weight[0].dim() - 1
            return torch.cat([one.flatten(min(lead, 1)) for one in weight], -1)
        return weight


class TensorProduct(_Weighted):
    """e3nn.o3.TensorProduct: forward(x, y, weight=None), with any leading dimensions."""

    _op = "tensor_product"

    def __init__(self, irreps_in1: Any, irreps_in2: Any, irreps_out: Any,
                 instructions: Sequence[Tuple], irrep_normalization: Optional[str] = None,
                 path_normalization: Optional[str] = None,
                 internal_weights: Optional[bool] = None,
                 shared_weights: Optional[bool] = None, **options: Any) -> None:
        super().__init__()
        self._choose(internal_weights, shared_weights, any(path[4] for path in instructions))
        self.irreps_in1, self.irreps_in2, self.irreps_out = irreps_in1, irreps_in2, irreps_out
        self.instructions = list(instructions)
        self.function = getattr(_functions, self._op)(
            irreps_in1, irreps_in2, irreps_out, instructions,
            irrep_normalization=irrep_normalization or "component",
            path_normalization=path_normalization or "element",
            shared_weights=self.shared_weights, **options)
        self.columns = columns = self.function.columns
        self.weight_numel = columns["w"]
        self._set("weight", self.internal_weights, self.weight_numel)
        self.register_buffer("output_mask", _mask(self.function))

    def forward(self, x: torch.Tensor, y: torch.Tensor,
                weight: Optional[torch.Tensor] = None) -> torch.Tensor:
        w = self._weight(weight)
        per_row = w is not None and not self.shared_weights
        if x.dim() == 2 and y.dim() == 2 and x.shape[0] == y.shape[0] and (
                not per_row or w.dim() == 2 and w.shape[0] == x.shape[0]):
            return self.function(x, y, w)
        given = [x, y, w] if per_row else [x, y]
        lead = torch.broadcast_shapes(*[one.shape[:-1] for one in given])
        rows = [one.expand(*lead, one.shape[-1]).reshape(-1, one.shape[-1]) for one in given]
        z = self.function(*rows) if per_row else self.function(*rows, w)
        return z.reshape(*lead, z.shape[-1])


def _mask(function):
    """1 for each column of z that an instruction reaches."""
    op = described(function.text).op
    mask = (c.c_ubyte * max(1, op.columns["z"]))()
    desc = getattr(op._desc, "product", op._desc)
    op.context._call("tensor_product_mask", c.byref(desc), mask, op.columns["z"])
    return torch.tensor(list(mask)[:op.columns["z"]], dtype=torch.get_default_dtype())


def _kept(filter_ir_out):
    return "" if filter_ir_out is None else "+".join(map(str, filter_ir_out))


class FullyConnectedTensorProduct(TensorProduct):
    """e3nn.o3.FullyConnectedTensorProduct."""

    def __init__(self, irreps_in1: Any, irreps_in2: Any, irreps_out: Any, **options: Any) -> None:
        found = clebsch.paths("fully_connected", *map(str, (irreps_in1, irreps_in2, irreps_out)))
        super().__init__(irreps_in1, irreps_in2, irreps_out, found.instructions, **options)


class FullTensorProduct(TensorProduct):
    """e3nn.o3.FullTensorProduct."""

    def __init__(self, irreps_in1: Any, irreps_in2: Any, filter_ir_out: Any = None,
                 **options: Any) -> None:
        super().__init__(*clebsch.paths("full", str(irreps_in1), str(irreps_in2),
                                        _kept(filter_ir_out)), **options)


class ElementwiseTensorProduct(TensorProduct):
    """e3nn.o3.ElementwiseTensorProduct."""

    def __init__(self, irreps_in1: Any, irreps_in2: Any, filter_ir_out: Any = None,
                 **options: Any) -> None:
        super().__init__(*clebsch.paths("elementwise", str(irreps_in1), str(irreps_in2),
                                        _kept(filter_ir_out)), **options)


class Convolution(TensorProduct):
    """The sum of a tensor product over the edges into each receiver, times `scale`: y and weights
    are of edges, x of senders.  Arguments are those of TensorProduct; weights are not shared by
    default.

    known: another layer of a model, called before, has compared the edges."""

    _op, known = "convolution", False

    def __init__(self, irreps_in1: Any, irreps_in2: Any, irreps_out: Any,
                 instructions: Sequence[Tuple], shared_weights: bool = False,
                 scale: float = 1.0, **options: Any) -> None:
        super().__init__(irreps_in1, irreps_in2, irreps_out, instructions, scale=scale,
                         shared_weights=shared_weights,
                         internal_weights=options.pop("internal_weights", shared_weights or False),
                         **options)

    def forward(self, x: torch.Tensor, y: torch.Tensor,  # type: ignore[override]
                weight: Optional[torch.Tensor], senders: torch.Tensor, receivers: torch.Tensor,
                n_receivers: Optional[int] = None) -> torch.Tensor:
        return self.function(x, y, self._weight(weight), senders, receivers, n_receivers,
                             self.known)


class SymmetricContraction(Module):
    """The symmetric contraction of MACE: forward(x, species).

    weight: [n_species][paths][channels]."""

    def __init__(self, ell: int, correlation: int, degrees: Sequence[int], channels: int,
                 n_species: int = 1, layout: str = "mul_ir") -> None:
        super().__init__()
        self.function = _functions.symmetric_contraction(
            ell, correlation, degrees, channels, n_species=n_species, layout=layout)
        paths = self.function.columns["w"] // channels
        self.n_species = n_species
        self.weight = torch.nn.Parameter(torch.randn(n_species, paths, channels) / paths)

    def forward(self, x: torch.Tensor, species: Optional[torch.Tensor] = None) -> torch.Tensor:
        return self.function(x, self.weight.flatten(1), species)


class Linear(_Weighted):
    """e3nn.o3.Linear: forward(x, weight=None, bias=None), with any leading dimensions."""

    def __init__(self, irreps_in: Any, irreps_out: Any, *, internal_weights: Optional[bool] = None,
                 shared_weights: Optional[bool] = None,
                 instructions: Optional[Sequence[Tuple[int, int]]] = None, biases: Any = False,
                 path_normalization: str = "element", **options: Any) -> None:
        super().__init__()
        self._choose(internal_weights, shared_weights, True)
        self.irreps_in, self.irreps_out = irreps_in, irreps_out
        self.function = _functions.linear(
            irreps_in, irreps_out, instructions, biases=biases if isinstance(biases, bool)
            else list(biases), path_normalization=path_normalization,
            weights_per_row=not self.shared_weights, **options)
        found = terms(irreps_out)
        if isinstance(biases, bool):
            biases = [biases and term[1:] == (0, 1) for term in found]
        self.columns = columns = self.function.columns
        self.bias_numel = sum(term[0] for term, bias in zip(found, biases) if bias)
        self.weight_numel = columns["w"] - self.bias_numel
        self._set("weight", self.internal_weights, self.weight_numel)
        self._set("bias", self.internal_weights, self.bias_numel, torch.zeros)
        self.register_buffer("output_mask", self._mask(found, instructions, biases))

    def _mask(self, found, instructions, biases):
        if instructions is None:
            inputs = {term[1:] for term in terms(self.irreps_in) if term[0]}
            reached = [term[1:] in inputs for term in found]
        else:
            reached = [any(out == i for _, out in instructions) for i in range(len(found))]
        values = [float(one or bool(bias)) for one, bias, (count, degree, _)
                  in zip(reached, biases, found) for _ in range(count * (2 * degree + 1))]
        return torch.tensor(values, dtype=torch.get_default_dtype())

    def forward(self, x: torch.Tensor, weight: Optional[torch.Tensor] = None,
                bias: Optional[torch.Tensor] = None) -> torch.Tensor:
        w = self._weight(weight)
        if self.bias_numel:
            if bias is None and not self.internal_weights:
                raise ValueError("bias is missing: the module has none (internal_weights)")
            b = self.bias if bias is None else bias
            w = b if w is None else torch.cat([w, b], -1)
        if x.dim() != 2 and w is not None and not self.shared_weights:
            w = w.reshape(-1, w.shape[-1])
        return self._of_rows(x, w)


class RMSNorm(Module):
    """clebsch.rms_norm, with its options: forward(x)."""

    def __init__(self, irreps: Any, **options: Any) -> None:
        super().__init__()
        self.irreps, self.function = irreps, _functions.rms_norm(irreps, **options)
        count = self.function.columns["w"]
        biases = sum(term[0] for term in terms(irreps) if term[1:] == (0, 1))
        biases = biases if options.get("bias") else 0
        self.weight = torch.nn.Parameter(torch.ones(count - biases)
                                         - options.get("weight_offset", 0.0))
        self._set("bias", True, biases, torch.zeros)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        w = torch.cat([self.weight, self.bias]) if self.bias.numel() else self.weight
        return self._of_rows(x, w)


def known_activation(activation):
    """(factor, word) of a multiple of an activation, by its values near and far from 0, where ReLU6 is
    no ReLU; None: of no such."""
    some = torch.linspace(-40, 40, 80_001, dtype=torch.float64)
    values = activation(some)
    for word, function in _FUNCTIONS.items():
        plain = function(some)
        factor = ((values * plain).sum() / plain.square().sum()).item()
        if torch.allclose(values, factor * plain, rtol=1e-9, atol=1e-12):
            return factor, word
    return None


def _normalized(activation):
    """The word of an activation with e3nn's factor: the mean of its square is 1 over the numbers that
    e3nn draws.  A word that has a factor stays."""
    if activation is None or isinstance(activation, str) and "*" in activation:
        return activation or "identity"
    factor, word = (1, activation) if activation in _FUNCTIONS else (
        callable(activation) and known_activation(activation) or (0, ""))
    if abs(factor - 1) > 1e-9:
        raise ValueError(f"{activation}: no activation of clebsch.gate; there are "
                         f"{', '.join(_FUNCTIONS)}")
    drawn = torch.randn(1_000_000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    factor = _FUNCTIONS[word](drawn).pow(2).mean().pow(-0.5).item()
    return word if abs(factor - 1) < 1e-4 else f"{factor!r}*{word}"


class Gate(Module):
    """e3nn.nn.Gate: lists of activations, of PyTorch or words of clebsch.gate, with e3nn's
    factors, or with those of "1.7*silu"."""

    _foreign = ("sc.", "mul.", "act_scalars.", "act_gates.")

    def __init__(self, irreps_scalars: Any, act_scalars: Sequence[Any], irreps_gates: Any = "",
                 act_gates: Sequence[Any] = (), irreps_gated: Any = "", **options: Any) -> None:
        super().__init__()
        scalars, gates = (",".join(map(_normalized, acts)) for acts in (act_scalars, act_gates))
        self.function = _functions.gate(irreps_scalars, scalars, irreps_gates, gates, irreps_gated,
                                        normalize=False, **options)
        op = described(self.function.text).op
        self.irreps_in, self.irreps_out = op.irreps_x, op.irreps_y

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self._of_rows(x)
