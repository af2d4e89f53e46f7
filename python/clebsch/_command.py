"""The command `clebsch` that comes with the library."""
import os
import shutil
import subprocess
import sys

from ._library import FOLDER, Error


def path():
    """$CLB_COMMAND, else the one that came with this package, else the one of PATH."""
    beside = FOLDER / "bin" / "clebsch"
    found = (os.environ.get("CLB_COMMAND") or
             (str(beside) if beside.exists() else shutil.which("clebsch")))
    if not found:
        raise Error("the command `clebsch` is not in PATH; CLB_COMMAND may name its file")
    return found


def run(*arguments):
    """Its standard output; what it says on standard error is the message of the exception."""
    done = subprocess.run([path(), *map(str, arguments)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise Error(done.stderr.strip() or f"`clebsch {arguments[0]}` ends with {done.returncode}")
    return done.stdout


def main():
    """The script that a wheel installs."""
    command = path()
    os.execv(command, ["clebsch", *sys.argv[1:]])
