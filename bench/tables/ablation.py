"""Tables of what each optimisation is worth."""

import math

from layout import name_of, table
from runs import ROOT, geometric_mean, results


def ablation():
    """The time without an optimisation divided by the time with it: geometric mean over cases, and
    the number of cases."""
    files = sorted((ROOT / "bench" / "results").glob("ablation_*.json"))
    devices = [(run, d) for run in (results(f.name) for f in files) for d in run["devices"]]
    names, ratios = [], {}
    for i, (run, d) in enumerate(devices):
        mine = [r for r in run["results"] if r["device"] == d["name"]]
        for way in (w for r in mine for w in r["ways"]):
            if way["without"] not in names:
                names.append(way["without"])
            ratios.setdefault((i, way["without"]), []).append(way["ratio"])
    names.sort(key=lambda name: name == "all of them")

    def cell(r):
        return f"{geometric_mean(r):.3g} ({len(r)})" if r else "-"

    rows = [[name] + [cell(ratios.get((i, name))) for i in range(len(devices))] for name in names]
    return table(["time without / with (cases)"] + [d["description"] for _, d in devices], rows)


SWITCHES = {
    "without wide accesses": "wide aligned accesses",
    "without persistent reductions": "accumulators in registers",
    "without split reductions": "split of long reductions",
}


def suites():
    """Speed over a naive kernel by device and suite: with all optimisations, without each, without
    all, and what the last would be if each cost alone what it costs with the others."""
    files = sorted((ROOT / "bench" / "results").glob("suites_*.json"))
    columns = {}
    for run, d in ((run, d) for run in (results(f.name) for f in files) for d in run["devices"]):
        for r in run["results"]:
            if r["device"] == d["name"]:
                columns.setdefault((d["description"], r["suite"]), []).append(r)

    def ratio(case, without):
        return next((w["ratio"] for w in case["ways"] if w["without"] == without), 1)

    def line(title, loss):
        return [title] + [
            f"""{geometric_mean([r['naive_seconds_min'] / r['seconds_min'] / loss(r)
                                               for r in cases]):.3g}"""
            for cases in columns.values()
        ]

    rows = [line("all on", lambda r: 1)]
    rows += [line(title, lambda r, w=without: ratio(r, w)) for title, without in SWITCHES.items()]
    rows.append(line("without any", lambda r: ratio(r, "all of them")))
    rows.append(
        line(
            "the three losses multiplied",
            lambda r: math.prod(ratio(r, w) for w in SWITCHES.values()),
        )
    )
    return table(
        ["speed over a naive kernel (cases)"]
        + [f"{device}: {suite} ({len(cases)})" for (device, suite), cases in columns.items()],
        rows,
    )


def suite_cases():
    """The same case by case: how many times slower it is without each and without any."""
    files = sorted((ROOT / "bench" / "results").glob("suites_*.json"))
    rows = []
    for run, d in ((run, d) for run in (results(f.name) for f in files) for d in run["devices"]):
        for r in (r for r in run["results"] if r["device"] == d["name"]):
            of = {w["without"]: f"{w['ratio']:.2f}" for w in r["ways"]}
            where = r["graph"] or (f"{r['rows']:,} rows" if r["rows"] > 1 else None)
            name = name_of(r["work"], r["problem"], r["layout"], where, r["pass"])
            rows.append(
                [name, f"{r['naive_seconds_min'] / r['seconds_min']:.3g}"]
                + [of.get(w, "-") for w in [*SWITCHES.values(), "all of them"]]
            )
    return table(
        [
            "case",
            "speed over naive",
            "time without / with wide",
            "persistent",
            "split",
            "all three",
        ],
        rows,
    )
