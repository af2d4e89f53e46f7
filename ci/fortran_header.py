#!/usr/bin/env python3
"""Compares the Fortran module with the C headers: python3 ci/fortran_header.py

Every function of clebsch.h and model.h must have an interface with bind(c) and the same number of
arguments in clebsch.f90, or be listed in NOT_OFFERED.  Every constant must have the same value."""
import pathlib
import re
import sys

NOT_OFFERED = {  # function or constant: why Fortran has none
    "clb_version": "text of C, of little use to a program",
    "clb_status_text": "clb_error says more",
    "clb_devices": "calls back with a struct of texts",
    "clb_version_number": "a program is compiled with the module of its library",
    "clb_context_device_sized": "a struct of texts",
    "clb_op_source": "long texts for people: `clebsch source`",
}
FOLDER = pathlib.Path(__file__).resolve().parent.parent / "include" / "clebsch"


def split(arguments):
    """Splits at the commas outside of brackets."""
    arguments = re.sub(r"\([^()]*\)", "", re.sub(r"\([^()]*\)", "", arguments)).strip()
    return [] if arguments in ("", "void") else arguments.split(",")


def text():
    """Both headers, without comments."""
    both = "".join((FOLDER / name).read_text() for name in ("clebsch.h", "model.h"))
    return re.sub(r"/\*.*?\*/|\\\n", " ", both, flags=re.S)


def header():
    """Functions with their numbers of arguments, and constants."""
    said = text()
    statuses = re.search(r"#define CLB_STATUSES\(X\)(.*)", said).group(1)
    said = said.replace("CLB_STATUSES(CLB_STATUS)", ",".join(re.findall(r"X\((\w+)", statuses)))
    constants = {}
    for body in re.findall(r"\benum\b[^{;]*\{([^}]*)\}", said):
        value = -1
        for name in re.sub(r"#.*", "", body).split(","):
            name, _, given = (word.strip() for word in name.partition("="))
            value = int(given, 0) if given else value + 1
            if name:
                constants[name] = value
    functions = {}
    for name, arguments in re.findall(r"^CLB_API[^;(]*?\b(clb_\w+)\((.*?)\);", said, flags=re.S | re.M):
        functions[name] = len(split(arguments))
    return functions, constants


def module():
    text = re.sub(r"!.*", "", (FOLDER / "clebsch.f90").read_text())
    text = re.sub(r"&\s*\n\s*&?", " ", text)
    constants = {}
    for line in re.findall(r"parameter *:: *(.*)", text):
        for name, value in re.findall(r"(\w+) *= *(-?\d+)", line):
            constants[name] = int(value)
    functions = {}
    for name, arguments, name_in_c in re.findall(
            r"(?:function|subroutine) +(\w+)\(([^)]*)\) *bind\(c(?:, *name='(\w+)')?\)", text):
        functions[name_in_c or name] = len(split(arguments))
    return functions, constants


def compare():
    wrong, (theirs, values), (ours, our_values) = [], header(), module()
    for what, c, f in (("arguments", theirs, ours), ("value", values, our_values)):
        for name, n in c.items():
            if name in NOT_OFFERED:
                if name in f:
                    wrong.append(f"{name}: NOT_OFFERED, but it is there")
            elif f.get(name) != n:
                wrong.append(f"{name}: {what} {n} in C, {f.get(name, 'none')} in Fortran")
    wrong += [f"{name}: in Fortran only" for name in ours if name not in theirs and name != "clb_model_move"]
    wrong += [f"{name}: in NOT_OFFERED, but not in C" for name in NOT_OFFERED if name not in theirs | values]
    return wrong, len(theirs), len(values)


def main():
    wrong, functions, constants = compare()
    for line in wrong:
        print(line)
    if functions < 60 or constants < 40:
        sys.exit(f"fortran_header.py: found only {functions} functions and {constants} constants")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
