"""Steps of molecular dynamics in programs of Python, for hosts.py: python_hosts.py HOST with its options, where HOST is
ase, ase_device (ASE's dynamics as clebsch.ase has it, of atoms on the device), serve (ASE's, whose forces come from
`clebsch serve` through a socket) or openmm. Prints the seconds of a step in each of some chunks, as JSON."""
import argparse
import json
import os
import subprocess
import time

import ase.io
import ase.units
import numpy as np

ANGSTROM = 0.1  # nm


def in_ase(a, atoms, calculator, kind=None):
    from ase.md.velocitydistribution import MaxwellBoltzmannDistribution
    from ase.md.verlet import VelocityVerlet
    atoms.calc = calculator
    MaxwellBoltzmannDistribution(atoms, temperature_K=300, rng=np.random.default_rng(1))
    return (kind or VelocityVerlet)(atoms, 0.5 * ase.units.fs).run


def run_ase(a, atoms):
    import clebsch.ase
    calculator = clebsch.ase.Calculator(a.model, device=a.device, knots=a.knots)
    return timed(in_ase(a, atoms, calculator), a)


def run_ase_device(a, atoms):
    import clebsch.ase
    calculator = clebsch.ase.Calculator(a.model, device=a.device, knots=a.knots)
    return timed(in_ase(a, atoms, calculator, clebsch.ase.VelocityVerlet), a)


def run_serve(a, atoms):
    from ase.calculators.socketio import SocketIOCalculator
    name = f"clebsch_hosts_{os.getpid()}"
    command = [a.clebsch, "serve", "--model", a.model, "--structure", a.structure, "--device", a.device, "--unix", name]
    command += [] if a.knots is None else ["--knots", str(a.knots)]
    calculator = SocketIOCalculator(unixsocket=name)
    served = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        return timed(in_ase(a, atoms, calculator), a)
    finally:
        calculator.close()
        served.wait()


def run_openmm(a, atoms):
    import clebsch.openmm
    import openmm
    system = openmm.System()
    for mass in atoms.get_masses():
        system.addParticle(mass)
    system.setDefaultPeriodicBoxVectors(*(atoms.cell.array * ANGSTROM))
    system.addForce(clebsch.openmm.force(a.model, atoms.numbers, periodic=True, device=a.device, knots=a.knots))
    names = [openmm.Platform.getPlatform(i).getName() for i in range(openmm.Platform.getNumPlatforms())]
    platform = next(p for p in (a.platform, "CPU", "Reference") if p in names)
    context = openmm.Context(system, openmm.VerletIntegrator(0.0005), openmm.Platform.getPlatformByName(platform))
    context.setPositions(atoms.positions * ANGSTROM)
    context.setVelocitiesToTemperature(300, 1)
    return timed(context.getIntegrator().step, a)


def timed(run, a):
    run(3)
    times = [time.perf_counter()]
    for _ in range(a.chunks):
        run(a.steps)
        times.append(time.perf_counter())
    return [(t - s) / a.steps for s, t in zip(times, times[1:])]


def main():
    hosts = {"ase": run_ase, "ase_device": run_ase_device, "serve": run_serve, "openmm": run_openmm}
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("host", choices=hosts)
    for name in "model", "structure", "device":
        p.add_argument(f"--{name}", required=True)
    p.add_argument("--knots", type=int)
    p.add_argument("--steps", type=int, default=10, help="of a chunk")
    p.add_argument("--chunks", type=int, default=10)
    p.add_argument("--clebsch", default="clebsch", help="the command, of `serve`")
    p.add_argument("--platform", default="CUDA", help="of OpenMM, if it is there (default: CUDA); else CPU")
    a = p.parse_args()
    print(json.dumps(hosts[a.host](a, ase.io.read(a.structure))))


main()
