"""The Python of README.md and docs/python.md runs, each page's blocks one after the other."""
import contextlib
import io
import os
import pathlib
import re
import tempfile
import unittest

import clebsch

ROOT = pathlib.Path(__file__).resolve().parents[2]
WATER = pathlib.Path("/usr/share/cp2k/NequIP/water.pth")


@unittest.skipUnless(WATER.exists(), f"no {WATER} (package cp2k-data)")
class Docs(unittest.TestCase):
    def test_python_of_the_documents(self):
        before = os.getcwd()
        for page in ("README.md", "docs/python.md"):
            blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)
            self.assertTrue(blocks, page)
            with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
                os.symlink(WATER, os.path.join(folder, "water.pth"))
                clebsch.convert(str(WATER), os.path.join(folder, "model.safetensors"))
                os.chdir(folder)
                try:
                    names = {}
                    for block in blocks:
                        exec(compile(block, page, "exec"), names)
                finally:
                    os.chdir(before)
