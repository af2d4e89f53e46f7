#!/usr/bin/env python3
"""Compiles the code in the documents: code_blocks.py INCLUDE LIBRARY CC GFORTRAN

Every block of C and Fortran in README.md and docs/ is a complete file, which must compile without a
warning.  A block with a main program is also linked with LIBRARY and run on the cpu backend; if a
block of text follows, the program must print that text.  GFORTRAN may be `none`."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(c|fortran)\n(.*?)^```\n(?:\s*```text\n(.*?)^```)?", re.M | re.S)
MAIN = {"c": r"\bint main\(", "fortran": r"^\s*end program"}


def run(command, name, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode:
        sys.exit(f"{name}: {' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def compilers(include, cc, gfortran):
    warnings = ["-Wall", "-Wextra", "-Werror"]
    return {
        "c": (".c", [cc, "-std=c11", *warnings, f"-I{include}"], []),
        "fortran": (".f90", [gfortran, "-std=f2018", *warnings],
                    [f"{include}/clebsch/clebsch.f90"]),
    }


def check(name, language, code, expected, how, library, folder):
    suffix, command, first = how[language]
    file, program = folder / ("block" + suffix), folder / "block"
    file.write_text(code)
    if not re.search(MAIN[language], code, re.M):
        run([*command, "-c", *first, str(file)], name, cwd=folder)
        return
    where = ["-L" + str(library.parent), "-Wl,-rpath," + str(library.parent), "-lclebsch", "-lm"]
    run([*command, *first, str(file), "-o", str(program), *where], name, cwd=folder)
    said = run([str(program)], name, env={**os.environ, "CLB_DEVICE": "cpu"})
    if expected is not None and said.split() != expected.split():
        sys.exit(f"{name}: prints\n{said}instead of\n{expected}")


def main():
    include, library, cc, gfortran = sys.argv[1:]
    include = str(pathlib.Path(include).resolve())
    how, count = compilers(include, cc, gfortran), 0
    with tempfile.TemporaryDirectory() as folder:
        for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
            text = page.read_text()
            for block in BLOCK.finditer(text):
                line = text.count("\n", 0, block.start()) + 1
                if block[1] == "fortran" and gfortran == "none":
                    continue
                check(f"{page.name}:{line}", *block.groups(), how,
                      pathlib.Path(library).resolve(), pathlib.Path(folder))
                count += 1
    if not count:
        sys.exit("code_blocks.py: no code in the documents")


main()
