"""All uses of torch's private interfaces. Tested with torch 2.13.

If a private function no longer exists, a public fallback gives the same result more slowly, or the cautious answer.
"""

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad


def has_hooks(module: nn.Module) -> bool:
    """True if the module or a submodule has a forward or backward hook, or if this cannot be determined."""
    try:
        if module._forward_hooks or module._forward_pre_hooks or module._backward_hooks:
            return True
        # This takes half the time of `modules()`.
        return any(has_hooks(part) for part in module._modules.values() if part is not None)
    except AttributeError:
        return True


def softmax_backward(g: Tensor, A: Tensor) -> Tensor:
    """The gradient A (g - sum(g A)) of the logits, given the gradient g of A = softmax(logits); overwrites g."""
    try:
        return torch._softmax_backward_data(g, A, -1, A.dtype, grad_input=g)
    except AttributeError:
        return g.sub_((g * A).sum(dim=-1, keepdim=True)).mul_(A)


def relu_backward(g: Tensor, above: Tensor) -> Tensor:
    """The gradient g where `above` is positive, else 0; overwrites `above`."""
    try:
        return torch.ops.aten.threshold_backward.grad_input(g, above, 0, grad_input=above)
    except AttributeError:
        return above.sign_().clamp_(min=0).mul_(g)


def is_traced() -> bool:
    """True under a compiler, an exporter or a transform of `torch.func`: code must not depend on values of tensors."""
    if torch.compiler.is_compiling() or torch.jit.is_tracing():
        return True
    try:  # a transform, or forward-mode differentiation
        return torch._C._functorch.maybe_current_level() is not None or forward_ad._current_level >= 0
    except AttributeError:
        return True
