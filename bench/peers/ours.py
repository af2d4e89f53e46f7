"""ours.py - what compare.py needs beyond the Python package: calls that only submit, and everything that was made destroyed at once."""
import ctypes

import clebsch
from clebsch import _structs as structs


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
