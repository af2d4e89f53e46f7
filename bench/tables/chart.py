"""Draws docs/peers.svg from bench/results: the times of Clebsch and other libraries for one tensor
product and one convolution, forward and backward.  This folder writes the file and checks it."""

from runs import best_of_peers, milliseconds, version

NAMES = {
    "clebsch": "Clebsch",
    "openequivariance": "OpenEquivariance",
    "cuequivariance": "cuEquivariance",
    "e3nn": "e3nn",
}
GROUPS = [
    ("tensor product, mace-large, 50,000 rows", ("tensor_product", "mace-large", None)),
    ("graph convolution, mace-large, 158,000 edges", ("convolution", "mace-large", "carbon")),
]
LEFT, WIDTH, ROW = 130, 300, 15  # left edge and length of the bars; height of a line


def svg():
    best, lines, top = best_of_peers(), [], 34
    columns = [(LEFT, "forward"), (LEFT + WIDTH + 90, "backward")]
    for title, work in GROUPS:
        lines.append(f'<text x="8" y="{top}" class="h">{title}</text>')
        for x, which in columns:
            lines.append(f'<text x="{x}" y="{top + 16}" class="p">{which}, ms</text>')
        for i, library in enumerate(NAMES):
            y = top + 22 + i * ROW
            lines.append(f'<text x="{LEFT - 6}" y="{y + 10}" class="n">{NAMES[library]}</text>')
            for x, which in columns:
                times = {n: best[work + (n, which)] for n in NAMES}
                # e3nn is ten times slower: its bar is cut short, its number is shown in full.
                longest = max(t for n, t in times.items() if n != "e3nn") * 1.1
                length, cut = WIDTH * min(1, times[library] / longest), times[library] > longest
                fill = "#2a6fbb" if library == "clebsch" else "#b8bec6"
                lines.append(
                    f'<rect x="{x}" y="{y}" width="{length:.1f}" height="{ROW - 4}" '
                    f'fill="{fill}"/>'
                )
                if cut:
                    lines.append(
                        f'<path d="M{x + WIDTH - 30} {y + ROW - 2}l6 -{ROW}" '
                        'stroke="#fff" stroke-width="4"/>'
                    )
                lines.append(
                    f'<text x="{x + length + 5:.1f}" y="{y + 10}" class="v">'
                    f"{milliseconds(times[library])}</text>"
                )
        top += 22 + len(NAMES) * ROW + 28
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + 2 * WIDTH + 140} '
        f'{top - 14}" font-family="sans-serif" font-size="11">'
    )
    style = (
        "<style>.h{font-weight:bold;font-size:12px}.p{fill:#666}.n{text-anchor:end}"
        ".v{fill:#222}</style>"
    )
    note = (
        f'<text x="8" y="14" class="p">Clebsch {version("h200_peers.json")}; NVIDIA H200, f32, '
        "milliseconds, shorter is better; each library's best layout and options; bars of e3nn "
        "are cut</text>"
    )
    back = '<rect width="100%" height="100%" fill="#fff"/>'
    return "\n".join([head, style, back, note, *lines, "</svg>", ""])
