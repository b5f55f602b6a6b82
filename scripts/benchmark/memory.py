"""Memory of a training step: what forward and backward pass hold at their peak."""

import copy
import weakref
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from pointset.evaluation.costs import clouds_for
from pointset.zoo.classifiers import SetClassifier


def step_memory(model: nn.Module, points: int, batch_size: int) -> int:
    """Bytes that forward and backward pass hold at their peak, gradients included; on a CPU also the parameters."""
    model = copy.deepcopy(model).train()  # its batch statistics and gradients are its own
    clouds = clouds_for(model, batch_size, points)
    if isinstance(model, SetClassifier):  # training sets come with the local features
        clouds = model.with_numbers(clouds)
    labels = torch.zeros(batch_size, dtype=torch.long, device=clouds.device)

    def step() -> None:
        F.cross_entropy(model(clouds).flatten(1), labels).backward()

    with torch.random.fork_rng():
        if clouds.is_cuda:
            torch.cuda.reset_peak_memory_stats(clouds.device)
            before = torch.cuda.memory_allocated(clouds.device)
            step()
            return torch.cuda.max_memory_allocated(clouds.device) - before
        with _Held() as held:
            step()
        return held.peak


class _Held(TorchDispatchMode):
    """Follows the memory of the results of every operator, backward pass included, until it is freed.

    The peak of a whole process never falls. A view of a tensor from before is a result too: a linear layer transposes
    its weights, which count.
    """

    def __init__(self) -> None:
        super().__init__()
        self.bytes = self.peak = 0
        self._known: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor):
                self._follow(tensor.untyped_storage())
        return result

    def _follow(self, storage: torch.UntypedStorage) -> None:
        address, size = storage._cdata, storage.nbytes()
        if address not in self._known:
            self._known.add(address)
            self.bytes += size
            self.peak = max(self.peak, self.bytes)
            weakref.finalize(storage, self._free, address, size)

    def _free(self, address: int, size: int) -> None:
        self._known.discard(address)
        self.bytes -= size
