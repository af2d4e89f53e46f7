"""libclebsch: where it is; its functions, with the types of their arguments."""
import ctypes as c
import functools
import os
import pathlib

from . import _functions
from ._structs import VERSION

# Where meson-python puts the library and the command of a wheel.
FOLDER = pathlib.Path(__file__).parents[1] / ".clebsch.mesonpy.libs"


class Error(RuntimeError):
    """A call failed; the message is the library's."""

    __module__ = "clebsch"


def path():
    """$CLB_LIBRARY, else the one that came with this package, else the one of the loader."""
    name = "libclebsch.so." + ".".join(VERSION.split(".")[:2])
    beside = FOLDER / name
    return os.environ.get("CLB_LIBRARY") or (str(beside) if beside.exists() else name)


def _with_sizes(function, structs):
    sizes = [c.sizeof(struct) for struct in structs]
    return lambda *arguments: function(*arguments, *sizes)


@functools.lru_cache(maxsize=None)
def load(file=None):
    file = file or path()
    try:
        lib = c.CDLL(file)
    except OSError as error:
        raise Error("libclebsch cannot be loaded; CLB_LIBRARY may name its file: "
                    f"{error}") from None
    for name, arguments in _functions.ARGUMENTS.items():
        sizes = _functions.SIZES.get(name, [])
        called = getattr(lib, f"clb_{name}_sized" if sizes else f"clb_{name}", None)
        if called:
            called.argtypes = arguments + len(sizes) * [c.c_size_t]
            called.restype = _functions.RESULTS.get(name, c.c_int)
            setattr(lib, f"clb_{name}", _with_sizes(called, sizes) if sizes else called)
    found = lib.clb_version().decode() if hasattr(lib, "clb_version") else "something else"
    if found != VERSION:
        raise Error(f"{file} is Clebsch {found}; this package is made for {VERSION}")
    return lib
