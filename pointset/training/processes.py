"""Training in several processes with one device each, by Hugging Face Accelerate. Usually there is one process.

Every process draws the whole batch of the recipe, and computes the sets `rank`, `rank + world`, ... of the batch. The
sum of the gradients over the processes is the gradient of the mean loss over the batch. DistributedDataParallel would
average over processes instead of sets, and would wait forever if the last batch is so short that a process has no set.
`scripts/docs/tools.md` shows how to start the processes.
"""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from pointset.errors import PointsetError, quoted, require_extra

T = TypeVar("T")


def find_device(name: str) -> torch.device:
    """Return the device of this name. "auto" is the GPU if there is one, else the CPU."""
    if name == "auto":
        return torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).tolist()  # tensors of the device "meta" have no values
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise PointsetError(f"device {quoted(name)} is not available on this machine: use auto or cpu") from error
    return device


class Processes:
    """The processes that train one model together (usually a single one). Every process must call each method.

    Attributes:
        device: the device of this process.
        rank: the index of this process, from 0.
        world: the number of processes.
    """

    def __init__(self, device: torch.device, accelerator: Any = None) -> None:
        self.accelerator, self.device, self.rank, self.world = accelerator, device, 0, 1
        if accelerator is not None:
            self.device = accelerator.device
            self.rank, self.world = accelerator.process_index, accelerator.num_processes

    def share(self, batch: Any) -> Any:
        """Return rows rank, rank + world, ... of a batch (a named tuple of tensors). Short batches may have none."""
        if self.world == 1:
            return batch
        rows = slice(self.rank, None, self.world)
        return type(batch)(*(None if column is None else column[rows] for column in batch))

    def sum(self, numbers: Tensor) -> Tensor:
        """Return the sum of numbers [k] over the processes, bitwise the same in every process."""
        return numbers if self.world == 1 else self.accelerator.reduce(numbers, reduction="sum")

    def sum_gradients(self, model: nn.Module) -> None:
        """Sum the gradients over the processes in one operation.

        If no process has a gradient for a parameter, the gradient stays None, so that the parameter has no weight
        decay.
        """
        if self.world == 1:
            return
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        present = [float(parameter.grad is not None) for parameter in parameters]
        pieces = [p.new_zeros(p.numel()) if p.grad is None else p.grad.flatten() for p in parameters]
        total = self.sum(torch.cat([torch.tensor(present, device=self.device), *pieces]))
        anywhere, *sums = total.split([len(parameters), *(parameter.numel() for parameter in parameters)])
        for index, (parameter, gradient) in enumerate(zip(parameters, sums, strict=True)):
            if present[index] or anywhere[index]:  # reading `anywhere` makes a GPU wait
                parameter.grad = gradient.view_as(parameter).to(parameter.dtype)

    def from_main(self, work: Callable[[], T]) -> T:
        """Run `work` in the main process, and return its result (plain data or CPU tensors) in all processes."""
        if self.world == 1:
            return work()
        from accelerate.utils import broadcast_object_list

        result, failure = None, None
        if self.rank == 0:
            try:
                result = work()
            except Exception as error:
                failure = error
        reason = str(failure) if isinstance(failure, PointsetError) else f"the main process failed: {failure!r}"
        result, reason = broadcast_object_list([result, reason if failure else None])
        if failure is not None:
            raise failure
        if reason is not None:
            raise PointsetError(reason)
        return result

    def settle_buffers(self, model: nn.Module) -> None:
        """Average batch norm's running statistics over the processes, and copy other buffers from the main process."""
        for name, buffer in model.named_buffers():
            averaged = name.endswith(("running_mean", "running_var"))
            buffer.copy_(self.sum(buffer) / self.world if averaged else self.from_main(buffer.cpu))


def world_size() -> int:
    """Return the number of processes that a launcher started for this training, or 1 without a launcher."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_main() -> bool:
    """Return True in the process that writes files and prints: the only process, or the one of rank 0."""
    return world_size() == 1 or os.environ.get("RANK", "0") == "0"


def join_processes(device: torch.device) -> Processes:
    """Join the processes that train together, each on a separate device. A single process uses `device`."""
    world = world_size()
    if world == 1:
        return Processes(device)
    require_extra("accelerate", "training in several processes", "accelerate")
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=device.type == "cpu", mixed_precision="no")  # precision comes from the recipe
    if accelerator.num_processes != world or accelerator.device.type != device.type:
        raise PointsetError(
            f"accelerate cannot train in {world} processes on {device.type}: give --device cpu, or start one process"
        )
    return Processes(device, accelerator)
