"""Ops on arrays: spherical harmonics, tensor products, convolutions.

Each is a function that returns an op, whose passes are methods: forward, backward (gradients of sum
g z) and double_backward (gradients of the sum of a, b, c times the gradients).  clebsch.h has what
they compute; operands have its names and order."""
import collections
import ctypes as c

from . import _arrays
from . import _structs as s
from ._library import Error
from ._op import PASSES, Op, choice, context_of

NORMALIZATIONS = {"component": s.COMPONENT, "norm": s.NORM, "integral": s.INTEGRAL}
IRREP_NORMALIZATIONS = {"component": s.IRREP_COMPONENT, "norm": s.IRREP_NORM, "none": s.IRREP_NONE}
PATH_NORMALIZATIONS = {"element": s.PATH_ELEMENT, "path": s.PATH_PATH, "none": s.PATH_NONE}
LAYOUTS = {"mul_ir": s.MUL_IR, "ir_mul": s.IR_MUL}
ORDERS = {"sorted": s.SORTED, "as_found": s.AS_FOUND}
MODES = {"uvw": s.UVW, "uvu": s.UVU, "uvv": s.UVV, "uuw": s.UUW, "uuu": s.UUU, "uvuv": s.UVUV,
         "uvu<v": s.UVU_HALF, "u<vw": s.UVW_HALF}
BITS = {"x": s.OPERAND_X, "y": s.OPERAND_Y, "w": s.OPERAND_W, "z": s.OPERAND_Z}

Paths = collections.namedtuple("Paths", "irreps_x irreps_y irreps_z instructions")
Paths.__doc__ = """What couples to what: instructions are e3nn's (in1, in2, out, mode, has_weight
[, path_weight])."""


def paths(kind, irreps_x, irreps_y, irreps_z="", order="sorted"):
    """Those of a named product: "channel_wise", "fully_connected", "full" or "elementwise".

    irreps_z: of the second, its irreps; of the others the irreps to keep, "" for all that there are
    (the first has no such default).  order: of channel_wise, "sorted" (MACE) or "as_found"
    (NequIP)."""
    choice("kind", kind, dict.fromkeys(("channel_wise", "fully_connected", "full", "elementwise")))
    order = [choice("order", order, ORDERS)] if kind == "channel_wise" else []
    found, words = s.instructions(), {value: word for word, value in MODES.items()}
    texts = [text.encode() for text in (irreps_x, irreps_y, irreps_z)]
    context_of("cpu:interpreter").call(kind, *texts, *order, c.byref(found))
    return Paths(*(getattr(found, f"irreps_{o}").decode() for o in "xyz"),
                 [(i.in1, i.in2, i.out, words[i.mode], bool(i.has_weight), i.path_weight)
                  for i in found.instructions[:found.n_instructions]])


def _types(dtype, arithmetic):
    storage = choice("dtype", dtype, _arrays.DTYPES)
    other = "f64" if dtype == "f64" else "f32"
    return storage, choice("arithmetic", arithmetic or other, {"f64": s.F64, "f32": s.F32})


class SphericalHarmonics(Op):
    def forward(self, x, out=None):
        """y[n][D] of x[n][3]."""
        return self._run("forward", (x,), out)

    def backward(self, x, g_y, out=None):
        """g_x[n][3], the gradient of sum g_y y."""
        return self._run("backward", (x, g_y), out)

    def double_backward(self, x, g_y, h, out=None):
        """d_x[n][3] and d_g_y[n][D], the gradients of sum h g_x."""
        return self._run("double_backward", (x, g_y, h), out)


def spherical_harmonics(degrees, normalization="component", normalize=False, dtype=None,
                        arithmetic=None, device=""):
    """Real spherical harmonics of these degrees in e3nn's convention.

    device: a name, or a Context.  dtype: "f32", "f64", "f16" or "bf16", of all arrays; None: of
    each call, that of its first operand.  arithmetic: "f32" or "f64", of kernels; None: that of
    dtype."""
    numbers = (c.c_int * len(degrees))(*degrees)
    kind = choice("normalization", normalization, NORMALIZATIONS)
    _types(dtype or "f32", arithmetic)

    def describe(dtype, passes):
        storage, working = _types(dtype, arithmetic)
        return s.spherical_harmonics_desc(
            degrees=numbers, n_degrees=len(numbers), normalization=kind, normalize=int(normalize),
            storage=storage, arithmetic=working, passes=passes)
    operands = {"forward": (["x"], ["y"]), "backward": (["x", "g_y"], ["g_x"]),
                "double_backward": (["x", "g_y", "h"], ["d_x", "d_g_y"])}
    kinds = {"x": "x", "y": "y", "g_y": "y", "g_x": "x", "h": "x", "d_x": "x", "d_g_y": "y"}
    columns = {"x": 3, "y": sum(2 * degree + 1 for degree in degrees)}
    return SphericalHarmonics("spherical_harmonics", context_of(device), dtype, describe, columns,
                              operands, kinds, "xy")


class TensorProduct(Op):
    """columns: of x, y, z and w.  paths: what was asked for."""

    def _counts(self, inputs):
        apart = [None if self.shared_weights and operand and self._kinds[operand.view.what] == "w"
                 else operand for operand in inputs]
        counts = super()._counts(apart)
        return {**counts, "w": 1} if self.shared_weights else counts

    def forward(self, x, y, w=None, out=None):
        """z[n][Z] of x[n][X], y[n][Y], w[n][W]."""
        return self._run("forward", (x, y, w), out)

    def backward(self, x, y, w, g, out=None):
        """g_x, g_y and g_w, the gradients of sum g z."""
        return self._run("backward", (x, y, w, g), out)

    def double_backward(self, x, y, w, g, a, b, c=None, out=None):
        """d_x, d_y, d_w and d_g, the gradients of sum a g_x + b g_y + c g_w."""
        return self._run("double_backward", (x, y, w, g, a, b, c), out)


_OPERANDS = {"forward": (["x", "y", "w"], ["z"]),
             "backward": (["x", "y", "w", "g"], ["g_x", "g_y", "g_w"]),
             "double_backward": (["x", "y", "w", "g", "a", "b", "c"], ["d_x", "d_y", "d_w", "d_g"])}
_KINDS = {"x": "x", "y": "y", "w": "w", "z": "z", "g": "z", "a": "x", "b": "y", "c": "w",
          "g_x": "x", "g_y": "y", "g_w": "w", "d_x": "x", "d_y": "y", "d_w": "w", "d_g": "z"}


def _product(kind, name, wanted, device, wrap, dtype=None, arithmetic=None, layout="mul_ir",
             shared_weights=False, gradients="xywz", irrep_normalization="component",
             path_normalization="element"):
    context, (storage, working) = context_of(device), _types(dtype or "f32", arithmetic)
    irreps_x, irreps_y, irreps_z, instructions = wanted
    steps = (s.instruction * len(instructions))(*(
        s.instruction(i, j, k, choice("mode", mode, MODES), int(weight), *(rest or [1.0]))
        for i, j, k, mode, weight, *rest in instructions))
    layout = choice("layout", layout, LAYOUTS)
    irreps = choice("irrep_normalization", irrep_normalization, IRREP_NORMALIZATIONS)
    computed = sum(choice("gradients", letter, BITS) for letter in set(gradients))
    desc = s.tensor_product_desc(
        irreps_x=irreps_x.encode(), irreps_y=irreps_y.encode(), irreps_z=irreps_z.encode(),
        instructions=steps, n_instructions=len(steps),
        irrep_normalization=irreps,
        path_normalization=choice("path_normalization", path_normalization, PATH_NORMALIZATIONS),
        layout_x=layout, layout_y=layout, layout_z=layout, shared_weights=int(shared_weights),
        gradients=computed, storage=storage, arithmetic=working, passes=1)
    sizes = s.tensor_product_sizes()
    context.call("tensor_product_measure", c.byref(desc), c.byref(sizes))

    def describe(dtype, passes):
        desc.storage, desc.arithmetic = _types(dtype, arithmetic)
        desc.passes = passes
        return wrap(desc)
    columns = {o: getattr(sizes, o) for o in "xyzw"}
    op = kind(name, context, dtype, describe, columns, _OPERANDS, _KINDS, gradients)
    op.shared_weights, op.paths = bool(shared_weights), wanted
    return op


def tensor_product(irreps_x, irreps_y, irreps_z, instructions, device="", **options):
    """The tensor product of e3nn; tensor_product(*paths(...)) is a named one.

    Options: dtype and arithmetic (as of spherical_harmonics), layout ("mul_ir" or "ir_mul"),
    shared_weights, gradients ("xywz": those that derivative passes compute, the others are None),
    irrep_normalization, path_normalization."""
    return _product(TensorProduct, "tensor_product", (irreps_x, irreps_y, irreps_z, instructions),
                    device, lambda desc: desc, **options)


class Graph:
    """Edges from senders to receivers: arrays of int32 or int64, which are copied."""

    def __init__(self, n_receivers, senders, receivers, n_senders=None, device=""):
        self.context = context_of(device)
        self.n_receivers = n_receivers
        self.n_senders = n_receivers if n_senders is None else n_senders
        views = [_arrays.View(array, self.context, what)
                 for array, what in ((senders, "senders"), (receivers, "receivers"))]
        for view in views:
            view.expect(self.context, ("i32", "i64"))
            if len(view.shape) != 1 or view.shape != views[0].shape or view.dtype != views[0].dtype:
                raise ValueError("senders and receivers must be of one type and as many")
            if view.shape[0] > 1 and view.strides[0] != 1:
                raise Error(f"{view.what}: its elements must be adjacent")
        self.n_edges = views[0].shape[0]
        nodes = max(self.n_receivers, self.n_senders)
        self._handle = self.context.make("graph_create", "graph", nodes, self.n_edges)
        lists = [self._list(view) for view in views]
        self.context.call("graph_update", self.n_senders, self.n_receivers, self.n_edges,
                          s.I32 if views[0].dtype == "i32" else s.I64, *(item for item, _ in lists),
                          handle=self._handle)

    def _list(self, view):
        """An index list, and what must live as long."""
        if view.device == "host" or not self.n_edges:
            return s.index_list(host=view.pointer), view
        size = self.n_edges * _arrays.BYTES[view.dtype]
        buffer = self.context.make("buffer_wrap", "buffer", s.POINTER, view.pointer, size)
        return s.index_list(buffer=buffer.value), (view, buffer)


class Convolution(TensorProduct):
    """z[i] = scale * sum over edges e into i of T(x[sender(e)], y[e], w[e])."""

    def _convolve(self, name, graph, arrays, out):
        if graph.context is not self.context:
            raise Error("the graph is of another context than the op")

        def workspace(op):
            least, most = c.c_uint64(), c.c_uint64()
            self.context.call("convolution_workspace", PASSES.index(name), graph._handle,
                              c.byref(least), c.byref(most), handle=op)
            if most.value > self._workspace_bytes:
                self._workspace = self.context.make("buffer_create", "buffer", most.value)
                self._workspace_bytes = most.value
            return (self._workspace,)
        counts = {"x": graph.n_senders, "z": graph.n_receivers, "y": graph.n_edges,
                  "w": 1 if self.shared_weights else graph.n_edges}
        return self._run(name, arrays, out, counts, graph._handle, workspace)

    _workspace, _workspace_bytes = None, 0

    def forward(self, graph, x, y, w=None, out=None):
        """z[n_receivers][Z] of x[n_senders][X], y[n_edges][Y], w[n_edges][W]."""
        return self._convolve("forward", graph, (x, y, w), out)

    def backward(self, graph, x, y, w, g, out=None):
        """g_x, g_y and g_w, the gradients of sum g z."""
        return self._convolve("backward", graph, (x, y, w, g), out)

    def double_backward(self, graph, x, y, w, g, a, b, c=None, out=None):
        """d_x, d_y, d_w and d_g, the gradients of sum a g_x + b g_y + c g_w."""
        return self._convolve("double_backward", graph, (x, y, w, g, a, b, c), out)


def convolution(irreps_x, irreps_y, irreps_z, instructions, scale=1.0, atomics=False, device="",
                **options):
    """The graph convolution; its operands are those of tensor_product, of which it has the options.

    atomics: gradients of x are summed with atomics: faster, and not bitwise reproducible."""
    def wrap(desc):
        return s.convolution_desc(product=desc, scale=scale, atomics=int(atomics))
    return _product(Convolution, "convolution", (irreps_x, irreps_y, irreps_z, instructions),
                    device, wrap, **options)
