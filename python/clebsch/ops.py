"""Ops on arrays: spherical harmonics, tensor products, convolutions.

Each is a function that returns an op, whose passes are methods: forward, backward (gradients of sum
g z) and double_backward (gradients of the sum of a, b, c times the gradients).  clebsch.h has what
they compute; operands have its names and order, and `out` may follow them."""
from __future__ import annotations

import ctypes as c
from typing import Any, Callable, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from . import _arrays, _checks
from . import _structs as s
from ._checks import choice
from ._context import Context
from ._library import Error
from ._op import LAYOUTS, PASSES, Op, bits_of, context_of, described, measured

NORMALIZATIONS = {"component": s.COMPONENT, "norm": s.NORM, "integral": s.INTEGRAL}
IRREP_NORMALIZATIONS = {"component": s.IRREP_COMPONENT, "norm": s.IRREP_NORM, "none": s.IRREP_NONE}
PATH_NORMALIZATIONS = {"element": s.PATH_ELEMENT, "path": s.PATH_PATH, "none": s.PATH_NONE}
KINDS = dict.fromkeys(("channel_wise", "fully_connected", "full", "elementwise"), 0)
ORDERS = {"sorted": s.SORTED, "as_found": s.AS_FOUND}
MODES = {"uvw": s.UVW, "uvu": s.UVU, "uvv": s.UVV, "uuw": s.UUW, "uuu": s.UUU, "uvuv": s.UVUV,
         "uvu<v": s.UVU_HALF, "u<vw": s.UVW_HALF}

class Paths(NamedTuple):
    """What couples to what: instructions are e3nn's (in1, in2, out, mode, has_weight
    [, path_weight])."""

    irreps_x: str
    irreps_y: str
    irreps_z: str
    instructions: Sequence[Tuple]


@_checks.exact_keywords
def paths(kind: str, irreps_x: str, irreps_y: str, irreps_z: str = "",
          order: str = "sorted") -> Paths:
    """Those of a named product: "channel_wise", "fully_connected", "full" or "elementwise".

    irreps_z: of the second, its irreps; of the others the irreps to keep, "" for all that there are
    (the first has no such default).  order: of channel_wise, "sorted" (MACE) or "as_found"
    (NequIP)."""
    choice("kind", kind, KINDS)
    orders = [choice("order", order, ORDERS)] if kind == "channel_wise" else []
    found, words = s.instructions(), {value: word for word, value in MODES.items()}
    texts = [_irreps(o, irreps) for o, irreps in zip("xyz", (irreps_x, irreps_y, irreps_z))]
    context_of("cpu:interpreter")._call(kind, *texts, *orders, c.byref(found))
    return Paths(found.irreps_x.decode(), found.irreps_y.decode(), found.irreps_z.decode(),
                 [(i.in1, i.in2, i.out, words[i.mode], bool(i.has_weight), i.path_weight)
                  for i in found.instructions[:found.n_instructions]])


def _irreps(operand, irreps):
    return _checks.text(f"irreps_{operand}", irreps).encode()


class SphericalHarmonics(Op, name="spherical_harmonics"):
    """y[n][D] of x[n][3]; g_y, the gradient by y; h, the incoming gradient of g_x."""


@_checks.exact_keywords
def spherical_harmonics(degrees: Sequence[int], normalization: str = "component",
                        normalize: bool = False, dtype: Optional[str] = None,
                        arithmetic: Optional[str] = None,
                        device: Union[str, Context] = "") -> SphericalHarmonics:
    """Real spherical harmonics of these degrees in e3nn's convention.

    device: a name, or a Context.  dtype: "f32", "f64", "f16" or "bf16", of all arrays; None: of
    each call, that of its first array.  arithmetic: "f32" or "f64", of kernels; None: that of
    dtype."""
    if isinstance(degrees, str) or not hasattr(degrees, "__iter__"):
        raise TypeError(f"degrees: {degrees!r}; it must be a list of degrees, such as [0, 1, 2]")
    listed = degrees if hasattr(degrees, "dtype") else list(degrees)
    numbers = [int(degree) for degree in _checks.whole("degrees", listed)]
    in_c = (c.c_int * len(numbers))(*numbers)
    normalize = _checks.flag("normalize", normalize)
    kind = choice("normalization", normalization, NORMALIZATIONS)
    desc = described(s.spherical_harmonics_desc, dtype, arithmetic, degrees=in_c,
                     n_degrees=len(numbers), normalization=kind, normalize=normalize)
    columns = {"x": 3, "y": sum(2 * degree + 1 for degree in numbers)}
    return SphericalHarmonics(context_of(device), dtype, arithmetic, desc, columns, "xy")


class TensorProduct(Op, name="tensor_product"):
    """z[n][Z] of x[n][X], y[n][Y] and w[n][W], or w[W] with shared_weights.  paths: what was asked
    for."""

    triple_backward: Callable[..., Any]


def _instructions(given):
    """Those of C."""
    made = []
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise TypeError(f"instructions: {given!r}; it must be a list, as of clebsch.paths")
    for i, path in enumerate(given):
        what = f"instructions[{i}]"
        if isinstance(path, str) or not hasattr(path, "__len__") or len(path) not in (5, 6):
            raise TypeError(f"{what}: {path!r}; it must be (in1, in2, out, mode, has_weight"
                            "[, path_weight])")
        *ends, mode, weighted, weight = (*path, 1.0)[:6]
        made.append(s.instruction(*(_checks.count(what, end) for end in ends),
                                  choice("mode", mode, MODES),
                                  _checks.flag(f"{what}: has_weight", weighted),
                                  _checks.number(f"{what}: path_weight", weight)))
    return (s.instruction * len(made))(*made)


def _product(wanted, dtype, arithmetic, context, layout, shared_weights, gradients,
             irrep_normalization, path_normalization):
    """The description, and the lengths of rows."""
    irreps_x, irreps_y, irreps_z = (_irreps(o, given) for o, given in zip("xyz", wanted))
    steps = _instructions(wanted.instructions)
    layout = choice("layout", layout, LAYOUTS)
    desc = described(
        s.tensor_product_desc, dtype, arithmetic, irreps_x=irreps_x, irreps_y=irreps_y,
        irreps_z=irreps_z, instructions=steps, n_instructions=len(steps),
        irrep_normalization=choice("irrep_normalization", irrep_normalization,
                                   IRREP_NORMALIZATIONS),
        path_normalization=choice("path_normalization", path_normalization, PATH_NORMALIZATIONS),
        layout_x=layout, layout_y=layout, layout_z=layout,
        shared_weights=_checks.flag("shared_weights", shared_weights),
        gradients=bits_of(gradients, "xywz"))
    sizes = measured(context, "tensor_product", desc)
    return desc, {o: getattr(sizes, o) for o in "xyzw"}


@_checks.exact_keywords
def tensor_product(irreps_x: str, irreps_y: str, irreps_z: str, instructions: Sequence[Tuple],
                   device: Union[str, Context] = "", dtype: Optional[str] = None,
                   arithmetic: Optional[str] = None, layout: str = "mul_ir",
                   shared_weights: bool = False, gradients: str = "xywz",
                   irrep_normalization: str = "component",
                   path_normalization: str = "element") -> TensorProduct:
    """The tensor product of e3nn; tensor_product(*paths(...)) is a named one.

    dtype, arithmetic: as for spherical_harmonics.  layout: "mul_ir" or "ir_mul".  gradients: those
    that derivative passes compute; the others are None."""
    wanted, context = Paths(irreps_x, irreps_y, irreps_z, instructions), context_of(device)
    desc, columns = _product(wanted, dtype, arithmetic, context, layout, shared_weights, gradients,
                             irrep_normalization, path_normalization)
    op = TensorProduct(context, dtype, arithmetic, desc, columns, gradients,
                       {"w": 1} if shared_weights else {})
    op.paths = wanted
    return op


class Graph:
    """Edges from senders to receivers: lists, or arrays of int32 or int64, which are copied."""

    @_checks.exact_keywords
    def __init__(self, n_receivers: int, senders: Any, receivers: Any,
                 n_senders: Optional[int] = None, device: Union[str, Context] = "") -> None:
        self.context, self._handle = context_of(device), None
        self.update(n_receivers, senders, receivers, n_senders)

    def update(self, n_receivers: int, senders: Any, receivers: Any,
               n_senders: Optional[int] = None) -> None:
        """Other edges in their place; where they fail, it has none."""
        n_receivers = _checks.count("n_receivers", n_receivers)
        n_senders = n_receivers if n_senders is None else _checks.count("n_senders", n_senders)
        views = [_arrays.View(_arrays.of_list(what, array, "i64"), self.context, what)
                 for array, what in ((senders, "senders"), (receivers, "receivers"))]
        for view in views:
            view.expect(self.context, ("i32", "i64"))
            if len(view.shape) != 1 or view.shape != views[0].shape or view.dtype != views[0].dtype:
                raise ValueError("senders and receivers must be of one type and as many")
            if not view.is_dense():
                raise Error(f"{view.what}: its elements must be adjacent")
        n_edges = views[0].shape[0]
        if self._handle is None:
            self._handle = self.context._make("graph_create", "graph", max(n_receivers, n_senders),
                                              n_edges)
        self.n_receivers = self.n_senders = self.n_edges = 0
        lists = [self._list(view, n_edges) for view in views]
        self.context._call("graph_update", n_senders, n_receivers, n_edges,
                           s.I32 if views[0].dtype == "i32" else s.I64, *(item for item, _ in lists),
                           handle=self._handle)
        self.n_receivers, self.n_senders, self.n_edges = n_receivers, n_senders, n_edges

    def _list(self, view, n_edges):
        """An index list, and what must live as long."""
        if view.device == "host" or not n_edges:
            return s.index_list(host=view.pointer), view
        size = n_edges * _arrays.BYTES[view.dtype]
        buffer = self.context._make("buffer_wrap", "buffer", s.POINTER, view.pointer, size)
        return s.index_list(buffer=buffer.value), (view, buffer)


class Convolution(Op, name="convolution", first=("graph",)):
    """z[i] = scale * sum over edges e into i of T(x[sender(e)], y[e], w[e]): z[n_receivers][Z] of
    x[n_senders][X], y[n_edges][Y] and w[n_edges][W], or w[W] with shared_weights.

    weights: W, of which there is a function each where there are knots."""

    _workspace, _workspace_bytes, _table = None, 0, None

    def _call(self, name, arrays, named, out):
        if "graph" in named:
            arrays = (named.pop("graph"), *arrays)
        if not arrays or not isinstance(arrays[0], Graph):
            given = type(arrays[0]).__name__ if arrays else "nothing"
            raise TypeError(f"graph: {given}; it must be a clebsch.Graph")
        graph, of = arrays[0], self._passes[name]
        arrays, out, _ = self._bind(name, of.inputs, arrays[1:], named, out)
        if graph.context is not self.context:
            raise Error("the graph is of another context than the op")

        def workspace(op):
            least, most = c.c_uint64(), c.c_uint64()
            self.context._call("convolution_workspace", PASSES[name], graph._handle,
                               c.byref(least), c.byref(most), handle=op)
            if most.value > self._workspace_bytes:
                self._workspace = self.context._make("buffer_create", "buffer", most.value)
                self._workspace_bytes = most.value
            return (self._workspace,)
        counts = {"x": graph.n_senders, "z": graph.n_receivers, "y": graph.n_edges,
                  "w": graph.n_edges, **self._fixed}
        return self._run(name, of, arrays, out, None, counts, graph._handle, workspace)

    def _compile(self, name, dtype):
        with self.context._lock:
            known = (name, dtype) in self._compiled
            compiled = super()._compile(name, dtype)
            if not known and self._table is not None:
                self._set(compiled)
        return compiled

    def _set(self, compiled):
        self.context._call("convolution_set_table", self._table.ctypes.data_as(c.POINTER(c.c_double)),
                           handle=compiled.handle)

    def knots(self) -> np.ndarray:
        """The lengths [knots] at which set_table takes weights."""
        lengths = np.empty(self._desc.knots)
        op = self._compile("forward", self.dtype or "f32")
        self.context._call("convolution_knots", lengths.ctypes.data_as(c.POINTER(c.c_double)),
                           handle=op.handle)
        return lengths

    def set_table(self, values: Any) -> None:
        """The weights [knots][weights] through which splines of the length go."""
        if not self._desc.knots:
            raise ValueError("set_table: this op was made without knots")
        table = _checks.reals("values", values, (self._desc.knots, self.weights)).copy()
        with self.context._lock:
            self._table = table
            for compiled in self._compiled.values():
                self._set(compiled)


@_checks.exact_keywords
def convolution(irreps_x: str, irreps_y: str, irreps_z: str, instructions: Sequence[Tuple],
                scale: float = 1.0, atomics: bool = False, device: Union[str, Context] = "",
                dtype: Optional[str] = None, arithmetic: Optional[str] = None,
                layout: str = "mul_ir", shared_weights: bool = False, gradients: str = "xywz",
                irrep_normalization: str = "component", path_normalization: str = "element",
                vectors: bool = False, normalization: str = "component", knots: int = 0,
                first_knot: float = 0.0, last_knot: float = 0.0,
                break_at: float = 0.0) -> Convolution:
    """The graph convolution; its operands are those of tensor_product, of which it has the options.

    atomics: gradients of x are summed with atomics: faster, and not bitwise reproducible.
    vectors: y is the vectors of edges, [n_edges][3], whose harmonics the op computes, with that
    normalization.  knots: w is the lengths of edges, [n_edges][1] (with vectors there is no w), and
    weights are splines of them, which set_table gives, from first_knot to last_knot; at break_at
    their second derivatives may jump.  clebsch.h has all of it."""
    desc = s.convolution_desc(
        scale=_checks.number("scale", scale), atomics=_checks.flag("atomics", atomics),
        knots=_checks.count("knots", knots), first_knot=_checks.number("first_knot", first_knot),
        last_knot=_checks.number("last_knot", last_knot),
        break_at=_checks.number("break_at", break_at), vectors=_checks.flag("vectors", vectors),
        normalization=choice("normalization", normalization, NORMALIZATIONS))
    wanted, context = Paths(irreps_x, irreps_y, irreps_z, instructions), context_of(device)
    desc.product, columns = _product(wanted, dtype, arithmetic, context, layout, shared_weights,
                                     gradients, irrep_normalization, path_normalization)
    weights = columns["w"]
    if desc.knots:
        columns["w"] = 0 if desc.vectors else 1
    if desc.vectors:
        columns["y"] = 3
    op = Convolution(context, dtype, arithmetic, desc, columns, gradients,
                     {"w": 1} if shared_weights else {})
    op.paths, op.weights = wanted, weights
    return op
