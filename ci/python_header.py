#!/usr/bin/env python3
"""Compares the Python package's ctypes with the C headers: python3 ci/python_header.py [CC]

A C program prints sizes, offsets and constants; names and arguments are read from the headers.  A
struct or function that Python does not use may be missing there.  Scripts of bench/peers are
compiled, as nothing else looks at them."""
import ctypes as c
import pathlib
import re
import subprocess
import sys
import tempfile
import types

import fortran_header

ROOT = pathlib.Path(__file__).resolve().parent.parent
KINDS = {c.c_double: "double", c.c_int: "int", c.c_uint: "unsigned", c.c_int64: "int64_t",
         c.c_uint64: "uint64_t"}


def binding():
    """_structs and _library, without what the package imports besides: this needs no NumPy."""
    package = types.ModuleType("clebsch")
    package.__path__ = [str(ROOT / "python" / "clebsch")]
    sys.modules["clebsch"] = package
    sys.dont_write_bytecode = True
    from clebsch import _library, _structs
    return _library, _structs


def layout(cc, structs):
    """What the compiler says: lines "struct size", "struct.member offset size [double]", "NAME value"."""
    lines = ["#include <clebsch/model.h>", "#include <stdio.h>", "#include <stddef.h>",
             '#define KIND(x) _Generic((x), double: "double", default: "")', "int main(void) {"]
    for kind in structs.STRUCTS:
        name = "clb_" + kind.__name__
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        for field, *_ in kind._fields_:
            member = f"(({name} *)0)->{field}"
            lines.append(f'printf("{name}.{field} %zu %zu %s\\n", offsetof({name}, {field}), '
                         f"sizeof({member}), KIND({member}));")
    lines += [f'printf("CLB_{name} %d\\n", (int)CLB_{name});' for name in structs.ENUMERATORS]
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder, "layout.c"), pathlib.Path(folder, "layout")
        source.write_text("\n".join(lines + ["return 0; }"]))
        subprocess.run([cc, "-std=c11", "-w", f"-I{ROOT / 'include'}", source, "-o", program], check=True)
        return subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()


def ours(structs):
    for kind in structs.STRUCTS:
        name = "clb_" + kind.__name__
        yield f"{name} {c.sizeof(kind)}"
        for field, of in kind._fields_:
            member, number = getattr(kind, field), "double" if of is c.c_double else ""
            yield f"{name}.{field} {member.offset} {member.size} {number}"
    for name, value in structs.ENUMERATORS.items():
        yield f"CLB_{name} {value}"


def members(text):
    """Of each struct of the headers, the names of its members."""
    found = {}
    for body, name in re.findall(r"typedef struct \{([^}]*)\} clb_(\w+);", text):
        found[name] = [re.search(r"(\w+)(\[\w+\])*$", declarator.strip())[1]
                       for line in body.split(";") if line.strip() for declarator in line.split(",")]
    return found


def argument(text, structs):
    """What an argument of C is to ctypes: a pointer, a struct by value, or a number."""
    if "*" in text or "clb_model_exchange" in text or text.split() == ["void"]:
        return "pointer"  # the last: to a function, of which split() leaves no more
    kind = text.replace("const ", "").split()[0].replace("size_t", "uint64_t")
    if hasattr(structs, kind.removeprefix("clb_")):
        return kind.removeprefix("clb_")
    return "int" if kind.startswith("clb_") else kind  # an enumeration


def argument_here(kind):
    if issubclass(kind, (c.c_void_p, c.c_char_p, c._Pointer)):
        return "pointer"
    return KINDS.get(kind, kind.__name__)


def differences(cc):
    library, structs = binding()
    text = fortran_header.text()
    theirs, here = layout(cc, structs), list(ours(structs))
    yield from (f"{a} in C, {b} in Python" for a, b in zip(theirs, here) if a.split() != b.split())
    named = members(text)
    for kind in structs.STRUCTS:
        fields = [name for name, *_ in kind._fields_]
        if fields != named[kind.__name__]:
            yield f"{kind.__name__} has {fields}, clb_{kind.__name__} {named[kind.__name__]}"
    version = re.search(r'#define CLB_VERSION "([^"]*)"', text)[1]
    if version != structs.VERSION:
        yield f"CLB_VERSION is {version}, in Python {structs.VERSION}"
    functions = dict(re.findall(r"^CLB_API[^;(]*?\bclb_(\w+)\((.*?)\);", text, flags=re.S | re.M))
    for name, kinds in library.ARGUMENTS.items():
        if name not in functions:
            yield f"clb_{name}: in Python only"
            continue
        theirs = [argument(a, structs) for a in fortran_header.split(functions[name])]
        if theirs != [argument_here(kind) for kind in kinds]:
            yield f"clb_{name} takes {theirs}, in Python {[argument_here(kind) for kind in kinds]}"
    for path in sorted((ROOT / "bench" / "peers").glob("*.py")):
        compile(path.read_text(), path, "exec")
    if len(here) < 150 or len(library.ARGUMENTS) < 50:
        yield f"found only {len(here)} lines and {len(library.ARGUMENTS)} functions"


if __name__ == "__main__":
    wrong = list(differences((sys.argv[1:] or ["cc"])[0]))
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(1 if wrong else 0)
