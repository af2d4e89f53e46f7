"""`clebsch train --mpi` on several processes against one, by both ABIs that MPICH has:
python3 tests/hosts/test_train_mpi.py MPI_PYTHON COMMAND MAKE_MODEL"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

PYTHON, COMMAND, MAKE_MODEL = map(os.path.abspath, sys.argv[1:])
PREFIX = pathlib.Path(PYTHON).parent.parent
LIBRARIES = [str(PREFIX / "lib" / name) for name in ("libmpi.so.12", "libmpi_abi.so.1")]
RUN = "train --model made --train frames.xyz --valid frames.xyz --exact --lr 1e-3 --json --schedule constant".split()


def frames(path, n):
    random.seed(1)
    with open(path, "w") as f:
        for k in range(n):
            atoms = 2 + k % 5
            print(f'{atoms}\nLattice="6 0 0 0 6 0 0 0 6" Properties=species:S:1:pos:R:3:forces:R:3 energy={-k / 10} '
                  'stress="1 0 0 0 1 0 0 0 1"', file=f)
            for i in range(atoms):
                print("HO"[i % 2], 1.7 * (i % 2) + 0.3 * random.random(), 1.7 * (i // 2 % 2), 1.7 * (i // 4), i / 10, 0, 0.1,
                      file=f)


def run(n, *options, library=LIBRARIES[0], status=0):
    """Of n processes; None: as a user does without MPI.  What it prints and says, if the status is right."""
    start = [PREFIX / "bin" / "mpiexec", "-n", str(n)] if n else []
    done = subprocess.run([*start, COMMAND, *RUN, *(["--mpi"] if n else []), *options], text=True, capture_output=True,
                          timeout=300, env={**os.environ, "CLB_MPI": library}, check=False)
    assert (done.returncode == 0) == (status == 0), (n, options, done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout) if not status else done.stderr


def near(a, b, at):
    """All numbers of all epochs, but for rounding."""
    if isinstance(a, dict):
        assert a.keys() == b.keys(), (at, a, b)
        for key in a:
            near(a[key], b[key], f"{at} {key}")
    else:
        assert a == b or abs(a - b) <= 1e-9 * abs(a) + 1e-12, (at, a, b)


def same(one, more):
    assert len(one["epochs"]) == len(more["epochs"]) > 0
    for a, b in zip(one["epochs"], more["epochs"]):
        near(a, b, f"epoch {a['epoch']}")


def main():
    frames("frames.xyz", 9)
    subprocess.run([MAKE_MODEL, "made"], check=True)
    one = run(None, "--device", "cpu", "--batch", "4", "--epochs", "3", "--out", "one")
    for n, device, library in ((2, "cpu", 0), (3, "cpu,cpu:interpreter,cpu", 1), (2, "cpu,cpu,cpu", 0)):
        same(one, run(n, "--device", device, "--batch", "4", "--epochs", "3", "--out", f"out{n}{device}",
                      library=LIBRARIES[library]))
    # Equal runs give equal bits.
    run(2, "--device", "cpu", "--batch", "4", "--epochs", "3", "--out", "again")
    assert pathlib.Path("again").read_bytes() == pathlib.Path("out2cpu").read_bytes()
    # Fewer structures than processes, and a run that goes on with another number of them.
    pair = ("--device", "cpu", "--batch", "2", "--ema", "0.9")
    one = run(None, *pair, "--epochs", "3", "--out", "few")
    run(3, *pair, "--epochs", "2", "--out", "part", "--restart", "state")
    same(one, run(2, *pair, "--epochs", "3", "--out", "part", "--continue", "state"))
    # What fails on one rank, or on all, ends them all.
    for library, options, said in ((LIBRARIES[0], ("--device", "cpu,none"), "none"),
                                   (LIBRARIES[0], ("--device", "cpu", "--out", "frames.xyz"), "frames.xyz"),
                                   ("libm.so.6", ("--device", "cpu"), "CLB_MPI: libm.so.6 is not a library of MPI")):
        error = run(2, "--batch", "4", "--epochs", "1", "--out", "wrong", *options, library=library, status=1)
        assert said in error, error
    assert not os.path.exists("wrong")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main()
