"""Clebsch: kernels and models of O(3)-equivariant networks, on GPUs and CPUs.

docs/python.md of the sources has examples.  `clebsch.ase` and `clebsch.openmm` are modules of their
own, as they need those packages."""
from ._context import Context, Device, devices
from ._library import Error
from ._structs import VERSION as __version__
from .contraction import SymmetricContraction, symmetric_contraction
from .gate import Gate, NormActivation, gate, norm_activation
from .linear import Linear, linear
from .model import Model, Neighbours, Results, convert
from .norm import RmsNorm, rms_norm
from .optimizer import Optimizer, Progress
from .ops import (Convolution, Graph, Paths, SphericalHarmonics, TensorProduct, convolution, paths,
                  spherical_harmonics, tensor_product)
from .training import Gradient, Labels, Loss

__all__ = ["Context", "Convolution", "Device", "Error", "Gate", "Gradient", "Graph", "Labels",
           "Linear", "Loss", "Model", "Neighbours", "NormActivation", "Optimizer", "Paths",
           "Progress", "Results", "RmsNorm", "SphericalHarmonics", "SymmetricContraction",
           "TensorProduct", "__version__", "convert", "convolution", "devices", "gate", "linear",
           "norm_activation", "paths", "rms_norm", "spherical_harmonics", "symmetric_contraction",
           "tensor_product"]
