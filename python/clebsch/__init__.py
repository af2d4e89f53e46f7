"""Clebsch: kernels and models of O(3)-equivariant networks, on GPUs and CPUs.

docs/python.md of the sources has examples.  `clebsch.ase` and `clebsch.openmm` are modules of their
own, as they need those packages."""
from ._context import Context
from ._library import Error
from ._structs import VERSION as __version__
from .model import Model, convert
from .ops import Graph, Paths, convolution, paths, spherical_harmonics, tensor_product

__all__ = ["Context", "Error", "Graph", "Model", "Paths", "__version__", "convert", "convolution",
           "paths", "spherical_harmonics", "tensor_product"]
