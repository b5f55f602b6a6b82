"""Whether code may look at the values of tensors, or leave the operations that a compiler can see."""

import torch
from torch import Tensor
from torch.autograd import forward_ad


def have_values(*tensors: Tensor) -> bool:
    """False under a compiler, an exporter, a transform of `torch.func` or forward-mode differentiation."""
    if torch.compiler.is_compiling() or torch.jit.is_tracing():
        return False
    try:
        for tensor in tensors:
            tensor.data_ptr()  # a tensor that stands for others has none
    except RuntimeError:
        return False
    return all(forward_ad.unpack_dual(tensor).tangent is None for tensor in tensors)
