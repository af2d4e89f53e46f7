"""How the library, NVRTC and the command are found; contexts."""
import copy
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import clebsch

PACKAGE = str(pathlib.Path(clebsch.__file__).parents[1])


def python(program, *arguments, path=(), **environment):
    return subprocess.run([sys.executable, "-sB", "-c", program, *map(str, arguments)], capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join([PACKAGE, *map(str, path)]), **environment})


class Library(unittest.TestCase):
    def test_nvrtc_of_a_wheel(self):
        """A stand-in, under a name that no loader finds itself: loaded for cuda alone, and then found by NVRTC's name."""
        fake = next(name for name in os.environ["CLB_TEST_FAKE_GPU"].split(":") if "nvrtc" in name)
        program = ("import sys, ctypes; from clebsch import _nvrtc; _nvrtc.NAMES = ('libnvrtc.so.test',)\n"
                   "print(_nvrtc.preload(sys.argv[1]), sys.argv[2] in open('/proc/self/maps').read())\n"
                   "if len(sys.argv) > 3: ctypes.CDLL('libnvrtc.so.13')")
        for wheel in ("nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"):
            with tempfile.TemporaryDirectory() as folder:
                at = pathlib.Path(folder, wheel)
                at.mkdir(parents=True)
                shutil.copy(fake, at / "libnvrtc.so.test")
                for device, variable, wanted in (("cuda:1", "cpu", f"{at}/libnvrtc.so.test True"), ("cpu", "cuda", "None False"),
                                                 ("", "cuda", f"{at}/libnvrtc.so.test True")):
                    done = python(program, device, folder, *["found"] * ("True" in wanted), path=[folder], CLB_DEVICE=variable)
                    self.assertEqual((done.stdout.strip(), done.returncode), (wanted, 0), done.stderr)

    def test_library_that_is_not_there(self):
        for name, said in (("/nonexistent/libclebsch.so", "clebsch.Error: libclebsch cannot be loaded"), ("libc.so.6", "libc.so.6 is Clebsch something else")):
            done = python("import clebsch; clebsch.Context('cpu')", CLB_LIBRARY=name)
            self.assertIn(said, done.stderr)
        done = python("import clebsch; clebsch.convert('a.pth', 'b')", CLB_COMMAND="", PATH="/nonexistent")
        self.assertIn("the command `clebsch` is not in PATH", done.stderr)

    def test_torch_that_is_not_there(self):
        done = python("import sys; sys.modules['torch'] = None; import clebsch.torch")
        self.assertIn("ImportError: clebsch.torch needs PyTorch 1.13 or newer: pip install torch", done.stderr)

    def test_context(self):
        context = clebsch.Context("cpu")
        self.assertEqual((context.name, context.backend), ("cpu", "cpu"))
        with self.assertRaisesRegex(TypeError, "open device"):
            copy.copy(context)
        with self.assertRaisesRegex(clebsch.Error, "no device .cpu:7."):
            clebsch.Context("cpu:7")
