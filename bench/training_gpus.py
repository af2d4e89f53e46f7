"""Training on several GPUs of one host: the time of a step of `clebsch train` on one GPU, two, ..., and what it is made
of.  For example

    python3 bench/training_gpus.py --model "SevenNet-0 (11 July 2024)=sevennet.safetensors" --gpus 1 2 4 8 \\
        --json h200_training_gpus.json

Weak scaling: so many structures for each GPU (--weak); strong: as many in all (--strong).  Structures are those of
bench/training_step.c: 32 atoms, rattled diamond and, in turn, rock salt of Na and Cl or of others that the model knows;
labels are random.  Steps of the first epoch are not timed."""
import argparse
import functools
import json
import pathlib
import random
import subprocess
import tempfile

from rows import Rows

FCC = [(0, 0, 0), (0, .5, .5), (.5, 0, .5), (.5, .5, 0)]
BATCHES, EPOCHS = 4, 5  # of an epoch; of a run
PARTS = ("gradient", "waiting", "sum", "optimizer", "parameters")


def frame(f, i, diamond, salt):
    """Two interpenetrating fcc lattices, 2 x 2 x 1 cubes of 8 atoms."""
    kinds, side, shift = (salt, 5.64, .5) if i % 2 else (diamond, 3.57, .25)
    print(f'32\nLattice="{2 * side} 0 0 0 {2 * side} 0 0 0 {side}" Properties=species:S:1:pos:R:3:forces:R:3 '
          f'energy={random.gauss(0, 1)} stress="0 0 0 0 0 0 0 0 0"', file=f)
    for cube in range(4):
        for k in range(8):
            at = (cube % 2, cube // 2, 0)
            x = [side * (at[d] + FCC[k % 4][d] + k // 4 * shift) + random.gauss(0, .05) for d in range(3)]
            print(kinds[k // 4], *x, *(random.gauss(0, 1) for _ in range(3)), file=f)


def output(command, *arguments):
    """The object that the command prints."""
    done = subprocess.run([command, *arguments, "--json"], text=True, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


@functools.cache
def elements(command, model):
    """Those of diamond and of salt, of the elements that a model knows."""
    known = output(command, "info", model)["elements"]
    salts = [s for s in (["Na", "Cl"], ["Si", "O"], [known[0], known[-1]]) if set(s) <= set(known)]
    return ["C" if "C" in known else known[0]] * 2, salts[0]


def run(a, model, batch, gpus, folder):
    diamond, salt = elements(a.command, model)
    xyz = folder / f"{batch}_{'_'.join(diamond + salt)}.xyz"
    if not xyz.exists():
        random.seed(1)
        with xyz.open("w") as f:
            for i in range(BATCHES * batch):
                frame(f, i, diamond, salt)
    devices = ",".join(f"{a.device}:{k}" for k in range(gpus)) if gpus > 1 or a.device in ("cuda", "hip") else a.device
    o = output(a.command, "train", "--model", model, "--train", xyz, "--valid-part", "0", "--device", a.devices or devices,
               "--batch", str(batch), "--epochs", str(EPOCHS), "--optimizer", "adamw", "--lr", "1e-5",
               "--out", folder / "out.safetensors")
    return {"structures": batch, "times": o["of_a_step"], "description": o["description"]}


def shown(r):
    times = r["times"]
    return f"{times['seconds'] * 1e3:.4g} ms a step: " + ", ".join(f"{k} {times[k] * 1e3:.3g}" for k in PARTS)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", action="append", required=True, metavar="NAME=FILE")
    p.add_argument("--gpus", type=int, nargs="+", default=[1, 2])
    p.add_argument("--weak", type=int, nargs="*", default=[64, 8], help="structures for each GPU")
    p.add_argument("--strong", type=int, nargs="*", default=[64, 256], help="structures in all")
    p.add_argument("--command", default="build/tools/clebsch")
    p.add_argument("--device", default="cuda", help="cuda:0, cuda:1, ... are taken")
    p.add_argument("--devices", help="exactly these instead, whatever --gpus says: cpu,cpu")
    p.add_argument("--json", type=pathlib.Path)
    a = p.parse_args()
    rows = Rows(a.json)
    with tempfile.TemporaryDirectory() as folder:
        for name, model in (m.rsplit("=", 1) for m in a.model):
            for kind, structures in [("weak", n) for n in a.weak] + [("strong", n) for n in a.strong]:
                for gpus in a.gpus:
                    batch = structures * (gpus if kind == "weak" else 1)
                    rows.add(f"{name}, {kind}, {batch} structures, {gpus} GPUs", (name, batch, gpus),
                             lambda: run(a, model, batch, gpus, pathlib.Path(folder)), shown, model=name, kind=kind, gpus=gpus)
    rows.end()


if __name__ == "__main__":
    main()
