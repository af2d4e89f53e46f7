"""clebsch.py - what compare.py needs of libclebsch, through ctypes: the caller's stream and pointers, harmonics, products, convolutions.

`python3 clebsch.py include/clebsch/clebsch.h` compares version, enumerators and structs below with that header, and the syntax of its neighbours; it
needs no library."""
import ctypes as c
import os
import re
import sys

VERSION = "0.2.0"
F64, F32 = 0, 1
FORWARD, BACKWARD, DOUBLE_BACKWARD = 0, 1, 2
MUL_IR, IR_MUL = 0, 1
COMPONENT, NORM, INTEGRAL = 0, 1, 2
UVU = 1
SORTED = 0
POINTER = 0
I32, I64 = 0, 1
DENSE = -1
ENUMERATORS = {"CLB_F64": F64, "CLB_F32": F32, "CLB_FORWARD": FORWARD, "CLB_BACKWARD": BACKWARD, "CLB_DOUBLE_BACKWARD": DOUBLE_BACKWARD, "CLB_MUL_IR": MUL_IR,
               "CLB_IR_MUL": IR_MUL, "CLB_COMPONENT": COMPONENT, "CLB_NORM": NORM, "CLB_INTEGRAL": INTEGRAL, "CLB_UVU": UVU, "CLB_SORTED": SORTED,
               "CLB_POINTER": POINTER, "CLB_I32": I32, "CLB_I64": I64}
MAX_INSTRUCTIONS, IRREPS_BYTES = 512, 8192


def struct(name, *fields):
    return type(name, (c.Structure,), {"_fields_": list(fields)})


def each(kind, names):
    return [(name, kind) for name in names.split()]


native = struct("clb_native", *each(c.c_void_p, "driver context device queue"))
device_info = struct("clb_device_info", *each(c.c_char_p, "name backend vendor description driver"), ("runs", c.c_int), ("memory_bytes", c.c_uint64),
                     ("f64", c.c_int), ("sub_group_sizes", c.c_int * 8))
rows = struct("clb_rows", ("buffer", c.c_void_p), *each(c.c_int64, "offset stride"), ("index", c.c_void_p))
spherical_harmonics_desc = struct("clb_spherical_harmonics_desc", ("degrees", c.POINTER(c.c_int)),
                                  *each(c.c_int, "n_degrees normalization normalize storage arithmetic accumulate"), ("passes", c.c_uint))
instruction = struct("clb_instruction", *each(c.c_int, "in1 in2 out mode has_weight"), ("path_weight", c.c_double))
tensor_product_desc = struct("clb_tensor_product_desc", *each(c.c_char_p, "irreps_x irreps_y irreps_z"), ("instructions", c.POINTER(instruction)),
                             *each(c.c_int, "n_instructions irrep_normalization path_normalization layout_x layout_y layout_z shared_weights"),
                             *each(c.c_uint, "indexed gradients incoming"), *each(c.c_int, "storage arithmetic accumulate"), ("passes", c.c_uint))
tensor_product_sizes = struct("clb_tensor_product_sizes", *each(c.c_int64, "x y z w"))
instructions = struct("clb_instructions", *each(c.c_char * IRREPS_BYTES, "irreps_x irreps_y irreps_z"),
                      ("instructions", instruction * MAX_INSTRUCTIONS), ("n_instructions", c.c_int))
index_list = struct("clb_index_list", *each(c.c_void_p, "host buffer"), ("offset", c.c_int64))
convolution_desc = struct("clb_convolution_desc", ("product", tensor_product_desc), ("scale", c.c_double), *each(c.c_int, "atomics knots"),
                          *each(c.c_double, "first_knot last_knot break_at"), *each(c.c_int, "vectors normalization"))
symmetric_contraction_desc = struct("clb_symmetric_contraction_desc", *each(c.c_int, "ell correlation"), ("degrees", c.POINTER(c.c_int)),
                                    *each(c.c_int, "n_degrees channels n_species layout_x layout_z"), *each(c.c_uint, "gradients incoming"),
                                    *each(c.c_int, "storage arithmetic accumulate"), ("passes", c.c_uint))
symmetric_paths = struct("clb_symmetric_paths", *each(c.c_int, "first count all"))
STRUCTS = [native, device_info, rows, spherical_harmonics_desc, instruction, tensor_product_desc, tensor_product_sizes, instructions, index_list, convolution_desc,
           symmetric_contraction_desc, symmetric_paths]

# ---- the header -------------------------------------------------------------------------------------------------------------------


def differences(header):
    """Sentences: where the header is not what this file says."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    found = re.search(r'#define CLB_VERSION "([^"]*)"', text)
    if not found or found[1] != VERSION:
        yield f"CLB_VERSION is {found and found[1]}, not {VERSION}"
    values = {}
    for body in re.findall(r"enum \{([^}]*)\}", text):
        for i, item in enumerate(body.split(",")):
            name, _, value = item.partition("=")
            values[name.strip()] = int(value) if value.strip() else i
    for name, value in ENUMERATORS.items():
        if values.get(name) != value:
            yield f"{name} is {values.get(name)}, not {value}"
    c_types = {"int": c.c_int, "unsigned": c.c_uint, "int64_t": c.c_int64, "uint64_t": c.c_uint64, "double": c.c_double, "char": c.c_char}
    c_types.update((s.__name__, s) for s in STRUCTS)
    bodies = {name: body for body, name in re.findall(r"typedef struct \{([^}]*)\} (\w+);", text)}
    for s in STRUCTS:
        theirs = list(members(bodies.get(s.__name__, ""), c_types))
        ours = [(name, c.sizeof(kind), issubclass(kind, (c.c_void_p, c.c_char_p, c._Pointer))) for name, kind in s._fields_]
        if theirs != ours:
            yield f"{s.__name__} is {theirs}, not {ours}"


def members(body, c_types):
    """(name, size, whether it is a pointer) of each member of a struct; enumerations are as large as int."""
    for line in filter(None, (line.strip() for line in body.split(";"))):
        kind, declarators = re.match(r"(?:const )?(\w+) (.*)", " ".join(line.split())).groups()
        for declarator in declarators.split(","):
            name, _, extent = declarator.strip().partition("[")
            n = {"": 1, "CLB_IRREPS_BYTES]": IRREPS_BYTES, "CLB_MAX_INSTRUCTIONS]": MAX_INSTRUCTIONS}.get(extent) or int(extent[:-1])
            pointer = name.startswith("*")
            yield name.lstrip("*"), c.sizeof(c.c_void_p) if pointer else n * c.sizeof(c_types.get(kind, c.c_int)), pointer


# ---- the library ------------------------------------------------------------------------------------------------------------------


class Error(Exception):
    pass


def load(path=None):
    path = path or os.environ.get("CLB_LIBRARY") or "libclebsch.so.0"
    lib = c.CDLL(path)
    lib.clb_version.restype = lib.clb_error.restype = lib.clb_status_text.restype = c.c_char_p
    lib.clb_error.argtypes = [c.c_void_p]
    if lib.clb_version().decode() != VERSION:
        raise Error(f"{path} is Clebsch {lib.clb_version().decode()}; this file is made for {VERSION}")
    v, p, r, n = c.c_void_p, c.POINTER(c.c_void_p), rows, c.c_int64
    arguments = {
        "context_create": [c.c_char_p, p], "context_adopt": [c.c_char_p, c.POINTER(native), p], "context_device": [v, c.POINTER(device_info)],
        "wait": [v], "measure_peaks": [v] + 3 * [c.POINTER(c.c_double)], "buffer_create": [v, c.c_uint64, p], "buffer_wrap": [v, c.c_int, v, c.c_uint64, p],
        "spherical_harmonics_create": [v, c.POINTER(spherical_harmonics_desc), p], "spherical_harmonics_forward": [v, n, r, r],
        "spherical_harmonics_backward": [v, n, r, r, r], "spherical_harmonics_double_backward": [v, n] + 5 * [r],
        "channel_wise": [v] + 3 * [c.c_char_p] + [c.c_int, c.POINTER(instructions)],
        "tensor_product_measure": [v, c.POINTER(tensor_product_desc), c.POINTER(tensor_product_sizes)],
        "tensor_product_create": [v, c.POINTER(tensor_product_desc), p], "tensor_product_forward": [v, n] + 4 * [r],
        "tensor_product_backward": [v, n] + 7 * [r], "tensor_product_double_backward": [v, n] + 11 * [r],
        "symmetric_contraction_create": [v, c.POINTER(symmetric_contraction_desc), p], "symmetric_contraction_forward": [v, n] + 3 * [r],
        "symmetric_contraction_backward": [v, n] + 5 * [r], "symmetric_contraction_double_backward": [v, n] + 8 * [r],
        "symmetric_contraction_paths": [v, c.POINTER(symmetric_contraction_desc), c.c_int, c.c_int, c.POINTER(symmetric_paths)],
        "symmetric_contraction_basis": [v, c.POINTER(symmetric_contraction_desc), c.c_int, c.POINTER(c.c_double), n],
        "graph_create": [v, n, n, p], "graph_update": [v, n, n, n, c.c_int, index_list, index_list],
        "convolution_create": [v, c.POINTER(convolution_desc), p], "convolution_workspace": [v, c.c_int, v] + 2 * [c.POINTER(c.c_uint64)],
        "convolution_forward": [v, v] + 4 * [r] + [v], "convolution_backward": [v, v] + 7 * [r] + [v],
        "convolution_double_backward": [v, v] + 11 * [r] + [v]}
    for name, types in arguments.items():
        getattr(lib, "clb_" + name).argtypes = types
    for name in ("context", "buffer", "op", "graph"):
        destroy = getattr(lib, f"clb_{name}_destroy")
        destroy.argtypes, destroy.restype = [p], None
    return lib


class Context:
    """One device; `stream`: the caller's, for cuda and hip.  What is made here is kept until close()."""

    def __init__(self, lib, device, stream=None):
        self.lib, self.handle, self.made, self.wrapped = lib, c.c_void_p(), [], {}
        if stream is None:
            status = lib.clb_context_create(device.encode(), c.byref(self.handle))
        else:
            status = lib.clb_context_adopt(device.encode(), c.byref(native(queue=stream)), c.byref(self.handle))
        self.check(status)
        self.info = device_info()
        self("context_device", c.byref(self.info))

    def check(self, status):
        if status:
            raise Error((self.lib.clb_error(self.handle) or self.lib.clb_status_text(status)).decode(errors="replace"))

    def __call__(self, name, *arguments):
        """A function whose first argument is the context."""
        self.check(getattr(self.lib, "clb_" + name)(self.handle, *arguments))

    def make(self, name, kind, *arguments):
        handle = c.c_void_p()
        self(name, *arguments, c.byref(handle))
        self.made.append((kind, handle))
        return handle

    def rows(self, tensor):
        """The rows of a dense tensor of torch (anything with data_ptr), which is kept alive; None: no rows."""
        if tensor is None:
            return rows()
        pointer, size = tensor.data_ptr(), tensor.numel() * tensor.element_size()
        if not tensor.is_contiguous():
            raise Error("a tensor is not dense")
        if (pointer, size) not in self.wrapped:
            self.wrapped[pointer, size] = self.make("buffer_wrap", "buffer", POINTER, pointer, size), tensor
        return rows(self.wrapped[pointer, size][0], 0, DENSE, None)

    def submit(self, op, name, *arguments):
        """A call without arguments that submits a pass; what it needs is looked up now."""
        function = getattr(self.lib, "clb_" + name)

        def call():
            status = function(op, *arguments)
            if status:
                self.check(status)
        return call

    def channel_wise(self, x, y, keep):
        found = instructions()
        self("channel_wise", x.encode(), y.encode(), keep.encode(), SORTED, c.byref(found))
        return found

    def product_desc(self, found, dtype, layout, passes):
        return tensor_product_desc(irreps_x=found.irreps_x, irreps_y=found.irreps_y, irreps_z=found.irreps_z, instructions=found.instructions,
                                   n_instructions=found.n_instructions, layout_x=layout, layout_y=layout, layout_z=layout, storage=dtype, arithmetic=dtype,
                                   passes=sum(1 << p for p in passes))

    def graph(self, n_nodes, senders, receivers):
        """From int64 arrays of numpy."""
        handle = self.make("graph_create", "graph", n_nodes, len(senders))
        lists = [index_list(host=a.ctypes.data) for a in (senders, receivers)]
        self.check(self.lib.clb_graph_update(handle, n_nodes, n_nodes, len(senders), I64, *lists))
        return handle

    def workspace(self, op, which, graph):
        least, most = c.c_uint64(), c.c_uint64()
        self.check(self.lib.clb_convolution_workspace(op, which, graph, c.byref(least), c.byref(most)))
        return most.value

    def ceilings(self):
        values = [c.c_double() for _ in range(3)]
        self("measure_peaks", *map(c.byref, values))
        return [v.value for v in values]

    def wait(self):
        self("wait")

    def release(self):
        """Destroys what was made, the last first."""
        self.wait()
        for kind, handle in reversed(self.made):
            getattr(self.lib, f"clb_{kind}_destroy")(c.byref(handle))
        self.made, self.wrapped = [], {}

    def close(self):
        self.release()
        self.lib.clb_context_destroy(c.byref(self.handle))


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        wrong = list(differences(file.read()))
    if wrong:
        sys.exit("\n".join([f"{sys.argv[1]} and this file differ:"] + wrong))
    folder = os.path.dirname(os.path.abspath(__file__))
    for name in filter(lambda name: name.endswith(".py"), os.listdir(folder)):
        with open(os.path.join(folder, name)) as file:
            compile(file.read(), name, "exec")
