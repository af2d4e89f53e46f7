"""A context and what is made in it, each destroyed with the last reference to it."""
import ctypes as c
import threading
import warnings
import weakref

from . import _library, _nvrtc
from . import _structs as s


def _destroy(lib, lock, kind, pointer):
    with lock:
        getattr(lib, f"clb_{kind}_destroy")(c.byref(pointer))


class Handle:
    """A buffer, graph, op or model of a context; ctypes takes it where a pointer is wanted."""

    def __init__(self, context, kind, pointer):
        self.context, self._as_parameter_ = context, pointer
        self._end = weakref.finalize(self, _destroy, context.lib, context.lock, kind, pointer)

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
    several threads follow each other."""

    def __init__(self, device="", stream=None, library=None):
        self.lib, self.lock, self.stream = _library.load(library), threading.RLock(), stream
        _nvrtc.preload(device)
        self._as_parameter_ = c.c_void_p()
        if stream is None:
            status = self.lib.clb_context_create(device.encode(), c.byref(self._as_parameter_))
        else:
            theirs = s.native(queue=stream or None)
            status = self.lib.clb_context_adopt(device.encode(), c.byref(theirs),
                                                c.byref(self._as_parameter_))
        self._end = weakref.finalize(self, _destroy, self.lib, self.lock, "context",
                                     self._as_parameter_)
        self.check(status)
        info = s.device_info()
        self.call("context_device", c.byref(info))
        self.info = info
        self.name, self.backend, self.vendor, self.description, self.driver = (
            getattr(info, key).decode()
            for key in ("name", "backend", "vendor", "description", "driver"))
        if self.driver.startswith("interpreter") and device != "cpu:interpreter":
            warnings.warn(f"Clebsch runs on its interpreter, which is thousands of times slower "
                          f"than compiled kernels: {self.description}", RuntimeWarning,
                          stacklevel=3)

    def check(self, status):
        if status:
            said = self.lib.clb_error(self._as_parameter_) or self.lib.clb_status_text(status)
            raise _library.Error(said.decode(errors="replace"))

    def call(self, name, *arguments, handle=None):
        """A function whose first argument is `handle`, or else the context."""
        with self.lock:
            function = getattr(self.lib, "clb_" + name)
            self.check(function(self if handle is None else handle, *arguments))

    def make(self, name, kind, *arguments):
        pointer = c.c_void_p()
        self.call(name, *arguments, c.byref(pointer))
        return Handle(self, kind, pointer)

    def wait(self):
        """Until everything submitted has finished."""
        self.call("wait")

    def __repr__(self):
        return f"<clebsch.Context {self.name}: {self.description}>"

    def __reduce__(self):
        raise TypeError("a clebsch.Context cannot be copied or pickled: it is an open device")
