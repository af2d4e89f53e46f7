"""handler.c, compiled and loaded; what it is told of contexts and of passes."""
from __future__ import annotations

import ctypes as c
import functools
import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile

import jax

from .. import _library, _nvrtc
from .._context import Context
from .._library import Error

TARGET = "clebsch"
MOST_OPERANDS = 18
COMPILERS = ("cc", "gcc", "clang")
HERE = pathlib.Path(__file__).resolve().parent


class Operand(c.Structure):
    """`operand` of handler.c."""
    _fields_ = [("columns", c.c_int64), ("fixed", c.c_int64)]


class Call(c.Structure):
    """`call` of handler.c."""
    _fields_ = [("id", c.c_int64), ("where", c.c_void_p), ("op", c.c_void_p),
                ("function", c.c_void_p), ("pass_", c.c_int32), ("n_inputs", c.c_int32),
                ("n_operands", c.c_int32), ("element_bytes", c.c_int32), ("of_graph", c.c_int32),
                ("n_species", c.c_int32), ("i_weights", c.c_int32),
                ("operands", Operand * MOST_OPERANDS)]


class Lock:
    """handler.c's, which XLA's threads take without Python's."""

    def __enter__(self):
        load().clebsch_jax_lock()

    def __exit__(self, *_):
        load().clebsch_jax_unlock()


class XlaContext(Context):
    """A context whose calls by Python and by XLA follow each other.  It is not closed when Python
    ends, nor are passes that XLA calls: it may still be computing.

    Of a GPU it has a stream of its own, for which XLA's waits."""

    _new_lock = Lock

    def __init__(self, device: str) -> None:
        kind, _, number = device.partition(":")
        gpu = int(number or 0) if kind == "cuda" else -1
        if gpu >= 0:
            _nvrtc.preload(device)
            jax.devices("cuda")  # which opens the driver as XLA wants it
        self.place = load().clebsch_jax_place(gpu)
        if not self.place:
            raise Error(f"clebsch.jax: there is no {device} of CUDA's driver")
        super().__init__(device, load().clebsch_jax_stream(self.place) if gpu >= 0 else None)
        self._end.atexit = False
        load().clebsch_jax_open(self.place, self)


@functools.lru_cache(maxsize=None)
def context_of(device):
    return XlaContext(device)


def usual_device():
    """That of JAX's arrays."""
    return "cuda:0" if jax.devices()[0].device_kind.startswith("NVIDIA") else "cpu"


def _headers():
    """Folders of clebsch/clebsch.h and of XLA's: in a wheel the former is in the package."""
    own = [folder for folder in (HERE.parent / "include", HERE.parents[2] / "include")
           if (folder / "clebsch" / "clebsch.h").exists()]
    if not own:
        raise Error(f"clebsch.jax: there is no include/clebsch/clebsch.h beside {HERE.parent}")
    return own[0], pathlib.Path(jax.ffi.include_dir())


def _cache():
    """Clebsch's folder of kernels; None: nothing is to be kept."""
    own, home = os.environ.get("CLB_CACHE_DIR"), os.environ.get("HOME")
    if own == "off":
        return None
    if own:
        return pathlib.Path(own)
    xdg = os.environ.get("XDG_CACHE_HOME") or (home and os.path.join(home, ".cache"))
    return pathlib.Path(xdg, "clebsch") if xdg else None


def _compile(source, folders, to):
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if not compiler:
        raise Error("clebsch.jax compiles a small file in C when it is first imported, for which "
                    f"there is no compiler: none of {', '.join(COMPILERS)} is in PATH")
    command = [compiler, "-std=gnu11", "-O2", "-w", "-fPIC", "-shared", "-fvisibility=hidden",
               "-pthread", *(f"-I{folder}" for folder in folders), str(source), "-o", str(to), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Error(f"clebsch.jax: {' '.join(command)} failed:\n{done.stderr}")


def _built(folder, name, source, folders):
    """The file in this folder, made if it is not there."""
    made = folder / name
    if not made.exists():
        folder.mkdir(parents=True, exist_ok=True)
        number, beside = tempfile.mkstemp(dir=folder)
        os.close(number)
        try:
            _compile(source, folders, beside)
            os.replace(beside, made)
        finally:
            if os.path.exists(beside):
                os.unlink(beside)
    return made


@functools.lru_cache(maxsize=None)
def load():
    """Its functions; XLA knows the handlers afterwards."""
    source, folders = HERE / "handler.c", _headers()
    texts = [file.read_bytes() for file in (
        source, folders[0] / "clebsch" / "clebsch.h",
        folders[1] / "xla" / "ffi" / "api" / "c_api.h")]
    name = f"jax-{hashlib.sha256(b''.join(texts)).hexdigest()[:16]}.so"
    _library.load()
    c.CDLL(_library.path(), mode=c.RTLD_GLOBAL)  # handler.c finds its functions there
    cache = _cache()
    try:
        with tempfile.TemporaryDirectory() as unkept:
            lib = c.CDLL(str(_built(cache or pathlib.Path(unkept), name, source, folders)))
    except OSError as error:
        raise Error(f"clebsch.jax: {name} cannot be made or loaded: {error}") from None
    lib.clebsch_jax_place.restype = c.c_void_p
    lib.clebsch_jax_stream.restype = c.c_void_p
    lib.clebsch_jax_stream.argtypes = [c.c_void_p]
    lib.clebsch_jax_open.argtypes = [c.c_void_p, c.c_void_p]
    lib.clebsch_jax_add.argtypes = [c.POINTER(Call)]
    handlers = {"cpu": lib.clebsch_jax_handler, "CUDA": lib.clebsch_jax_cuda,
                "ROCM": lib.clebsch_jax_elsewhere}
    for platform, handler in handlers.items():
        jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(handler), platform=platform)
    return lib


def add(call):
    if not load().clebsch_jax_add(c.byref(call)):
        raise Error("clebsch.jax: out of memory")
