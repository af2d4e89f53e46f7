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
# An indented block is shell if it begins with a command: after settings, if there are any.
SHELL = re.compile(r"(?:\w+=\S+ )*(?:(?:ci|build|env|bench|packaging|\.lammps)/\S+|clebsch|meson|ninja|cc|"
                   r"gfortran|cmake|fpm|pip|python3?|export|cp|mpiexec|lmp|sudo|apt-get)(?: |$)")
FILE = re.compile(r"`([\w.-]+\.(?:c|f90))`[^`]*\Z")
MAIN = {"c": r"\bint main\(", "fortran": r"^\s*end program"}


def pages():
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page):
    """The blocks of a page: number of the first line, language, text, and the file that the
    paragraph before names last.  Of those that are indented the shell alone."""
    lines, i = page.read_text().split("\n"), 0
    while i < len(lines):
        start = end = i
        if lines[i].startswith("```"):
            start, end = i + 1, lines.index("```", i + 1)
            language, text = lines[i][3:], lines[start:end]
        elif SHELL.match(lines[i].removeprefix("    ")) and lines[i].startswith("    "):
            while lines[end].startswith("    "):
                end += 1
            language, text = "sh", [line[4:] for line in lines[i:end]]
        if end > i:
            before = "\n".join(lines[:i]).rstrip().rsplit("\n\n", 1)[-1]
            file = FILE.search(before)
            yield start + 1, language, "".join(line + "\n" for line in text), file and file[1]
        i = max(end, i) + 1


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
        for page in pages():
            of_page = [*blocks(page), (0, "", "", None)]
            for (line, language, text, _), after in zip(of_page, of_page[1:]):
                if language not in how or (language == "fortran" and gfortran == "none"):
                    continue
                expected = after[2] if after[1] == "text" else None
                check(f"{page.name}:{line}", language, text, expected, how,
                      pathlib.Path(library).resolve(), pathlib.Path(folder))
                count += 1
    if not count:
        sys.exit("code_blocks.py: no code in the documents")


if __name__ == "__main__":
    main()
