"""problems.py - the products, graphs and harmonics that everybody publishes on, by the names that `clebsch bench` has for them."""
import numpy as np


def both(mul, l_max):
    return "+".join(f"{mul}x{l}o+{mul}x{l}e" for l in range(l_max + 1))


def harmonics(l_max):
    return "+".join(f"{l}{'eo'[l % 2]}" for l in range(l_max + 1))


NEQUIX, EVEN = "128x0e+64x1o+32x2e+32x3o", "0e+1e+2e+3e"

# x, y and the irreps that are kept of their channel-wise product
PRODUCTS = {
    "mace-large": ("128x0e+128x1o+128x2e", harmonics(3), harmonics(3)),
    "mace-medium": ("128x0e+128x1o", harmonics(3), harmonics(2)),
    "nequip-lips": (both(32, 2), harmonics(2), both(1, 2)),
    "nequip-aspirin": (both(64, 1), harmonics(1), both(1, 1)),
    "nequip-toluene": (both(64, 2), harmonics(2), both(1, 2)),
    "nequip-benzene": (both(64, 3), harmonics(3), both(1, 3)),
    "nequip-water": (both(32, 1), harmonics(1), both(1, 1)),
    "nequix-first": ("89x0e", harmonics(3), harmonics(3)),
    "nequix-main": (NEQUIX, harmonics(3), harmonics(3)),
    "nequix-last": (NEQUIX, harmonics(3), "0e"),
    "sevennet-first": ("128x0e", EVEN, EVEN),
    "sevennet-main": ("128x0e+64x1e+32x2e+32x3e", EVEN, EVEN),
}
PRODUCTS.update((f"flashtp-l{l}", (both(32, l), harmonics(l), both(1, l))) for l in range(1, 6))
PRODUCTS.update((f"single-{a}-{b}-{z}", (f"128x{a}e", f"{b}e", f"{z}e"))
                for a, b, z in [(1, 1, 1), (2, 1, 2), (3, 3, 3), (5, 5, 3), (5, 3, 5), (6, 3, 6), (7, 4, 7), (7, 7, 7)])


def carbon(cells=5, a=3.567, cutoff=6.0):
    """Diamond, periodic: every pair nearer than the cutoff, images apart."""
    fcc = np.array([(0, 0, 0), (0, .5, .5), (.5, 0, .5), (.5, .5, 0)])
    corners = np.stack(np.meshgrid(*3 * [np.arange(cells)], indexing="ij"), -1).reshape(-1, 1, 3)
    at = a * (corners + np.concatenate([fcc, fcc + .25])).reshape(-1, 3)
    images = int(np.ceil(cutoff / (a * cells)))
    senders, receivers = [], []
    for shift in np.stack(np.meshgrid(*3 * [np.arange(-images, images + 1)], indexing="ij"), -1).reshape(-1, 3):
        d = at[None] + a * cells * shift - at[:, None]
        near = (d * d).sum(-1) < cutoff * cutoff
        if not shift.any():
            np.fill_diagonal(near, False)
        r, s = near.nonzero()
        receivers.append(r), senders.append(s)
    return len(at), np.concatenate(senders), np.concatenate(receivers)


def by_lot(degrees):
    receivers = np.repeat(np.arange(len(degrees)), degrees)
    return len(degrees), np.random.default_rng(1).integers(0, len(degrees), len(receivers)), receivers


def graph(name):
    """(nodes, senders, receivers): edges by receiver, then sender, which suits every library; int64."""
    kind, _, cells = name.partition(":")
    makers = {"carbon": lambda: carbon(int(cells or 5)), "flashtp": lambda: by_lot([64] * 512), "hub": lambda: by_lot([100000] + [8] * 1000)}
    if kind not in makers:
        raise SystemExit(f"there is no graph '{name}'; there are carbon (carbon:N: NxNxN cells), flashtp and hub")
    n, senders, receivers = makers[kind]()
    order = np.lexsort((senders, receivers))
    return n, np.ascontiguousarray(senders[order], np.int64), np.ascontiguousarray(receivers[order], np.int64)
