#!/usr/bin/env python3
"""model.py DRIVER CLEBSCH MAKE_MODEL - energy, forces and stress of six atoms on an emulated Data Center GPU Max, in f32 and
f64, against the CPU in float64: a NequIP model of random numbers, and SevenNet-0 where CLB_TEST_SEVENNET names it."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ATOMS = """6
Lattice="7 0 0 0 7 0 0 0 7" Properties=species:S:1:pos:R:3 pbc="T T T"
O 0.00 0.10 0.00
H 0.96 0.00 0.05
H -0.24 0.93 0.10
O 2.60 2.50 0.40
H 3.30 2.00 0.90
H 2.20 3.10 1.00
"""
BOUNDS = {"f32": 5e-6, "f64": 1e-12}  # of the largest force and of the energy


def computed(clebsch, model, atoms, env, *options):
    run = subprocess.run([clebsch, "energy", "-m", model, "-s", atoms, "--repeat", "1", "--json", *options], env=env,
                         capture_output=True, text=True)
    if run.returncode or "intel emulator" in run.stderr or "rules broken" in run.stderr:
        sys.exit(f"{model} {' '.join(options)}: {run.stderr}")
    return json.loads(run.stdout)


def numbers(result):
    return [x for row in result["forces"] for x in row]


def compare(name, dtype, got, want):
    largest = max(map(abs, numbers(want)))
    errors = {"energy": abs(got["energy"] - want["energy"]) / abs(want["energy"]),
              "forces": max(abs(x - y) for x, y in zip(numbers(got), numbers(want))) / largest,
              "stress": max(abs(x - y) for x, y in zip(got["stress"], want["stress"])) / max(map(abs, want["stress"]))}
    print(f"{name} {dtype}: " + ", ".join(f"{k} {v:.1e}" for k, v in errors.items()))
    return all(v <= BOUNDS[dtype] for v in errors.values())


def main():
    driver, clebsch, make_model = sys.argv[1:4]
    if "level_zero@pvc" not in subprocess.run([clebsch, "devices"], capture_output=True, text=True).stdout:
        print("[  SKIPPED ] intel_models\nskipped: libocloc.so is not here")
        sys.exit(77)
    good = True
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        atoms, made = folder / "atoms.xyz", folder / "nequip.safetensors"
        atoms.write_text(ATOMS)
        subprocess.run([make_model, made], check=True)
        models = {"NequIP": made}
        sevennet = os.environ.get("CLB_TEST_SEVENNET")
        if sevennet:
            models["SevenNet-0"] = pathlib.Path(sevennet) / "SevenNet_0__11Jul2024" / "checkpoint_sevennet_0.pth"
        else:
            print("SevenNet-0: not here (CLB_TEST_SEVENNET)")
        env = dict(os.environ, CLB_CACHE_DIR=str(folder / "cache"))
        for name, model in models.items():
            want = computed(clebsch, model, atoms, env, "--device", "cpu", "--exact")
            emulated = dict(env, ZE_ENABLE_ALT_DRIVERS=driver)
            for dtype in BOUNDS:
                got = computed(clebsch, model, atoms, emulated, "--device", "level_zero:0", "--knots", "0", "--dtype", dtype)
                good &= compare(name, dtype, got, want)
    sys.exit(not good)


main()
