"""Ops on arrays: spherical harmonics, tensor products, convolutions.

Each is a function that returns an op, whose passes are methods: forward, backward (gradients of sum
g z) and double_backward (gradients of the sum of a, b, c times the gradients).  clebsch.h has what
they compute; operands have its names and order."""
from __future__ import annotations

import ctypes as c
from typing import Any, NamedTuple, Optional, Sequence, Tuple, Union

from . import _arrays, _checks
from . import _structs as s
from ._checks import choice
from ._context import Context
from ._library import Error
from ._op import PASSES, Op, context_of

NORMALIZATIONS = {"component": s.COMPONENT, "norm": s.NORM, "integral": s.INTEGRAL}
IRREP_NORMALIZATIONS = {"component": s.IRREP_COMPONENT, "norm": s.IRREP_NORM, "none": s.IRREP_NONE}
PATH_NORMALIZATIONS = {"element": s.PATH_ELEMENT, "path": s.PATH_PATH, "none": s.PATH_NONE}
LAYOUTS = {"mul_ir": s.MUL_IR, "ir_mul": s.IR_MUL}
KINDS = dict.fromkeys(("channel_wise", "fully_connected", "full", "elementwise"), 0)
ORDERS = {"sorted": s.SORTED, "as_found": s.AS_FOUND}
MODES = {"uvw": s.UVW, "uvu": s.UVU, "uvv": s.UVV, "uuw": s.UUW, "uuu": s.UUU, "uvuv": s.UVUV,
         "uvu<v": s.UVU_HALF, "u<vw": s.UVW_HALF}
BITS = {"x": s.OPERAND_X, "y": s.OPERAND_Y, "w": s.OPERAND_W, "z": s.OPERAND_Z}

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


def _types(dtype, arithmetic):
    storage = choice("dtype", dtype, _arrays.DTYPES)
    other = "f64" if dtype == "f64" else "f32"
    return storage, choice("arithmetic", arithmetic or other, {"f64": s.F64, "f32": s.F32})


class SphericalHarmonics(Op):
    def forward(self, x: Any, out: Any = None) -> Any:
        """y[n][D] of x[n][3]."""
        return self._run("forward", (x,), out)

    def backward(self, x: Any, g_y: Any, out: Any = None) -> Any:
        """g_x[n][3], the gradient of sum g_y y."""
        return self._run("backward", (x, g_y), out)

    def double_backward(self, x: Any, g_y: Any, h: Any, out: Any = None) -> Tuple[Any, ...]:
        """d_x[n][3] and d_g_y[n][D], the gradients of sum h g_x."""
        return self._run("double_backward", (x, g_y, h), out)


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
    _types(dtype or "f32", arithmetic)

    def describe(dtype, passes):
        storage, working = _types(dtype, arithmetic)
        return s.spherical_harmonics_desc(
            degrees=in_c, n_degrees=len(numbers), normalization=kind, normalize=int(normalize),
            storage=storage, arithmetic=working, passes=passes)
    operands = {"forward": (["x"], ["y"]), "backward": (["x", "g_y"], ["g_x"]),
                "double_backward": (["x", "g_y", "h"], ["d_x", "d_g_y"])}
    kinds = {"x": "x", "y": "y", "g_y": "y", "g_x": "x", "h": "x", "d_x": "x", "d_g_y": "y"}
    columns = {"x": 3, "y": sum(2 * degree + 1 for degree in numbers)}
    return SphericalHarmonics("spherical_harmonics", context_of(device), dtype, describe, columns,
                              operands, kinds, "xy")


class TensorProduct(Op):
    """columns: of x, y, z and w.  paths: what was asked for."""

    def _counts(self, inputs):
        apart = [None if self.shared_weights and operand and self._kinds[operand.view.what] == "w"
                 else operand for operand in inputs]
        counts = super()._counts(apart)
        return {**counts, "w": 1} if self.shared_weights else counts

    def forward(self, x: Any, y: Any, w: Any = None, out: Any = None) -> Any:
        """z[n][Z] of x[n][X], y[n][Y], w[n][W]."""
        return self._run("forward", (x, y, w), out)

    def backward(self, x: Any, y: Any, w: Any, g: Any, out: Any = None) -> Tuple[Any, ...]:
        """g_x, g_y and g_w, the gradients of sum g z."""
        return self._run("backward", (x, y, w, g), out)

    def double_backward(self, x: Any, y: Any, w: Any, g: Any, a: Any, b: Any, c: Any = None,
                        out: Any = None) -> Tuple[Any, ...]:
        """d_x, d_y, d_w and d_g, the gradients of sum a g_x + b g_y + c g_w."""
        return self._run("double_backward", (x, y, w, g, a, b, c), out)


_OPERANDS = {"forward": (["x", "y", "w"], ["z"]),
             "backward": (["x", "y", "w", "g"], ["g_x", "g_y", "g_w"]),
             "double_backward": (["x", "y", "w", "g", "a", "b", "c"], ["d_x", "d_y", "d_w", "d_g"])}
_KINDS = {"x": "x", "y": "y", "w": "w", "z": "z", "g": "z", "a": "x", "b": "y", "c": "w",
          "g_x": "x", "g_y": "y", "g_w": "w", "d_x": "x", "d_y": "y", "d_w": "w", "d_g": "z"}


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


def _product(kind, name, wanted, device, wrap, dtype, arithmetic, layout, shared_weights,
             gradients, irrep_normalization, path_normalization):
    context, (storage, working) = context_of(device), _types(dtype or "f32", arithmetic)
    irreps_x, irreps_y, irreps_z = (_irreps(o, given) for o, given in zip("xyz", wanted))
    steps = _instructions(wanted.instructions)
    shared_weights = _checks.flag("shared_weights", shared_weights)
    layout = choice("layout", layout, LAYOUTS)
    irreps = choice("irrep_normalization", irrep_normalization, IRREP_NORMALIZATIONS)
    letters = set(_checks.text("gradients", gradients))
    computed = sum(choice("gradients", letter, BITS) for letter in letters)
    desc = s.tensor_product_desc(
        irreps_x=irreps_x, irreps_y=irreps_y, irreps_z=irreps_z,
        instructions=steps, n_instructions=len(steps),
        irrep_normalization=irreps,
        path_normalization=choice("path_normalization", path_normalization, PATH_NORMALIZATIONS),
        layout_x=layout, layout_y=layout, layout_z=layout, shared_weights=shared_weights,
        gradients=computed, storage=storage, arithmetic=working, passes=1)
    sizes = s.tensor_product_sizes()
    context._call("tensor_product_measure", c.byref(desc), c.byref(sizes))

    def describe(dtype, passes):
        desc.storage, desc.arithmetic = _types(dtype, arithmetic)
        desc.passes = passes
        return wrap(desc)
    columns = {o: getattr(sizes, o) for o in "xyzw"}
    op = kind(name, context, dtype, describe, columns, _OPERANDS, _KINDS, gradients)
    op.shared_weights, op.paths = shared_weights, wanted
    return op


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
    wanted = Paths(irreps_x, irreps_y, irreps_z, instructions)
    return _product(TensorProduct, "tensor_product", wanted, device, lambda desc: desc, dtype,
                    arithmetic, layout, shared_weights, gradients, irrep_normalization,
                    path_normalization)


class Graph:
    """Edges from senders to receivers: lists, or arrays of int32 or int64, which are copied."""

    @_checks.exact_keywords
    def __init__(self, n_receivers: int, senders: Any, receivers: Any,
                 n_senders: Optional[int] = None, device: Union[str, Context] = "") -> None:
        self.context = context_of(device)
        self.n_receivers = _checks.count("n_receivers", n_receivers)
        self.n_senders = (self.n_receivers if n_senders is None
                          else _checks.count("n_senders", n_senders))
        views = [_arrays.View(_arrays.of_list(what, array, "i64"), self.context, what)
                 for array, what in ((senders, "senders"), (receivers, "receivers"))]
        for view in views:
            view.expect(self.context, ("i32", "i64"))
            if len(view.shape) != 1 or view.shape != views[0].shape or view.dtype != views[0].dtype:
                raise ValueError("senders and receivers must be of one type and as many")
            if view.shape[0] > 1 and view.strides[0] != 1:
                raise Error(f"{view.what}: its elements must be adjacent")
        self.n_edges = views[0].shape[0]
        nodes = max(self.n_receivers, self.n_senders)
        self._handle = self.context._make("graph_create", "graph", nodes, self.n_edges)
        lists = [self._list(view) for view in views]
        self.context._call("graph_update", self.n_senders, self.n_receivers, self.n_edges,
                          s.I32 if views[0].dtype == "i32" else s.I64, *(item for item, _ in lists),
                          handle=self._handle)

    def _list(self, view):
        """An index list, and what must live as long."""
        if view.device == "host" or not self.n_edges:
            return s.index_list(host=view.pointer), view
        size = self.n_edges * _arrays.BYTES[view.dtype]
        buffer = self.context._make("buffer_wrap", "buffer", s.POINTER, view.pointer, size)
        return s.index_list(buffer=buffer.value), (view, buffer)


class Convolution(TensorProduct):
    """z[i] = scale * sum over edges e into i of T(x[sender(e)], y[e], w[e])."""

    def _convolve(self, name, graph, arrays, out):
        if graph.context is not self.context:
            raise Error("the graph is of another context than the op")

        def workspace(op):
            least, most = c.c_uint64(), c.c_uint64()
            self.context._call("convolution_workspace", PASSES.index(name), graph._handle,
                              c.byref(least), c.byref(most), handle=op)
            if most.value > self._workspace_bytes:
                self._workspace = self.context._make("buffer_create", "buffer", most.value)
                self._workspace_bytes = most.value
            return (self._workspace,)
        counts = {"x": graph.n_senders, "z": graph.n_receivers, "y": graph.n_edges,
                  "w": 1 if self.shared_weights else graph.n_edges}
        return self._run(name, arrays, out, counts, graph._handle, workspace)

    _workspace, _workspace_bytes = None, 0

    def forward(self, graph: Graph, x: Any, y: Any, w: Any = None,  # type: ignore[override]
                out: Any = None) -> Any:
        """z[n_receivers][Z] of x[n_senders][X], y[n_edges][Y], w[n_edges][W]."""
        return self._convolve("forward", graph, (x, y, w), out)

    def backward(self, graph: Graph, x: Any, y: Any, w: Any, g: Any,  # type: ignore[override]
                 out: Any = None) -> Tuple[Any, ...]:
        """g_x, g_y and g_w, the gradients of sum g z."""
        return self._convolve("backward", graph, (x, y, w, g), out)

    def double_backward(self, graph: Graph, x: Any, y: Any, w: Any,  # type: ignore[override]
                        g: Any, a: Any, b: Any, c: Any = None,
                        out: Any = None) -> Tuple[Any, ...]:
        """d_x, d_y, d_w and d_g, the gradients of sum a g_x + b g_y + c g_w."""
        return self._convolve("double_backward", graph, (x, y, w, g, a, b, c), out)


@_checks.exact_keywords
def convolution(irreps_x: str, irreps_y: str, irreps_z: str, instructions: Sequence[Tuple],
                scale: float = 1.0, atomics: bool = False, device: Union[str, Context] = "",
                dtype: Optional[str] = None, arithmetic: Optional[str] = None,
                layout: str = "mul_ir", shared_weights: bool = False, gradients: str = "xywz",
                irrep_normalization: str = "component",
                path_normalization: str = "element") -> Convolution:
    """The graph convolution; its operands are those of tensor_product, of which it has the options.

    atomics: gradients of x are summed with atomics: faster, and not bitwise reproducible."""
    by, atomic = _checks.number("scale", scale), _checks.flag("atomics", atomics)

    def wrap(desc):
        return s.convolution_desc(product=desc, scale=by, atomics=atomic)
    wanted = Paths(irreps_x, irreps_y, irreps_z, instructions)
    return _product(Convolution, "convolution", wanted, device, wrap, dtype, arithmetic, layout,
                    shared_weights, gradients, irrep_normalization, path_normalization)
