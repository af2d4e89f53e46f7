"""golden_tensor_product.py - prints golden_tensor_product.txt: products of e3nn 0.6.0 with three derivatives by automatic differentiation.
   P x|y|z irrep_normalization path_normalization; I in1 in2 out mode has_weight path_weight; then each vector by its letter, in the order
   of clb_triple_operands, with z, g_x, g_y, g_w, d_x ... e_c.  N name x|y|filter|x used|y used|z: a named product and its instructions."""
import torch
from e3nn import o3

torch.manual_seed(1)
torch.set_default_dtype(torch.float64)
MODES = ["uvw", "uvu", "uvv", "uuw", "uuu", "uvuv", "uvu<v", "u<vw"]
PRODUCTS = [
    ("2x1o+3x0e", "3x1o+1x2e", "2x1e+2x0e+2x3o+1x1o", [(0, 0, 0, "uvw", True, 1), (0, 0, 1, "uvw", True, 0.5), (0, 1, 2, "uvw", True, 2), (1, 0, 3, "uvw", True, 1), (0, 1, 3, "uvw", True, 1)]),
    ("3x1o+2x0e", "2x1o+2x0e", "3x1e+2x1o+2x0e", [(0, 0, 0, "uvu", True, 1), (0, 0, 0, "uvu", False, 2), (1, 0, 1, "uvu", True, 1), (1, 1, 2, "uvu", False, 0.3)]),
    ("3x1o+2x0e", "2x1o+2x2e", "2x1e+2x1o+2x2e", [(0, 0, 0, "uvv", True, 1), (0, 1, 1, "uvv", False, 2), (1, 0, 1, "uvv", True, 1), (1, 1, 2, "uvv", True, 1)]),
    ("3x1o+2x2e", "3x1o+2x1o", "4x0e+1x1e+2x3o", [(0, 0, 0, "uuw", True, 1), (0, 0, 1, "uuw", False, 2), (1, 1, 2, "uuw", True, 1)]),
    ("3x1o+2x2e", "3x1o+2x1o", "3x0e+3x1e+2x3o", [(0, 0, 0, "uuu", True, 1), (0, 0, 1, "uuu", False, 2), (1, 1, 2, "uuu", True, 1)]),
    ("3x1o+2x0o", "2x1o+1x2e", "6x0e+6x1e+3x1o+4x1e", [(0, 0, 0, "uvuv", True, 1), (0, 0, 1, "uvuv", False, 2), (0, 1, 2, "uvuv", True, 1), (1, 0, 3, "uvuv", True, 0.5)]),
    ("4x1o+3x0e", "4x1o+3x0e", "6x0e+6x1e+3x0e", [(0, 0, 0, "uvu<v", True, 1), (0, 0, 1, "uvu<v", False, 2), (1, 1, 2, "uvu<v", True, 1)]),
    ("4x1o+3x0e", "4x1o+3x0e", "2x0e+3x1e", [(0, 0, 0, "u<vw", True, 1), (0, 0, 1, "u<vw", True, 2), (1, 1, 0, "u<vw", True, 1)]),
    ("3x1o+3x0e", "3x1o+3x0e", "3x0e+3x1o+9x1e", [(0, 0, 0, "uvw", True, 1), (0, 0, 0, "uvu", True, 1), (0, 0, 0, "uuw", True, 2), (0, 0, 0, "uuu", True, 1),
     (0, 0, 0, "uvu<v", True, 1), (1, 1, 0, "u<vw", True, 1), (0, 1, 1, "uvv", True, 1), (1, 0, 1, "uuu", False, 1), (0, 0, 2, "uvuv", False, 1)]),
]
NORMS = [("component", "element"), ("norm", "path"), ("norm", "element"), ("component", "path"), ("none", "none")]


def show(name, t):
    print(name, *("%.17g" % v for v in t.flatten().tolist()))


def instructions(tp):
    for i in tp.instructions:
        print("I", i.i_in1, i.i_in2, i.i_out, MODES.index(i.connection_mode), int(i.has_weight))


def product(x, y, z, ins, irrep, path):
    tp = o3.TensorProduct(x, y, z, ins, irrep_normalization=irrep, path_normalization=path)
    print(f"P {x}|{y}|{z} {irrep} {path}")
    for i in ins:
        print("I", i[0], i[1], i[2], MODES.index(i[3]), int(i[4]), i[5])
    sizes = dict(zip("xywg", [tp.irreps_in1.dim, tp.irreps_in2.dim, tp.weight_numel, tp.irreps_out.dim]))
    v = {n: torch.randn(sizes["xywgxywxywg"[i]], requires_grad=True) for i, n in enumerate("xywgabcpqrs")}
    for n in v:
        show(n, v[n])
    out = tp(v["x"], v["y"], v["w"])
    show("z", out)
    names, s = "g", (out * v["g"]).sum()
    for letter, by, with_ in ("g", "xyw", "abc"), ("d", "xywg", "pqrs"), ("e", "xywgabc", ""):
        grads = torch.autograd.grad(s, [v[n] for n in by], create_graph=True)
        for n, g in zip(by, grads):
            show(f"{letter}_{n}", g)
        s = sum((g * v[n]).sum() for g, n in zip(grads, with_))


print("# e3nn", __import__("e3nn").__version__)
for k, p in enumerate(PRODUCTS):
    product(*p, *NORMS[k % len(NORMS)])
NAMED = [
    ("full", "2x1o+1x1o+0x3e+1x0e", "1x2e+2x1o", ""), ("full", "3x0o+2x1e", "1x1o+1x0o+1x1e", "0o+1e+1o+2e"),
    ("elementwise", "2x1o+3x0e+1x2e", "1x0e+1x1o+1x1e+3x2e", ""), ("elementwise", "4x1o", "1x0e+3x1o", "0e+1e+1o"),
    ("connected", "2x1o+3x0e+1x1e", "1x0e+1x1o", "2x0e+3x1o+1x1e+2x2e+1x0o"),
]
for name, x, y, z in NAMED:
    keep = [ir for _, ir in o3.Irreps(z)] if z else None
    if name == "full":
        tp = o3.FullTensorProduct(x, y, filter_ir_out=keep)
    elif name == "elementwise":
        tp = o3.ElementwiseTensorProduct(x, y, filter_ir_out=keep)
    else:
        tp = o3.FullyConnectedTensorProduct(x, y, z)
    used = "|".join(str(i).replace(" ", "") for i in (tp.irreps_in1, tp.irreps_in2, tp.irreps_out))
    print(f"N {name} {x}|{y}|{z}|{used}")
    instructions(tp)
