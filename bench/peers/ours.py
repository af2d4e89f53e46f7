"""ours.py - what compare.py needs beyond the Python package: calls that only submit, and everything that was made destroyed at once."""
import ctypes

import clebsch
from clebsch import _structs as structs


# ---- optimizers, which the package does not have ----

RULES = {"sgd": 0, "adam": 1, "adamw": 2, "schedule_free": 3}
CLIP_TORCH, EMA_CONSTANT = 1, 3


class Place(ctypes.Structure):
    _fields_ = [("buffer", ctypes.c_void_p), ("offset", ctypes.c_int64)]


class Tensor(ctypes.Structure):
    _fields_ = [("rows", ctypes.c_int64), ("columns", ctypes.c_int64), ("group", ctypes.c_int)] + \
        [(name, Place) for name in ("parameters", "gradients", "copy", "average")]


class Group(ctypes.Structure):
    _fields_ = [("rule", ctypes.c_int)] + \
        [(name, ctypes.c_double) for name in ("lr", "weight_decay", "beta1", "beta2", "epsilon",
                                              "momentum", "dampening")] + \
        [("nesterov", ctypes.c_int), ("amsgrad", ctypes.c_int), ("warm_up_steps", ctypes.c_int64)]


class Optimizer(ctypes.Structure):
    _fields_ = [("tensors", ctypes.POINTER(Tensor)), ("n_tensors", ctypes.c_int64),
                ("groups", ctypes.POINTER(Group))] + \
        [(name, ctypes.c_int) for name in ("n_groups", "parameters", "gradients", "copy", "clip")] + \
        [("max_norm", ctypes.c_double), ("check_finite", ctypes.c_int), ("ema", ctypes.c_int),
         ("ema_decay", ctypes.c_double)]


class Context(clebsch.Context):
    """What is made here is kept until release()."""

    def __init__(self, library, device, stream=None):
        self.made, self.wrapped = [], {}
        super().__init__(device, stream, library)

    def _make(self, name, kind, *arguments):
        self.made.append(super()._make(name, kind, *arguments))
        return self.made[-1]

    def rows(self, tensor):
        """The rows of a dense tensor of torch, which is kept alive; None: no rows."""
        if tensor is None:
            return structs.rows()
        pointer, size = tensor.data_ptr(), tensor.numel() * tensor.element_size()
        if not tensor.is_contiguous():
            raise clebsch.Error("a tensor is not dense")
        if (pointer, size) not in self.wrapped:
            self.wrapped[pointer, size] = self._make("buffer_wrap", "buffer", structs.POINTER, pointer, size), tensor
        return structs.rows(self.wrapped[pointer, size][0].value, 0, structs.DENSE, None)

    def submit(self, op, name, *arguments):
        """A call without arguments that submits a pass; what it needs is looked up now."""
        function = getattr(self._lib, "clb_" + name)

        def call():
            status = function(op, *arguments)
            if status:
                self._check(status)
        return call

    def channel_wise(self, x, y, keep):
        found = structs.instructions()
        self._call("channel_wise", x.encode(), y.encode(), keep.encode(), structs.SORTED, ctypes.byref(found))
        return found

    def product_desc(self, found, dtype, layout, passes):
        return structs.tensor_product_desc(irreps_x=found.irreps_x, irreps_y=found.irreps_y, irreps_z=found.irreps_z, instructions=found.instructions,
                                           n_instructions=found.n_instructions, layout_x=layout, layout_y=layout, layout_z=layout, storage=dtype,
                                           arithmetic=dtype, passes=sum(1 << p for p in passes))

    def optimizer(self, rule, numbers, parameters, gradients, average=None, clip=False, ema=0.0):
        """A call that submits a step of f32 tensors, all in one group.  average: tensors that get
        the moving average of decay `ema`; clip: the norm is computed, and clips nothing."""
        place = lambda t: Place(self.rows(t).buffer) if t is not None else Place()  # noqa: E731
        averages = average or [None] * len(parameters)
        tensors = [Tensor(p.shape[0], p.numel() // p.shape[0], 0, place(p), place(g), Place(), place(s))
                   for p, g, s in zip(parameters, gradients, averages)]
        desc = Optimizer(tensors=(Tensor * len(tensors))(*tensors), n_tensors=len(tensors),
                         groups=ctypes.pointer(Group(rule=RULES[rule], **numbers)), n_groups=1,
                         clip=CLIP_TORCH if clip else 0, max_norm=1e30 if clip else 0.0,
                         ema=EMA_CONSTANT if average else 0, ema_decay=ema if average else 0.0)
        lib, sizes = self._lib, [ctypes.sizeof(kind) for kind in (Optimizer, Tensor, Group)]
        create = lib.clb_optimizer_create_sized
        create.argtypes = 3 * [ctypes.c_void_p] + 3 * [ctypes.c_size_t]
        lib.clb_optimizer_create = lambda *arguments: create(*arguments, *sizes)
        lib.clb_optimizer_destroy.restype = None
        handle = self._make("optimizer_create", "optimizer", ctypes.byref(desc))
        return self.submit(handle, "optimizer_step")

    def graph(self, n_nodes, senders, receivers):
        """From int64 arrays of numpy."""
        handle = self._make("graph_create", "graph", n_nodes, len(senders))
        lists = [structs.index_list(host=a.ctypes.data) for a in (senders, receivers)]
        self._call("graph_update", n_nodes, n_nodes, len(senders), structs.I64, *lists, handle=handle)
        return handle

    def workspace(self, op, which, graph):
        least, most = ctypes.c_uint64(), ctypes.c_uint64()
        self._call("convolution_workspace", which, graph, ctypes.byref(least), ctypes.byref(most), handle=op)
        return most.value

    def ceilings(self):
        values = [ctypes.c_double() for _ in range(3)]
        self._call("measure_peaks", *map(ctypes.byref, values))
        return [v.value for v in values]

    def release(self):
        """Destroys what was made, the last first."""
        self.wait()
        for handle in reversed(self.made):
            handle.destroy()
        self.made, self.wrapped = [], {}
