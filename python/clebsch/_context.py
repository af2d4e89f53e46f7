"""A context and what is made in it, each destroyed with the last reference to it."""
from __future__ import annotations

import ctypes as c
import dataclasses
import threading
import warnings
import weakref
from typing import Any, Callable, List, Optional, Tuple

from . import _checks, _library, _nvrtc
from . import _structs as s


@dataclasses.dataclass(frozen=True)
class Device:
    """A device that was found, or a target that only compiles."""

    name: str
    """what Context and Model take: "cuda:0", "opencl:0:1", "cpu", "hip@gfx942" """
    backend: str
    vendor: str
    description: str
    driver: str
    runs: bool
    """False: it only compiles"""
    memory_bytes: int
    """0 where unknown"""
    f64: bool
    """it computes in double precision"""
    sub_group_sizes: Tuple[int, ...]


def _device(info):
    texts = (getattr(info, key).decode(errors="replace")
             for key in ("name", "backend", "vendor", "description", "driver"))
    return Device(*texts, bool(info.runs), info.memory_bytes, bool(info.f64),
                  tuple(size for size in info.sub_group_sizes if size))


def devices() -> List[Device]:
    """Every device that is found here, then every target whose compiler is installed."""
    _nvrtc.preload("")
    found: List[Device] = []
    each = c.CFUNCTYPE(None, c.POINTER(s.device_info), c.c_void_p)(
        lambda info, _: found.append(_device(info[0])))
    lib = _library.load()
    status = lib.clb_devices(c.cast(each, c.c_void_p), None)
    if status:
        raise _library.Error(lib.clb_status_text(status).decode())
    return found


def _destroy(lib, lock, kind, pointer):
    with lock:
        getattr(lib, f"clb_{kind}_destroy")(c.byref(pointer))


class Handle:
    """A buffer, graph, op or model of a context; ctypes takes it where a pointer is wanted."""

    def __init__(self, context, kind, pointer):
        self.context, self._as_parameter_ = context, pointer
        self._end = weakref.finalize(self, _destroy, context._lib, context._lock, kind,
                                     pointer)

    @property
    def value(self):
        return self._as_parameter_.value

    def destroy(self):
        self._end()


class Context:
    """One open device.

    device: a name that `clebsch devices` shows; "": $CLB_DEVICE, else the first that opens.
    stream: the caller's, for cuda and hip, as an integer (torch.cuda.current_stream().cuda_stream;
    0: the legacy default stream): work goes there, in order, and is not waited for.  Calls from
    several threads follow each other.  library: the name of libclebsch; None: as docs/python.md
    says.  device of a context is its clebsch.Device."""

    _new_lock: Callable[[], Any] = staticmethod(threading.RLock)

    @_checks.exact_keywords
    def __init__(self, device: str = "", stream: Optional[int] = None,
                 library: Optional[str] = None) -> None:
        _checks.text("device", device)
        self.stream = None if stream is None else _checks.count("stream", stream, 0, 2**64 - 1)
        self._lib, self._lock = _library.load(library), self._new_lock()
        _nvrtc.preload(device)
        self._as_parameter_ = c.c_void_p()
        if stream is None:
            status = self._lib.clb_context_create(device.encode(), c.byref(self._as_parameter_))
        else:
            theirs = s.native(queue=self.stream or None)
            status = self._lib.clb_context_adopt(device.encode(), c.byref(theirs),
                                                c.byref(self._as_parameter_))
        self._end = weakref.finalize(self, _destroy, self._lib, self._lock, "context",
                                     self._as_parameter_)
        self._check(status)
        info = s.device_info()
        self._call("context_device", c.byref(info))
        self.device = _device(info)
        self.name, self.backend, self.vendor, self.description, self.driver = (
            getattr(self.device, key)
            for key in ("name", "backend", "vendor", "description", "driver"))
        self._noted = None
        self._warn(stacklevel=5)

    def _warn(self, stacklevel):
        """Of what makes no call fail but costs time: kernels are interpreted, or not kept."""
        with self._lock:
            note = self._lib.clb_context_note(self)
        if note and note != self._noted:
            self._noted = note
            warnings.warn("Clebsch: " + note.decode(errors="replace"), RuntimeWarning, stacklevel)

    def _check(self, status):
        if status:
            said = self._lib.clb_error(self._as_parameter_) or self._lib.clb_status_text(status)
            raise _library.Error(said.decode(errors="replace"))

    def _call(self, name, *arguments, handle=None):
        """A function whose first argument is `handle`, or else the context."""
        with self._lock:
            function = getattr(self._lib, "clb_" + name)
            self._check(function(self if handle is None else handle, *arguments))

    def _make(self, name, kind, *arguments, handle=None):
        pointer = c.c_void_p()
        self._call(name, *arguments, c.byref(pointer), handle=handle)
        self._warn(stacklevel=4)
        return Handle(self, kind, pointer)

    def wait(self) -> None:
        """Until everything submitted has finished."""
        self._call("wait")

    def __repr__(self) -> str:
        return f"<clebsch.Context {self.name}: {self.description}>"

    def __reduce__(self):
        raise TypeError("a clebsch.Context cannot be copied or pickled: it is an open device")
