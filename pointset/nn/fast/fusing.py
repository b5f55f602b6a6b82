"""When a block may leave torch's modules aside and do the same work tile by tile (`reading`, `writing`)."""

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad


def may_fuse(module: nn.Module, *rows: Tensor) -> bool:
    """Whether nobody would notice, but for the time.

    On a GPU the plain order has kernels of its own; a compiler, an exporter or a transform of `torch.func` wants to see
    the plain order, autocast decides types operator by operator, and hooks want their modules called.
    """
    return all(_fits(part) for part in rows) and not (
        is_watched() or torch.is_autocast_enabled("cpu") or _has_hooks(module)
    )


def _fits(rows: Tensor) -> bool:
    return rows.device.type == "cpu" and rows.dtype in (torch.float32, torch.float64)


def is_watched() -> bool:
    """Whether a compiler, an exporter or a transform of `torch.func` looks on, which cannot follow values."""
    return (
        torch.compiler.is_compiling()
        or torch.jit.is_tracing()
        or torch._C._functorch.maybe_current_level() is not None
        or forward_ad._current_level >= 0
    )


def _has_hooks(module: nn.Module) -> bool:
    return any(part._forward_hooks or part._forward_pre_hooks or part._backward_hooks for part in module.modules())
