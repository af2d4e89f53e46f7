"""NVRTC, which compiles for cuda, where NVIDIA's wheels put it.

libclebsch opens it by name.  A library that is already in the process is found by its name, too, so
that it is enough to load it from its folder first, if the loader does not find one itself."""
import ctypes as c
import functools
import os
import pathlib
import sys

NAMES = ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so")
FOLDERS = ("nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib")


def _loads(name, mode=c.DEFAULT_MODE):
    try:
        return c.CDLL(name, mode)
    except OSError:
        return None


@functools.lru_cache(maxsize=None)
def _search():
    if any(_loads(name) for name in NAMES):
        return None
    for place in sys.path:
        for folder in FOLDERS:
            at = pathlib.Path(place or ".") / folder
            for name in NAMES:
                if (at / name).exists():
                    for builtins in sorted(at.glob("libnvrtc-builtins.so*")):
                        _loads(str(builtins), c.RTLD_GLOBAL)
                    if _loads(str(at / name), c.RTLD_GLOBAL):
                        return str(at / name)
    return None


def preload(device):
    """Before a context is made; the file that was loaded, or None."""
    device = device or os.environ.get("CLB_DEVICE", "")
    if device.startswith("cuda") or (not device and _loads("libcuda.so.1")):
        return _search()
    return None
