"""Optimizers beside each other on one set of labelled structures: steps and seconds of `clebsch train` until the loss of the
frames that are not trained on is what all of them reach.  For example

    python3 bench/optimizer_race.py --train water.xyz --device cuda --epochs 60 --json h200_race.json

Each runs with each of its learning rates, as many epochs; the one with the lowest loss counts.  The rate falls by half a
cosine, but for schedule-free, which has its own average in place of that of the others.  The time of a step is that after the
first epoch, without validation."""
import argparse
import json
import pathlib
import subprocess
import tempfile

RUNS = {"adamw": "--optimizer adamw --amsgrad", "schedule-free": "--optimizer schedule-free --schedule constant --ema 0",
        "muon": "--optimizer muon", "soap": "--optimizer soap"}
RATES = {"adamw": [0.005, 0.01], "schedule-free": [0.005, 0.01], "muon": [0.01, 0.02], "soap": [0.003, 0.006]}
NETWORK = "--new nequip --features 32x0e+32x1o+16x2e --layers 3 --r-max 4.5 --radial 32,32"


def train(a, options, rate, folder):
    command = [a.command, "train", *a.network.split(), "--train", *a.train, "--valid-part", "0.2", "--device", a.device, "--batch",
               str(a.batch), "--epochs", str(a.epochs), "--json", "--out", folder + "/out.safetensors", *options.split(), "--lr", str(rate)]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--train", nargs="+", required=True, help="extended XYZ; a fifth is not trained on")
    p.add_argument("--network", default=NETWORK)
    p.add_argument("--optimizers", nargs="+", default=list(RUNS), choices=list(RUNS))
    p.add_argument("--rate", type=float, action="append", help="of all optimizers, in place of their own")
    p.add_argument("--epochs", type=int, default=60)
    p.add_argument("--batch", type=int, default=4)
    p.add_argument("--command", default="build/tools/clebsch")
    p.add_argument("--device", default="cuda")
    p.add_argument("--json", type=pathlib.Path)
    a = p.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in a.optimizers:
            runs = [(rate, train(a, RUNS[name], rate, folder)) for rate in a.rate or RATES[name]]
            for rate, o in runs:
                print(f"{name}, rate {rate}: best loss {o['best_loss']:.4g}, {o['of_a_step']['seconds'] * 1e3:.3g} ms a step", flush=True)
            rate, o = min(runs, key=lambda r: r[1]["best_loss"])
            rows.append({"optimizer": name, "rate": rate, "description": o["description"], "best_loss": o["best_loss"],
                         "steps_of_an_epoch": o["steps"] // a.epochs, "times": o["of_a_step"],
                         "losses": [e["valid_loss"] for e in o["epochs"]],
                         "force_mae": [e["valid_force_mae"] for e in o["epochs"]]})
    goal = max(r["best_loss"] for r in rows)
    for r in rows:
        at = next(i for i, x in enumerate(r["losses"]) if x <= goal)
        r["goal"], r["steps"] = goal, (at + 1) * r["steps_of_an_epoch"]
        r["seconds"] = r["steps"] * r["times"]["seconds"]
        print(f"{r['optimizer']}, rate {r['rate']}: {r['steps']} steps and {r['seconds']:.3g} s to a loss of {goal:.4g} "
              f"(forces {r['force_mae'][at] * 1e3:.3g} meV/A), {r['times']['seconds'] * 1e3:.3g} ms a step, of which the optimizer "
              f"{r['times']['optimizer'] * 1e3:.3g}")
    if a.json:
        a.json.write_text(json.dumps({"network": a.network, "batch": a.batch, "results": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
