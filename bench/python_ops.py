#!/usr/bin/env python3
"""What a call of an op costs the host:  python3 bench/python_ops.py [DEVICE [torch|autograd]]

Of few rows on the cpu (the default) that is nearly all of the call, and on a GPU, whose arrays must be PyTorch's, all of
it, as long as the device keeps up.  The least of many runs, in microseconds; with results in new arrays, and in arrays
that are there (out=).  autograd: of the functions of clebsch.torch, where nothing wants gradients, and where operands
do, so that the call is recorded."""
import sys
import timeit

import numpy as np

import clebsch


def least(call, runs=100, calls=200):
    call()
    return min(timeit.repeat(call, number=calls, repeat=runs)) / calls * 1e6


def ones_of(device):
    """A function that makes an array, and what ops run in."""
    if sys.argv[2:] != ["torch"]:
        return lambda *shape: np.ones(shape, np.float32), device
    import torch
    if device == "cpu":
        return torch.ones, device
    return (lambda *shape: torch.ones(*shape, device="cuda"),
            clebsch.Context(device, stream=torch.cuda.current_stream().cuda_stream))


def autograd(device):
    import torch
    import clebsch.torch
    functions = {"spherical_harmonics": clebsch.torch.spherical_harmonics([0, 1, 2]),
                 "rms_norm": clebsch.torch.rms_norm("8x0e+8x1o"),
                 "tensor_product": clebsch.torch.tensor_product(*clebsch.paths("channel_wise", "8x0e+8x1o", "0e+1o+2e", "0e+1o+2e"))}
    print(f"{'':36}{'plain':>10}{'recorded':>10}")
    for name, function in functions.items():
        letters = {"spherical_harmonics": "x", "rms_norm": "xw"}.get(name, "xyw")
        for rows in (1, 100):
            arrays = [torch.ones(1 if name == "rms_norm" and one == "w" else rows, function.columns[one], device=device) for one in letters]
            plain = least(lambda: function(*arrays))
            arrays[0].requires_grad_()
            print(f"{name}, {rows}".ljust(36) + f"{plain:10.1f}{least(lambda: function(*arrays)):10.1f}")


def main():
    if sys.argv[2:] == ["autograd"]:
        return autograd(sys.argv[1])
    ones, device = ones_of(sys.argv[1] if sys.argv[1:] else "cpu")
    paths = clebsch.paths("channel_wise", "8x0e+8x1o", "0e+1o+2e", "0e+1o+2e")
    ops = {"spherical_harmonics": clebsch.spherical_harmonics([0, 1, 2], device=device),
           "rms_norm": clebsch.rms_norm("8x0e+8x1o", device=device),
           "tensor_product": clebsch.tensor_product(*paths, device=device)}
    print(f"{'':36}{'new':>8}{'out=':>8}")
    for name, op in ops.items():
        for word, of in op._passes.items():
            for rows in (1, 100):
                arrays = [ones(op._fixed.get(kind, rows), op.columns[kind]) for kind in of.kinds[:of.n_inputs]]
                call, out = getattr(op, word), getattr(op, word)(*arrays)
                new, there = least(lambda: call(*arrays)), least(lambda: call(*arrays, out=out))
                print(f"{name}.{word}, {rows}".ljust(36) + f"{new:8.1f}{there:8.1f}")


if __name__ == "__main__":
    main()
