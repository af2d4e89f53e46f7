#!/usr/bin/env python3
"""Writes the declarations of Fortran and Python from the headers: python3 ci/bindings.py [--write]

include/clebsch/clebsch.f90, python/clebsch/_structs.py and _functions.py.  Without --write it fails
if one of them is not what would be written, or if the C compiler lays out a struct otherwise."""
import ctypes
import difflib
import itertools
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import types

from headers import ROOT, Headers

# ---- Fortran ----

MODULE = """\
! clebsch.f90 - the C API of clebsch.h and model.h for Fortran; compile it with your program.
! Written by ci/bindings.py from these headers, whose names, arguments, units and errors it has.
! Arrays are in C order: row r of x[n][3] is x(:, r) of a Fortran array x(3, n).  Numbers of terms,
! nodes, groups and the like count from 0.  A pointer in a type is c_loc of a target; texts there
! end with c_null_char.  NAME_c is the function of C where NAME takes or gives texts of Fortran, or
! tells the library the sizes of types (docs/abi.md).
module clebsch
  use, intrinsic :: iso_c_binding
  implicit none

{constants}
{types}
  abstract interface
    function clb_model_move(user, backward, columns, type, from, to) bind(c) result(status)
      import
      type(c_ptr), value :: user, from, to
      integer(c_int), value :: backward, type
      integer(c_int64_t), value :: columns
      integer(c_int) :: status
    end function
  end interface

  interface
{interfaces}  end interface

contains

{procedures}  ! A text of C; '' where there is none.
  function text_of(string) result(text)
    type(c_ptr), intent(in) :: string
    character(:), allocatable :: text
    character(kind=c_char), pointer :: s(:)
    integer :: n
    text = ''
    if (.not. c_associated(string)) return
    call c_f_pointer(string, s, [huge(1)])
    n = 0
    do while (s(n + 1) /= c_null_char)
      n = n + 1
    end do
    text = repeat(' ', n)
    text = transfer(s(1:n), text)
  end function
end module
"""
FORTRAN = {"int": "integer(c_int)", "unsigned": "integer(c_int)", "double": "real(c_double)",
           "int32_t": "integer(c_int32_t)", "int64_t": "integer(c_int64_t)",
           "uint64_t": "integer(c_int64_t)", "size_t": "integer(c_size_t)",
           "unsigned char": "integer(c_signed_char)", "char": "character(kind=c_char)"}
# Members whose default is not 0.
DEFAULTS = {"passes": "CLB_PASS_FORWARD", "mode": "CLB_UVU", "has_weight": "1", "path_weight": "1",
            "correlation": "1", "n_species": "1", "rule": "CLB_ADAM", "stride": "CLB_DENSE"}
# Pointers to results that are arrays; others are to one number.
ARRAYS = "mask", "u", "r"


def wrapped(line, wide=100):
    """Lines of at most 100 columns; before the others are the first one's blanks and five more."""
    indent = line[:len(line) - len(line.lstrip())]
    lines = textwrap.wrap(line.replace(" = ", "\0=\0"), wide - 2, break_long_words=False,
                          subsequent_indent=indent + 5 * " ", break_on_hyphens=False)
    return " &\n".join(lines).replace("\0", " ") + "\n" if len(line) > wide else line + "\n"


def grouped(pairs, between=" :: "):
    """Of (declaration, name): a line for those that follow each other with the same declaration."""
    for declaration, group in itertools.groupby(pairs, key=lambda pair: pair[0]):
        yield declaration + between + ", ".join(name for _, name in group)


def has_text(function):
    return any(map(is_text, function.arguments))


def is_text(a):
    return a.type == "char" and a.stars == 1


class Fortran:
    def __init__(self, headers):
        self.headers = headers

    def number(self, kind):
        kind = "int" if kind in self.headers.enums else kind
        return FORTRAN.get(kind, f"type({kind})")

    def constants(self):
        for values in self.headers.enums.values():
            yield self.parameters(values, "c_int64_t" if "CLB_DENSE" in values else "c_int")
        passes = self.headers.enums["clb_pass"].items()
        bits = {f"CLB_PASS_{name[4:]}": 1 << bit for name, bit in passes}
        measure = re.search(r"#define CLB_MEASURE \(1u << (\d+)\)", self.headers.text)
        yield "  ! To be added up for `passes`."
        yield self.parameters({**bits, "CLB_MEASURE": 1 << int(measure[1])})

    def parameters(self, values, kind="c_int"):
        pairs = ", ".join(f"{name} = {value}" for name, value in values.items())
        return f"  integer({kind}), parameter :: {pairs}"

    def default(self, member):
        if member.name in DEFAULTS:
            return DEFAULTS[member.name]
        values = self.headers.enums.get(member.type)
        return next(name for name, value in values.items() if value == 0) if values else "0"

    def member(self, member):
        """Its declaration, and its name with its default."""
        pointer = member.stars or member.type in self.headers.callbacks
        if pointer:
            kind = "funptr" if member.type in self.headers.callbacks else "ptr"
            return f"    type(c_{kind})", f"{member.name} = c_null_{kind}"
        extents = f"({', '.join(map(str, member.extents[::-1]))})" if member.extents else ""
        whole = member.type in self.headers.structs or member.type == "char"  # has none, or its own
        default = "" if whole else f" = {self.default(member)}"
        return f"    {self.number(member.type)}", member.name + extents + default

    def types(self):
        for name, parts in self.headers.structs.items():
            yield f"  type, bind(c) :: {name}"
            yield from grouped(self.member(m) for part in parts for m in part)
            yield "  end type\n"

    def argument(self, function, a):
        """Its declaration in C's function, that in Fortran's, and what follows its name in both."""
        if a.type == "callback":
            return "type(c_funptr), value", "type(c_funptr), intent(in)", ""
        if a.stars == 2:
            way = "inout" if function.result == "void" else "out"
            return 2 * (f"type(c_ptr), intent({way})",) + ("",)
        if is_text(a):
            return "character(kind=c_char), intent(in)", "character(*), intent(in)", "(*)"
        if a.stars and (a.type == "void" or a.type in self.headers.handles):
            return "type(c_ptr), value", "type(c_ptr), intent(in)", ""
        kind = self.number(a.type)
        if not a.stars:
            return f"{kind}, value", f"{kind}, intent(in)", ""
        if a.type in self.headers.structs:
            # target: what its pointers point to may be written, though the type itself is not.
            members = sum(self.headers.structs[a.type], [])
            target = ", target" if a.const and any(m.stars for m in members) else ""
            return 2 * (f"{kind}, intent({'in' if a.const else 'out'}){target}",) + ("",)
        if a.const or a.name in ARRAYS:
            return 2 * (f"{kind}, intent({'in' if a.const else 'inout'})",) + ("(*)",)
        return 2 * (f"{kind}, intent(out)",) + ("",)

    def interface(self, name, function):
        """Of the function of C; and whether Fortran has a procedure for it."""
        told = [struct[4:] + "_size" for struct in function.sizes]
        procedure = function.sizes or function.result == "*" or has_text(function)
        bind = f"bind(c, name='{name}{'_sized' if told else ''}')" if procedure else "bind(c)"
        names = ", ".join([a.name for a in function.arguments] + told)
        form, result, of = {"void": ("subroutine", "", None),
                            "*": ("function", " result(text)", "type(c_ptr) :: text")}.get(
            function.result, ("function", " result(status)", "integer(c_int) :: status"))
        yield f"    {form} {name}{'_c' * bool(procedure)}({names}) {bind}{result}"
        yield "      import"
        pairs = [(f"      {c}", a.name + after) for a in function.arguments
                 for c, _, after in [self.argument(function, a)]]
        yield from grouped(pairs + [("      integer(c_size_t), value", size) for size in told])
        if of:
            yield f"      {of}"
        yield f"    end {form}"

    def procedure(self, name, function):
        """Of Fortran, calling the function of C: texts get their ends, types tell their sizes."""
        if not (function.sizes or function.result == "*" or has_text(function)):
            return
        arguments, result = function.arguments, "text" if function.result == "*" else "status"
        yield f"  function {name}({', '.join(a.name for a in arguments)}) result({result})"
        yield from grouped((f"    {f}", a.name + ("" if is_text(a) else after)) for a in arguments
                           for _, f, after in [self.argument(function, a)])
        given = [f"trim({a.name})//c_null_char" if is_text(a) else a.name for a in arguments]
        of = {a.type: a.name for a in arguments}
        for struct in function.sizes:
            if struct not in of:
                of[struct] = struct[4:]
                yield f"    type({struct}) :: {of[struct]}"
            given.append(f"c_sizeof({of[struct]})")
        call = f"{name}_c({', '.join(given)})"
        kind = "character(:), allocatable" if result == "text" else "integer(c_int)"
        yield f"    {kind} :: {result}"
        yield f"    text = text_of({call})" if result == "text" else f"    status = {call}"
        yield "  end function\n"

    def module(self):
        functions = self.headers.functions.items()
        parts = {"constants": self.constants(), "types": self.types(),
                 "interfaces": (line for f in functions for line in self.interface(*f)),
                 "procedures": (line for f in functions for line in self.procedure(*f))}
        text = {part: "".join(map(wrapped, lines)) for part, lines in parts.items()}
        return MODULE.format(**text)


# ---- Python ----

STRUCTS = '''\
"""Enumerators and structs of clebsch.h and model.h, as ctypes has them.  Written by ci/bindings.py.

Names are those of the headers without `CLB_` and `clb_`."""
import ctypes as c

VERSION = "{version}"

{enumerators}{structs}'''
FUNCTIONS = '''\
"""Functions of clebsch.h and model.h.  Written by ci/bindings.py.

Names are those of the headers without `clb_`."""
import ctypes as c

from . import _structs as s

ARGUMENTS = {{
{arguments}}}
# Those that return no status.
RESULTS = {{
{results}}}
# What passes take and what they give, each with the operand whose shape it has.
OPERANDS = {{
{operands}}}
# Structs that may grow: the library's clb_NAME_sized takes their sizes after the arguments.
SIZES = {{
{sizes}}}
'''
CTYPES = {"int": "c.c_int", "unsigned": "c.c_uint", "double": "c.c_double", "size_t": "c.c_size_t",
          "int32_t": "c.c_int32", "int64_t": "c.c_int64", "uint64_t": "c.c_uint64",
          "unsigned char": "c.c_ubyte", "char": "c.c_char", "callback": "c.c_void_p"}


def listed(before, items, after):
    """A list on lines of at most 100 columns, none of whose items is divided."""
    text = before + ", ".join(item.replace(" ", "\0") for item in items) + after
    indent = " " * (before.rindex("[") + 1)
    return textwrap.fill(text, 100, subsequent_indent=indent).replace("\0", " ") + "\n"


def operands():
    """Of each pass of signatures.def, clb_NAME_PASS, what it takes and what it gives, "name:shape",
    as src/base/signature.c derives it."""
    found = {}
    text = (ROOT / "src" / "base" / "signatures.def").read_text()
    for name, row in re.findall(r"^SIGNATURE\((\w+)(.*)\)$", text, re.M):
        inputs = [part.split(", ") for part in re.findall(r"IN\((.*?)\)", row)]
        of, z, g, last = re.search(r"OUT\((.*?)\)", row)[1].lower().split(", ")
        shapes, x, a, p = ([part[i].lower() for part in inputs] for i in range(4))

        def named(names, before=""):
            return [f"{before}{name}:{shape}" for name, shape in zip(names, shapes)]
        first, second, third = named(x), named(x) + [f"{g}:{of}"], named(x) + [f"{g}:{of}"] + named(a)
        passes = {"forward": (first, [f"{z}:{of}"]), "backward": (second, named(x, "g_")),
                  "double_backward": (third, named(x, "d_") + [f"d_{g}:{of}"]),
                  "triple_backward": (third + named(p) + [f"{last}:{of}"],
                                      named(x, "e_") + [f"e_{g}:{of}"] + named(a, "e_"))}
        found.update((f"clb_{name}_{key}", both) for key, both in passes.items())
    return found


class Python:
    def __init__(self, headers):
        self.headers = headers

    def kind(self, v, scope="s."):
        pointer = v.stars > 0
        if pointer and v.type == "char":
            return "c.c_char_p" if v.stars == 1 else "c.POINTER(c.c_char_p)"
        if v.type in ("void", *self.headers.handles, *self.headers.callbacks):
            return "c.POINTER(c.c_void_p)" if v.stars == 2 else "c.c_void_p"
        kind = "c.c_int" if v.type in self.headers.enums else CTYPES.get(v.type, scope + v.type[4:])
        extents = "".join(f" * {e}" for e in v.extents[::-1])
        return f"c.POINTER({kind})" if pointer else kind + extents

    def member(self, m):
        """Arrays that NumPy has are given by their addresses."""
        numpy = m.stars and m.type in ("double", "int32_t", "unsigned char")
        return f'("{m.name}", {"c.c_void_p" if numpy else self.kind(m, scope="")})'

    def structs(self):
        constants, structs = self.headers.constants.items(), ""
        for name, parts in self.headers.structs.items():
            structs += f"\n\nclass {name[4:]}(c.Structure):\n"
            structs += listed("    _fields_ = [", map(self.member, sum(parts, [])), "]")
        return STRUCTS.format(version=self.headers.version, structs=structs, enumerators="".join(
            f"{name[4:]} = {value}\n" for name, value in constants))

    def operands(self, name, function, known):
        """A line of the table; nothing where the function takes no rows.  An op that has no
        signature has that of another, whose operands are called the same."""
        rows = [a.name for a in function.arguments if a.type == "clb_rows" and not a.stars]
        for a in function.arguments:
            members = sum(self.headers.structs.get(a.type, []), [])
            if members and all(m.type == "clb_rows" for m in members):
                rows = [m.name for m in members]
        if not rows:
            return ""
        for given, made in [known[name]] if name in known else known.values():
            if [item.partition(":")[0] for item in given + made] == rows:
                sides = [f'"{" ".join(side)}"' for side in (given, made)]
                return listed(f'    "{name[4:]}": [', sides, "],")
        sys.exit(f"{name}: no row of signatures.def has the operands {', '.join(rows)}")

    def functions(self):
        result = {"void": "None", "*": "c.c_char_p"}
        tables = {"arguments": "", "results": "", "sizes": "", "operands": ""}
        known = operands()
        for name, f in self.headers.functions.items():
            key = f'    "{name[4:]}": '
            tables["arguments"] += listed(key + "[", map(self.kind, f.arguments), "],")
            tables["results"] += f"{key}{result[f.result]},\n" if f.result in result else ""
            sizes = [f"s.{struct[4:]}" for struct in f.sizes]
            tables["operands"] += self.operands(name, f, known)
            tables["sizes"] += listed(key + "[", sizes, "],") if sizes else ""
        return FUNCTIONS.format(**tables)


# ---- what compilers say ----


def members(headers, structs):
    """That the C compiler lays out the structs as ctypes does."""
    yield "#include <clebsch/model.h>"
    for name in headers.structs:
        struct = getattr(structs, name[4:])
        yield f'_Static_assert(sizeof({name}) == {ctypes.sizeof(struct)}, "{name}");'
        for member, _ in struct._fields_:
            of, here = f"(({name} *)0)->{member}", getattr(struct, member)
            yield (f"_Static_assert(offsetof({name}, {member}) == {here.offset} && sizeof({of}) == "
                   f'{here.size}, "{name}.{member}");')


def sizes(headers, structs):
    """That Fortran's types have these sizes: else a constant is divided by 0."""
    yield "use clebsch"
    yield from (f"type({name}) :: {name[4:]}_" for name in headers.structs)
    for name in headers.structs:
        right = f"c_sizeof({name[4:]}_) == {ctypes.sizeof(getattr(structs, name[4:]))}"
        yield f"integer, parameter :: {name[4:]}_size = 1 / merge(1, 0, {right})"
    yield "end"


def compiled(command, source, name):
    with tempfile.TemporaryDirectory() as folder:  # where gfortran leaves a file, too
        pathlib.Path(folder, name).write_text("\n".join([*source, ""]))
        subprocess.run([*command, name], check=True, cwd=folder)


def main():
    if sys.argv[1:] not in ([], ["--write"]):
        sys.exit(__doc__)
    headers = Headers()
    fortran, python = Fortran(headers), Python(headers)
    package, module = ROOT / "python" / "clebsch", ROOT / "include" / "clebsch" / "clebsch.f90"
    for path, new in ((module, fortran.module()), (package / "_structs.py", python.structs()),
                      (package / "_functions.py", python.functions())):
        old = path.read_text() if path.is_file() else ""
        if sys.argv[1:]:
            path.write_text(new)
        elif new != old:
            sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True)))
            sys.exit(f"{path.name} is not what the headers say: python3 ci/bindings.py --write")
    structs = types.ModuleType("structs")
    exec(python.structs(), vars(structs))
    c = ["cc", "-std=c11", "-fsyntax-only", f"-I{ROOT / 'include'}"]
    compiled(c, members(headers, structs), "structs.c")
    if shutil.which("gfortran"):
        compiled(["gfortran", "-fsyntax-only", module], sizes(headers, structs), "structs.f90")


main()
