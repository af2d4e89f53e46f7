"""What bounds a model's convolutions on a GPU of NVIDIA, from the hardware's counters:

    ncu -k 'regex:convolution|row_sum' --metrics $(python3 bench/counters.py --metrics) \\
        build/tools/clebsch energy -m MODEL -s STRUCTURE -d cuda --knots 512 --repeat 1 |
        python3 bench/counters.py --name "Nequix mp-1, carbon, 1,000" --json counters.json

Adds the kernels of ncu's output to the file, in the order of their launches."""
import argparse
import json
import pathlib
import re
import sys

METRICS = {"seconds": "gpu__time_duration.sum",
           "instructions": "smsp__inst_executed.sum",
           "issue": "smsp__issue_active.avg.pct_of_peak_sustained_elapsed",
           "warps": "smsp__warps_active.avg.per_cycle_active",
           "l1_hits": "l1tex__t_sector_hit_rate.pct",
           "l2_bytes_per_second": "lts__t_bytes.sum.per_second",
           "dram_bytes": "dram__bytes.sum"}
UNITS = {"us": 1e-6, "ms": 1e-3, "ns": 1e-9, "byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9,
         "Gbyte/s": 1e9, "Tbyte/s": 1e12, "%": 0.01, "inst": 1, "warp": 1}


def kernels_of(text):
    found = []
    for line in text.splitlines():
        words = line.split()
        if re.match(r"\s+\w+ \(\d+, \d+, \d+\)x\(", line):
            found.append({"kernel": words[0]})
        for key, metric in METRICS.items():
            if len(words) == 3 and words[0] == metric and found:
                found[-1][key] = float(words[2].replace(",", "")) * UNITS[words[1]]
    return found


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--metrics", action="store_true", help="print what ncu is to count")
    p.add_argument("--name", help="of model and structure")
    p.add_argument("--json", type=pathlib.Path, help="the file")
    a = p.parse_args()
    if a.metrics:
        print(",".join(METRICS.values()))
        return
    if not a.name or not a.json:
        sys.exit("counters.py: --name and --json are needed, or --metrics")
    all_runs = json.loads(a.json.read_text()) if a.json.exists() else {"runs": []}
    text = sys.stdin.read()
    edges = re.search(r"^edges\s+(\d+)", text, re.M)
    all_runs["runs"].append({"name": a.name, "edges": int(edges[1]), "kernels": kernels_of(text)})
    a.json.write_text(json.dumps(all_runs, indent=1) + "\n")


main()
