"""Writes the tables of README.md that come from bench/results: python3 bench/tables.py [--check]

A table stands between the lines "<!-- table NAME -->" and "<!-- end -->"."""
import json
import math
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PASSES = ("forward", "backward", "double_backward")


def results(name):
    return json.loads((ROOT / "bench" / "results" / name).read_text())


def table(head, rows):
    line = lambda cells: "| " + " | ".join(cells) + " |"
    return "\n".join([line(head), line(["---"] * len(head))] + [line(r) for r in rows])


def milliseconds(seconds):
    return "-" if seconds is None else f"{seconds * 1e3:.3g}"


def peers():
    """Least time of each library over its layouts and options, forward / backward."""
    run = results("h200_peers.json")
    libraries = ["clebsch", "e3nn", "openequivariance", "cuequivariance"]
    best, works = {}, []
    for r in run["results"]:
        library = r["device"].split()[0]
        work = (r["op"], r["problem"], r.get("graph"))
        if r.get("seconds") is None or not r.get("correct") or "atomics" in r["device"]:
            continue
        if work not in works:
            works.append(work)
        key = work + (library, r["pass"])
        best[key] = min(best.get(key, math.inf), r["seconds"])
    rows = []
    for work in works:
        name = ", ".join(x for x in (work[0].replace("_", " "), work[1], work[2]) if x)
        cells = [" / ".join(milliseconds(best.get(work + (library, p))) for p in PASSES[:2]) for library in libraries]
        rows.append([name] + cells)
    return table(["ms, forward / backward"] + libraries, rows)


def drivers():
    """One processor through three drivers: milliseconds, forward / backward / double backward."""
    run = results("cpu_quick.json")
    names = {}
    for d in run["devices"]:
        maker = "cpu, " if d["backend"] == "cpu" else "PoCL " if "pthread" in d["description"] else d["vendor"] + ", "
        names[d["name"]] = maker + d["driver"]
    works, seconds = [], {}
    for r in run["results"]:
        work = (r["op"], r["problem"], r.get("graph"), r.get("options"), r["rows"])
        if work not in works:
            works.append(work)
        seconds[work + (r["device"], r["pass"])] = r.get("seconds") if r.get("correct") else None
    rows = []
    for work in works:
        name = ", ".join(str(x) for x in (work[0].replace("_", " "), work[1], work[2], work[3], f"{work[4]} rows") if x)
        rows.append([name] + [" / ".join(milliseconds(seconds.get(work + (d, p))) for p in PASSES) for d in names])
    return table(["ms, forward / backward / double backward"] + list(names.values()), rows)


def main():
    readme = ROOT / "README.md"
    before = readme.read_text()
    made = {"peers": peers, "drivers": drivers}
    after = re.sub(r"<!-- table (\w+) -->\n.*?<!-- end -->", lambda m: f"<!-- table {m[1]} -->\n{made[m[1]]()}\n<!-- end -->", before, flags=re.S)
    if "--check" in sys.argv and after != before:
        sys.exit("README.md: its tables are not those of bench/results; run python3 bench/tables.py")
    if "--check" not in sys.argv:
        readme.write_text(after)


main()
