"""libclebsch: where it is, and the arguments of its functions."""
import ctypes as c
import functools
import os
import pathlib

from . import _structs as s

# Where meson-python puts the library and the command of a wheel.
FOLDER = pathlib.Path(__file__).parents[1] / ".clebsch.mesonpy.libs"

_handle, _handle_out, _n = c.c_void_p, c.POINTER(c.c_void_p), c.c_int64


class Error(RuntimeError):
    """A call failed; the message is the library's."""

    __module__ = "clebsch"


def _of(kind):
    return c.POINTER(kind)


def _passes(name, first, counts):
    """Forward, backward and double backward: `first`, then so many operands, then a workspace."""
    names = ("forward", "backward", "double_backward")
    last = [_handle] if name == "convolution" else []
    return {f"{name}_{which}": [_handle, first] + n * [s.rows] + last
            for which, n in zip(names, counts)}


# Without `clb_`.  All return a status, but for those that OTHERS names.
ARGUMENTS = {
    "context_create": [c.c_char_p, _handle_out],
    "context_adopt": [c.c_char_p, _of(s.native), _handle_out],
    "context_note": [_handle],
    "context_destroy": [_handle_out],
    "devices": [_handle, _handle],
    "version": [],
    "status_text": [c.c_int],
    "error": [_handle],
    "wait": [_handle],
    "measure_peaks": [_handle] + 3 * [_of(c.c_double)],
    "buffer_create": [_handle, c.c_uint64, _handle_out],
    "buffer_wrap": [_handle, c.c_int, c.c_void_p, c.c_uint64, _handle_out],
    "buffer_write": [_handle, c.c_uint64, c.c_void_p, c.c_uint64],
    "buffer_read": [_handle, c.c_uint64, c.c_void_p, c.c_uint64],
    "buffer_destroy": [_handle_out],
    "op_destroy": [_handle_out],
    **_passes("spherical_harmonics", _n, (2, 3, 5)),
    "channel_wise": [_handle] + 3 * [c.c_char_p] + [c.c_int, _of(s.instructions)],
    "fully_connected": [_handle] + 3 * [c.c_char_p] + [_of(s.instructions)],
    "full": [_handle] + 3 * [c.c_char_p] + [_of(s.instructions)],
    "elementwise": [_handle] + 3 * [c.c_char_p] + [_of(s.instructions)],
    **_passes("tensor_product", _n, (4, 7, 11)),
    **_passes("symmetric_contraction", _n, (3, 5, 8)),
    **_passes("rms_norm", _n, (3, 5, 8)),
    "graph_create": [_handle, _n, _n, _handle_out],
    "graph_update": [_handle, _n, _n, _n, c.c_int, s.index_list, s.index_list],
    "graph_destroy": [_handle_out],
    "convolution_knots": [_handle, _of(c.c_double)],
    "convolution_set_table": [_handle, _of(c.c_double)],
    "convolution_workspace": [_handle, c.c_int, _handle] + 2 * [_of(c.c_uint64)],
    **_passes("convolution", _handle, (4, 7, 11)),
    "optimizer_destroy": [_handle_out],
    "optimizer_step": [_handle],
    "optimizer_average": [_handle],
    "optimizer_state_bytes": [_handle, _of(c.c_uint64)],
    "optimizer_state_read": [_handle, c.c_void_p, c.c_uint64],
    "optimizer_state_write": [_handle, c.c_void_p, c.c_uint64],
    "model_destroy": [_handle_out],
    "model_species": [_handle, c.c_int],
}
# Those that take structs which may grow: the library's function clb_NAME_sized takes the structs'
# sizes after these arguments.
SIZED = {
    "context_device": ([_handle, _of(s.device_info)], [s.device_info]),
    "spherical_harmonics_create": ([_handle, _of(s.spherical_harmonics_desc), _handle_out],
                                   [s.spherical_harmonics_desc]),
    "tensor_product_measure": ([_handle, _of(s.tensor_product_desc), _of(s.tensor_product_sizes)],
                               [s.tensor_product_desc]),
    "tensor_product_create": ([_handle, _of(s.tensor_product_desc), _handle_out],
                              [s.tensor_product_desc]),
    "symmetric_contraction_create": ([_handle, _of(s.symmetric_contraction_desc), _handle_out],
                                     [s.symmetric_contraction_desc]),
    "symmetric_contraction_paths": ([_handle, _of(s.symmetric_contraction_desc), c.c_int, c.c_int,
                                     _of(s.symmetric_paths)], [s.symmetric_contraction_desc]),
    "symmetric_contraction_basis": ([_handle, _of(s.symmetric_contraction_desc), c.c_int,
                                     _of(c.c_double), _n], [s.symmetric_contraction_desc]),
    "rms_norm_create": ([_handle, _of(s.rms_norm_desc), _handle_out], [s.rms_norm_desc]),
    "rms_norm_measure": ([_handle, _of(s.rms_norm_desc), _of(s.rms_norm_sizes)], [s.rms_norm_desc]),
    "convolution_create": ([_handle, _of(s.convolution_desc), _handle_out],
                           [s.convolution_desc, s.tensor_product_desc]),
    "optimizer_create": ([_handle, _of(s.optimizer_desc), _handle_out],
                         [s.optimizer_desc, s.optimizer_tensor, s.optimizer_group]),
    "optimizer_set_group": ([_handle, c.c_int, _of(s.optimizer_group)], [s.optimizer_group]),
    "optimizer_progress": ([_handle, _of(s.progress)], [s.progress]),
    "model_open": ([_handle, c.c_char_p, _of(s.model_options), _handle_out], [s.model_options]),
    "model_describe": ([_handle, _of(s.model_info)], [s.model_info]),
    "model_compute": ([_handle, _of(s.model_atoms), _of(s.model_results)],
                      [s.model_atoms, s.model_results]),
    "model_last_neighbours": ([_handle, _of(s.model_neighbours)], [s.model_neighbours]),
}
ARGUMENTS.update((f"{name}_sized", arguments + len(structs) * [c.c_size_t])
                 for name, (arguments, structs) in SIZED.items())
OTHERS = {**{f"{noun}_destroy": None for noun in ("context", "buffer", "op", "graph", "optimizer", "model")},
          **dict.fromkeys(("version", "status_text", "error", "context_note"), c.c_char_p)}


def path():
    """$CLB_LIBRARY, else the one that came with this package, else the one of the loader."""
    name = "libclebsch.so." + ".".join(s.VERSION.split(".")[:2])
    beside = FOLDER / name
    return os.environ.get("CLB_LIBRARY") or (str(beside) if beside.exists() else name)


def _with_sizes(function, structs):
    sizes = [c.sizeof(struct) for struct in structs]
    return lambda *arguments: function(*arguments, *sizes)


@functools.lru_cache(maxsize=None)
def load(name=None):
    name = name or path()
    try:
        lib = c.CDLL(name)
    except OSError as error:
        raise Error("libclebsch cannot be loaded; CLB_LIBRARY may name its file: "
                    f"{error}") from None
    for function, arguments in ARGUMENTS.items():
        called = getattr(lib, "clb_" + function, None)
        if called:
            called.argtypes, called.restype = arguments, OTHERS.get(function, c.c_int)
    found = lib.clb_version().decode() if hasattr(lib, "clb_version") else "something else"
    if found != s.VERSION:
        raise Error(f"{name} is Clebsch {found}; this package is made for {s.VERSION}")
    for function, (_, structs) in SIZED.items():
        setattr(lib, f"clb_{function}", _with_sizes(getattr(lib, f"clb_{function}_sized"), structs))
    return lib
