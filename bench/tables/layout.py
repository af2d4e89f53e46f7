"""What tables have in common."""

from runs import PASSES, milliseconds


def table(head, rows):
    def line(cells):
        return "| " + " | ".join(cells) + " |"

    return "\n".join([line(head), line(["---"] * len(head))] + [line(r) for r in rows])


def times(runs):
    cells = [milliseconds(r["seconds"]) if r and r.get("correct") else "-" for r in runs]
    return " / ".join(cells) if any(runs) else "-"


def shares(runs):
    """Milliseconds of each pass, and the percentage of the floor's speed that it reaches."""

    def percent(r):
        ok = r and r.get("correct")
        return f"{100 * r['floor_seconds'] / r['seconds']:.0f}" if ok else "-"

    return times(runs) + (f" ({' / '.join(map(percent, runs))} %)" if any(runs) else "")


def passes_of(by, device, dtype):
    return [by.get((device, dtype, q)) for q in PASSES]


def name_of(*parts):
    return ", ".join(str(x).replace("_", " ") for x in parts if x)


def of_ideal(seconds, ideal):
    return f"{milliseconds(seconds)} ({100 * ideal / seconds:.0f} %)"
