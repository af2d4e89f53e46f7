"""Ops as functions and modules of PyTorch, which autograd differentiates and torch.compile keeps
whole.  docs/torch.md of the sources has examples."""
try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError("clebsch.torch needs PyTorch 1.13 or newer: pip install torch, or Debian's "
                      f"python3-torch ({error})") from None

from ._functions import (Function, convolution, gate, linear, norm_activation, rms_norm,
                         spherical_harmonics, symmetric_contraction, tensor_product)
from ._modules import (Convolution, ElementwiseTensorProduct, FullTensorProduct,
                       FullyConnectedTensorProduct, Gate, Linear, RMSNorm, SphericalHarmonics,
                       SymmetricContraction, TensorProduct)
from ._optimizer import Optimizer
from ._patch import patch

__all__ = ["Convolution", "ElementwiseTensorProduct", "FullTensorProduct",
           "FullyConnectedTensorProduct", "Function", "Gate", "Linear", "Optimizer", "RMSNorm",
           "SphericalHarmonics", "SymmetricContraction", "TensorProduct", "convolution", "gate",
           "linear", "norm_activation", "patch", "rms_norm", "spherical_harmonics",
           "symmetric_contraction", "tensor_product"]
