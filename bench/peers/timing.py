"""timing.py - times of calls for norms.py and optimizers.py, what the same bytes cost a plain
kernel, and the file of results."""
import datetime
import gc
import json
import os
import statistics
import time

import torch

from clebsch import _structs as structs

FLUSHED = {"cuda": 512 << 20, "cpu": 64 << 20}  # bytes: more than the last cache holds
CYCLES = 2e9  # a second of torch.cuda._sleep, at most


class Clock:
    """device: "cuda" or "cpu"; repeats of each measurement."""

    def __init__(self, device, repeats):
        self.device, self.repeats, self._floors = device, repeats, {}
        self.flushed = torch.ones(FLUSHED[device] // 4, device=device)

    def flush(self):
        """Reads more than the last cache holds: no line of it is dirty then."""
        self.flushed.sum()

    def synchronize(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    def host(self, call, calls=20):
        """Seconds until a call returns, the device being idle before."""
        times = []
        for _ in range(calls):
            self.synchronize()
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        self.synchronize()
        return statistics.median(times)

    def wall(self, call, calls=20):
        """Seconds of one of many calls, each submitted as soon as the one before returned."""
        call()
        self.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        self.synchronize()
        return (time.perf_counter() - start) / calls

    def device_time(self, call):
        """Median seconds on the device, the caches cold.  The device spins while the host submits
        the call, so that it never waits for the host between the two events."""
        for _ in range(3):
            call()
        if self.device == "cpu":
            return statistics.median(self._cpu(call) for _ in range(self.repeats))
        spin = int(1.5 * (self.host(call, 3) + 1e-4) * CYCLES)
        events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)]
                  for _ in range(self.repeats)]
        for before, after in events:
            torch.cuda._sleep(spin)
            self.flush()
            before.record()
            call()
            after.record()
            torch.cuda.synchronize()
        return statistics.median(before.elapsed_time(after) for before, after in events) / 1e3

    def _cpu(self, call):
        self.flush()
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    def floor(self, arrays, bytes_moved):
        """Seconds of a plain kernel that moves as many bytes: for 2 arrays that are read or
        written a copy, for more the sum of two arrays."""
        kind = 2 if arrays == 2 else 3
        n = -(-bytes_moved // (4 * kind))
        if (kind, n) not in self._floors:
            a, b = (torch.ones(n, device=self.device) for _ in range(2))
            c = torch.empty_like(a)
            call = (lambda: c.copy_(a)) if kind == 2 else lambda: torch.add(a, b, out=c)
            self._floors[kind, n] = self.device_time(call)
        return self._floors[kind, n]

    def where(self):
        return torch.cuda.get_device_name() if self.device == "cuda" else "cpu"


def kernels_of(call):
    """How many kernels a call launches."""
    from torch.profiler import ProfilerActivity, profile
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as run:
        call()
        torch.cuda.synchronize()
    return sum(e.device_type == torch.autograd.DeviceType.CUDA and "Memset" not in e.name
               and "Memcpy" not in e.name for e in run.events())


def difference(found, wanted):
    """The largest difference, relative to the largest number of what is wanted, over tensors."""
    worst = 0.0
    for a, b in zip(found, wanted):
        scale = b.abs().max().clamp_min(1e-300)
        error = ((a.to(b.dtype) - b).abs().max() / scale).item()
        worst = max(worst, error if error == error else float("inf"))
    return worst


class Results:
    """A file that is complete after each row; rows that it has are not measured again."""

    def __init__(self, path, about, seconds):
        self.path, self.end = path, time.monotonic() + seconds if seconds else None
        now = datetime.datetime.now(datetime.timezone.utc)
        self.run = {"clebsch": structs.VERSION, **about, "results": [],
                    "started": now.isoformat("T", "seconds")}
        if path and os.path.exists(path):
            with open(path) as file:
                before = json.load(file)
            changed = [k for k in about if before.get(k) != about[k] and k != "versions"]
            if changed or before["clebsch"] != structs.VERSION:
                raise SystemExit(f"{path}: it is of another {', '.join(changed) or 'version'}")
            before["versions"] = {**before.get("versions", {}), **about.get("versions", {})}
            self.run = before
        self.late = 0

    def has(self, **key):
        return any(all(row.get(k) == v for k, v in key.items()) for row in self.run["results"])

    def is_late(self):
        late = self.end is not None and time.monotonic() > self.end
        self.late += late
        return late

    def add(self, key, measure):
        """measure() returns the other members of the row."""
        if self.has(**key) or self.is_late():
            return
        try:
            row = {**key, **measure()}
        except Exception as failure:  # one peer's trouble is not the others'
            row = {**key, "failed": f"{type(failure).__name__}: {failure}".splitlines()[0][:300]}
        self.run["results"].append(row)
        print(" ".join(f"{v * 1e6:.1f}us" if k.endswith("seconds") else
                       f"{v:.1e}" if k == "error" and v is not None else str(v)
                       for k, v in row.items() if v is not None), flush=True)
        self.save()
        gc.collect()

    def save(self):
        if not self.path:
            return
        with open(self.path + ".new", "w") as file:
            head = {k: v for k, v in self.run.items() if k != "results"}
            rows = ",\n".join(json.dumps(row) for row in self.run["results"])
            file.write(json.dumps(head)[:-1] + ',\n"results": [\n' + rows + "\n]}\n")
        os.replace(self.path + ".new", self.path)
