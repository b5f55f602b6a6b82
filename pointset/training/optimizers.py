"""Torch's optimizers without its compiler, whose import takes as long as that of torch itself.

`torch.optim` imports the compiler when an optimizer is made, only to tell it to pass over some methods. What these
methods wrap does the same and imports nothing. Where torch no longer wraps them, they are taken as they are.
"""

import inspect
from typing import TypeVar

import torch
from torch.optim import Optimizer

WRAPPED = ("add_param_group", "load_state_dict", "state_dict", "zero_grad")
T = TypeVar("T", bound=Optimizer)


def uncompiled(optimizer: type[T]) -> type[T]:
    """The optimizer for code that is not compiled: the same numbers by the same name."""
    methods = {name: inspect.unwrap(getattr(optimizer, name)) for name in WRAPPED}
    step = torch.no_grad()(inspect.unwrap(optimizer.step))
    about = {"__doc__": optimizer.__doc__, "__module__": optimizer.__module__}
    return type(optimizer.__name__, (optimizer,), {**methods, **about, "step": step})


Adam = uncompiled(torch.optim.Adam)
AdamW = uncompiled(torch.optim.AdamW)
SGD = uncompiled(torch.optim.SGD)
