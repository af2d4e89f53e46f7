"""peers.py - one class per library: whether it is there, what it takes, and a function of its public interface for each op.

A work (compare.py) has operands x (and y, w) and the incoming g, a, b, c as rows in e3nn's convention: mul_ir, paths in the order of
clb_channel_wise, components of harmonics.  A library may want other columns in another order or another scale of its results: `Native` says
so, and rows are rearranged outside of what is timed."""
import contextlib
import ctypes
import importlib.metadata
import math

import numpy as np
import torch
from clebsch import _structs as structs

PASSES = ["forward", "backward", "double_backward"]


def irreps(text):
    """[(mul, l, parity as a letter)]"""
    terms = []
    for term in filter(None, text.replace(" ", "").split("+")):
        mul, x, ir = term.rpartition("x")
        terms.append((int(mul) if x else 1, int(ir[:-1]), ir[-1]))
    return terms


def ir_mul_columns(text):
    """Of each column in ir_mul, its column in mul_ir; and where each term starts."""
    columns, starts = [], [0]
    for mul, l, _ in irreps(text):
        columns.append(starts[-1] + np.arange(mul * (2 * l + 1)).reshape(mul, 2 * l + 1).T.ravel())
        starts.append(starts[-1] + mul * (2 * l + 1))
    return np.concatenate(columns), starts


class Native:
    """columns[kind]: of each of the library's columns, the standard one (kinds x, y, w, z; none: the same).  scale: standard z = scale * theirs."""

    def __init__(self, layout="mul_ir", columns=None, scale=1.0):
        self.layout, self.columns, self.scale = layout, columns or {}, scale

    def give(self, kind, tensor):
        tensor = tensor * self.scale if kind == "z" and self.scale != 1 else tensor
        return tensor[:, torch.as_tensor(self.columns[kind], device=tensor.device)].contiguous() if kind in self.columns else tensor.contiguous()

    def take(self, kind, tensor):
        if kind in self.columns:
            standard = torch.empty_like(tensor)
            standard[:, torch.as_tensor(self.columns[kind], device=tensor.device)] = tensor
            tensor = standard
        return tensor * self.scale if kind == "z" and self.scale != 1 else tensor


# ---- ours -------------------------------------------------------------------------------------------------------------------------


class Clebsch:
    distribution, ops, variants = None, ("spherical_harmonics", "tensor_product", "convolution"), ("ir_mul", "mul_ir", "atomics")

    def __init__(self, context):
        self.context = context

    def passes(self, work, variant):
        """A Native, and one after the other (pass, a call, what it writes) of the passes that make a difference in this variant."""
        product = work.op != "spherical_harmonics"
        layout = structs.MUL_IR if variant == "mul_ir" else structs.IR_MUL
        if (variant == "mul_ir" and not product) or (variant == "atomics" and work.op != "convolution"):
            return None, ()
        wanted = [name for name in work.passes if variant != "atomics" or name != "forward"]
        native = Native()
        if product and layout == structs.IR_MUL:
            native = Native("ir_mul", {"x": ir_mul_columns(work.irreps_x)[0], "z": ir_mul_columns(work.irreps_z)[0]})
        t = {name: native.give(work.kinds[name], tensor) for name, tensor in work.tensors.items()}
        op = self.product(work, layout, variant == "atomics", wanted) if product else self.harmonics(work, wanted)
        return native, ((name, *self.call(work, op, name, t)) for name in wanted)

    def call(self, work, op, name, t):
        ctx, (inputs, outputs) = self.context, work.arguments(name)
        results = [torch.zeros_like(t[like]) for like in outputs]
        rows = [ctx.rows(t[i]) for i in inputs] + [ctx.rows(r) for r in results]
        if work.op != "convolution":
            return ctx.submit(op, f"{work.op}_{name}", work.rows, *rows), results
        size = ctx.workspace(op, PASSES.index(name), work.handle)
        return ctx.submit(op, f"{work.op}_{name}", work.handle, *rows, ctx._make("buffer_create", "buffer", size) if size else None), results

    def harmonics(self, work, passes):
        degrees = (ctypes.c_int * (work.l_max + 1))(*range(work.l_max + 1))
        desc = structs.spherical_harmonics_desc(degrees=degrees, n_degrees=work.l_max + 1, normalization=structs.COMPONENT, storage=work.clb_dtype,
                                                arithmetic=work.clb_dtype, passes=sum(1 << PASSES.index(p) for p in passes))
        return self.context._make("spherical_harmonics_create", "op", ctypes.byref(desc))

    def product(self, work, layout, atomics, passes):
        desc = self.context.product_desc(work.found, work.clb_dtype, layout, [PASSES.index(p) for p in passes])
        if work.op == "convolution":
            desc = structs.convolution_desc(product=desc, atomics=int(atomics))
        return self.context._make(f"{work.op}_create", "op", ctypes.byref(desc))


# ---- theirs, through torch --------------------------------------------------------------------------------------------------------


class Peer:
    ops, variants, devices, distribution = (), ("",), ("cuda", "cpu"), None

    def available(self):
        """None, or why it is not."""
        try:
            self.load()
        except Exception as error:  # whatever a broken installation raises
            return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"

    def version(self):
        try:
            return importlib.metadata.version(self.distribution)
        except importlib.metadata.PackageNotFoundError:
            return "?"

    def passes(self, work, variant):
        """As Clebsch's; calls return what they make.  The graph of autograd is made before, outside of what is timed."""
        if work.op not in self.ops or not self.takes(work, variant):
            return None, ()
        function, native = getattr(self, work.op)(work, variant)
        t = {name: native.give(work.kinds[name], tensor).detach().requires_grad_(name in work.operands + ("g",)) for name, tensor in work.tensors.items()}
        return native, ((name, getattr(self, name)(work, function, t), None) for name in work.passes)

    def forward(self, work, function, t):
        operands = [t[name] for name in work.operands]

        def call():
            with torch.no_grad():
                return function(*operands),
        return call

    def backward(self, work, function, t):
        operands, g = [t[name] for name in work.operands], t["g"].detach()
        z = function(*operands)
        return lambda: torch.autograd.grad(z, operands, g, retain_graph=True)

    def double_backward(self, work, function, t):
        operands, incoming = [t[name] for name in work.operands], [t[name] for name in work.incoming]
        gradients = torch.autograd.grad(function(*operands), operands, t["g"], create_graph=True)
        return lambda: torch.autograd.grad(gradients, operands + [t["g"]], incoming, retain_graph=True, allow_unused=True)

    def takes(self, work, variant):
        return True


def on_edges(product, work):
    """A product made a convolution by gathering and adding up, as models without a fused one do it."""
    def function(x, y, w):
        messages = product(x[work.senders], y, w)
        return messages.new_zeros(work.nodes, messages.shape[1]).index_add(0, work.receivers, messages)
    return function


@contextlib.contextmanager
def default_dtype(dtype):
    """Of the constants that e3nn makes meanwhile."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


class E3nn(Peer):
    name, distribution, ops = "e3nn", "e3nn", ("spherical_harmonics", "tensor_product", "convolution")

    def load(self):
        import e3nn.o3
        self.o3 = e3nn.o3

    def spherical_harmonics(self, work, variant):
        return self.o3.SphericalHarmonics(list(range(work.l_max + 1)), normalize=False, normalization="component"), Native()

    def tensor_product(self, work, variant):
        with default_dtype(work.dtype):
            product = self.o3.TensorProduct(work.irreps_x, work.irreps_y, work.irreps_z, work.instructions, shared_weights=False, internal_weights=False)
        return product.to(work.device), Native()

    def convolution(self, work, variant):
        product, native = self.tensor_product(work, variant)
        return on_edges(product, work), native


class OpenEquivariance(Peer):
    name, distribution, ops, devices = "openequivariance", "openequivariance", ("tensor_product", "convolution"), ("cuda",)
    variants = ("mul_ir", "ir_mul", "deterministic")  # the last: of convolutions, mul_ir

    def load(self):
        import openequivariance
        self.oeq = openequivariance
        if not openequivariance.BUILT_EXTENSION:
            raise RuntimeError(str(openequivariance.BUILT_EXTENSION_ERROR))

    def takes(self, work, variant):
        return work.op == "convolution" or variant != "deterministic"

    def problem(self, work, variant):
        layout = "ir_mul" if variant == "ir_mul" else "mul_ir"
        dtype = np.float32 if work.dtype == torch.float32 else np.float64
        problem = self.oeq.TPProblem(work.irreps_x, work.irreps_y, work.irreps_z, work.instructions, shared_weights=False, internal_weights=False,
                                     irrep_dtype=dtype, weight_dtype=dtype, layout=layout)
        if layout == "mul_ir":
            return problem, Native()
        return problem, Native("ir_mul", {"x": ir_mul_columns(work.irreps_x)[0], "z": ir_mul_columns(work.irreps_z)[0]})

    def tensor_product(self, work, variant):
        problem, native = self.problem(work, variant)
        return self.oeq.TensorProduct(problem), native

    def convolution(self, work, variant):
        problem, native = self.problem(work, variant)
        deterministic = variant == "deterministic"
        product = self.oeq.TensorProductConv(problem, deterministic=deterministic)
        order = torch.argsort(work.senders * work.nodes + work.receivers) if deterministic else None
        return (lambda x, y, w: product(x, y, w, work.receivers, work.senders, order)), native


class FlashTP(Peer):
    name, distribution, ops, devices = "flashtp", "flashTP_e3nn", ("convolution",), ("cuda",)

    def load(self):
        import e3nn.o3
        import flashTP_e3nn
        self.o3, self.flash = e3nn.o3, flashTP_e3nn

    def convolution(self, work, variant):
        if any(mul % 32 for mul, _, _ in irreps(work.irreps_x)):
            raise NotImplementedError(f"multiplicities of x are to be multiples of 32, not those of {work.irreps_x}")
        kib = torch.cuda.get_device_properties(work.device).shared_memory_per_block_optin // 1024  # it knows A100 and H100, else takes 48
        with default_dtype(work.dtype):
            product = self.flash.uvu_TP(*(self.o3.Irreps(i) for i in (work.irreps_x, work.irreps_y, work.irreps_z)), work.instructions, smem_size=kib,
                                        device=work.device, dtype=work.dtype)
        senders, receivers = work.senders.int(), work.receivers.int()
        return (lambda x, y, w: product(x, y, w, senders, receivers)), Native()


class CuEquivariance(Peer):
    name, distribution, ops = "cuequivariance", "cuequivariance-torch", ("spherical_harmonics", "tensor_product", "convolution")

    def load(self):
        import cuequivariance
        import cuequivariance_torch
        self.cue, self.torch = cuequivariance, cuequivariance_torch

    def version(self):
        try:
            import cuequivariance_ops_torch
            return f"{super().version()}, kernels {cuequivariance_ops_torch.__version__}"
        except Exception as error:  # it falls back to torch then, whatever the reason
            absent = isinstance(error, ModuleNotFoundError) and error.name == "cuequivariance_ops_torch"
            return f"{super().version()} without kernels" + ("" if absent else f" ({error})"[:80])

    def spherical_harmonics(self, work, variant):
        return self.torch.SphericalHarmonics(list(range(work.l_max + 1)), normalize=False, device=work.device, math_dtype=work.dtype), Native()

    def product(self, work):
        """Its paths have an order of their own: it is read off the descriptor, path by path."""
        x, y, keep = (self.cue.Irreps("O3", i) for i in (work.irreps_x, work.irreps_y, work.filter))
        kept = [ir for _, ir in keep]
        product = self.torch.ChannelWiseTensorProduct(x, y, kept, layout=self.cue.ir_mul, shared_weights=False, internal_weights=False, device=work.device,
                                                      dtype=work.dtype, math_dtype=work.dtype)
        described = self.cue.descriptors.channelwise_tensor_product(x, y, kept)
        paths = described.polynomial.operations[0][1].paths
        z_columns, z_starts = ir_mul_columns(work.irreps_z)
        terms, out = irreps(work.irreps_z), irreps(str(product.irreps_out))
        ours, w_starts = {}, [0]
        for i, (in1, in2, iz, *_) in enumerate(work.instructions):
            ours[in1, in2, terms[iz][1:]] = i
            w_starts.append(w_starts[-1] + terms[iz][0])
        w, z = {}, {}
        for path in paths:
            i_w, in1, in2, i_z = path.indices
            i = ours[in1, in2, out[i_z][1:]]
            iz = work.instructions[i][2]
            w[i_w] = np.arange(w_starts[i], w_starts[i + 1])
            z[i_z] = z_columns[z_starts[iz]:z_starts[iz + 1]]
        columns = {"x": ir_mul_columns(work.irreps_x)[0], "w": np.concatenate([w[i] for i in sorted(w)]), "z": np.concatenate([z[i] for i in sorted(z)])}
        return product, Native("ir_mul", columns)

    def tensor_product(self, work, variant):
        return self.product(work)

    def convolution(self, work, variant):
        product, native = self.product(work)
        return (lambda x, y, w: product(x, y, w, indices_1=work.senders, indices_out=work.receivers, size_out=work.nodes)), native


class LunaEquivariance(Peer):
    """nvcc compiles its kernels when a pass is first called, for minutes.  A convolution's graph is prepared once."""
    name, distribution, ops, devices = "lunaequivariance", "LunaEquivariance", ("tensor_product", "convolution"), ("cuda",)

    def load(self):
        import LunaEquivariance
        self.luna = LunaEquivariance

    def prepared(self, work, convolution):
        return self.luna.prepare_tensor_product(work.irreps_x, work.irreps_y, work.irreps_z, work.instructions, shared_weights=False, dtype=work.dtype,
                                                convolution=convolution)

    def tensor_product(self, work, variant):
        config = self.prepared(work, False)
        return lambda x, y, w: self.luna.tensor_product(x, y, w, config=config), Native()

    def convolution(self, work, variant):
        config, graph = self.prepared(work, True), self.luna.make_graph(work.senders, work.receivers, work.nodes)
        return lambda x, y, w: self.luna.tensor_product_conv(x, y, w, graph=graph, config=config), Native()


class Sphericart(Peer):
    name, distribution, ops = "sphericart", "sphericart-torch", ("spherical_harmonics",)

    def load(self):
        import sphericart.torch
        self.torch = sphericart.torch

    def spherical_harmonics(self, work, variant):
        return self.torch.SolidHarmonics(work.l_max), Native("mul_ir", {"x": np.array([2, 0, 1])}, math.sqrt(4 * math.pi))


class EquiTriton(Peer):
    name, distribution, ops, devices = "equitriton", "equitriton", ("spherical_harmonics",), ("cuda",)

    def load(self):
        from equitriton.sph_harm.direct import TritonSphericalHarmonic
        self.harmonics = TritonSphericalHarmonic

    def spherical_harmonics(self, work, variant):
        degrees = list(range(work.l_max + 1))
        if work.l_max > 10:
            raise NotImplementedError("degrees end at 10")
        if 64 * len(degrees) ** 2 * work.rows >= 2**31:  # a block of 64 is started for every row; masked by an offset that must not wrap
            raise NotImplementedError(f"offsets of 32 bits: at most {(2**31 - 1) // (64 * len(degrees) ** 2)} rows (--rows)")
        return (lambda x: self.harmonics.apply(degrees, x)), Native()

    def double_backward(self, work, function, t):
        raise NotImplementedError("no second derivatives")


PEERS = [E3nn(), OpenEquivariance(), FlashTP(), CuEquivariance(), LunaEquivariance(), Sphericart(), EquiTriton()]
