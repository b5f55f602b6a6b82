"""Several processes for one training, each with a device of its own; usually one.

Processes run on the GPUs or cores of one machine or of many, through Hugging Face Accelerate:

    torchrun --nproc-per-node 2 -m -- pointset.cli train isab16-pma --run runs/mine
    accelerate launch --multi_gpu --num_processes 2 -m pointset.cli train isab16-pma --run runs/mine

Add `--device cpu` to train on the CPU. (Without the two dashes torchrun takes `--run` for an option of its own.) Every
process draws the whole batch of the recipe and works on every world-th row, starting at its rank. The processes add up
the gradient of the mean loss over the whole batch. DistributedDataParallel would average over processes instead of
rows, and wait forever for a process without a row of a short last batch.

Limits:

- Batch normalisation uses a process's own rows; its running statistics are averaged after each epoch.
- Validation runs in the main process while the others wait. Every process holds the data and draws whole batches.
- `precision` comes from the recipe: `accelerate launch --mixed_precision` has no effect.
- A resumed run equals an uninterrupted one only with the same number of processes: it decides dropout and rounding.
- `accelerate launch --cpu` is refused: without an MPI it starts a single process (accelerate 1.15).
"""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from pointset.errors import PointsetError

T = TypeVar("T")


class Processes:
    """The processes that train one model together, usually one; all of them must call the methods.

    Attributes:
        device: of this process.
        rank: index of this process, from 0.
        world: number of processes.
    """

    def __init__(self, device: torch.device, accelerator: Any = None) -> None:
        self.accelerator, self.device, self.rank, self.world = accelerator, device, 0, 1
        if accelerator is not None:
            self.device = accelerator.device
            self.rank, self.world = accelerator.process_index, accelerator.num_processes

    @property
    def is_main(self) -> bool:
        """True for the process that reads and writes the run's folder."""
        return self.rank == 0

    def share(self, batch: Any) -> Any:
        """Rows rank, rank + world, ... of a named tuple of tensors; none of a batch that is too short."""
        if self.world == 1:
            return batch
        rows = slice(self.rank, None, self.world)
        return type(batch)(*(None if column is None else column[rows] for column in batch))

    def sum(self, numbers: Tensor) -> Tensor:
        """Numbers [k] added up over the processes, the same to the last bit in all of them."""
        return numbers if self.world == 1 else self.accelerator.reduce(numbers, reduction="sum")

    def sum_gradients(self, model: nn.Module) -> None:
        """Add up all gradients at once; a parameter without a gradient in any process keeps none, and no decay."""
        if self.world == 1:
            return
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        present = [float(parameter.grad is not None) for parameter in parameters]
        pieces = [p.new_zeros(p.numel()) if p.grad is None else p.grad.flatten() for p in parameters]
        total = self.sum(torch.cat([torch.tensor(present, device=self.device), *pieces]))
        anywhere, *sums = total.split([len(parameters), *(parameter.numel() for parameter in parameters)])
        for index, (parameter, gradient) in enumerate(zip(parameters, sums, strict=True)):
            if present[index] or anywhere[index]:  # reading `anywhere` makes a GPU wait: only where it is needed
                parameter.grad = gradient.view_as(parameter).to(parameter.dtype)

    def from_main(self, work: Callable[[], T]) -> T:
        """The result of `work` in the main process, sent to the others; plain data, or tensors on the CPU."""
        if self.world == 1:
            return work()
        from accelerate.utils import broadcast_object_list

        result, failure = None, None
        if self.is_main:
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
        """Average the running statistics of batch normalisation; take every other buffer from the main process."""
        buffers = dict(model.named_buffers())
        if self.world == 1 or not buffers:
            return
        for name, buffer in buffers.items():
            if name.endswith(("running_mean", "running_var")):
                buffer.copy_(self.sum(buffer) / self.world)
        of_main = self.from_main(lambda: on_cpu(buffers))
        for name, buffer in buffers.items():
            buffer.copy_(of_main[name])


def on_cpu(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors without their history, on the CPU."""
    return {name: tensor.detach().cpu() for name, tensor in tensors.items()}


def world_size() -> int:
    """The number of processes that the launcher has started for one training; 1 without a launcher."""
    if "WORLD_SIZE" in os.environ:
        return int(os.environ["WORLD_SIZE"])
    if os.environ.get("ACCELERATE_USE_CPU", "").lower() == "true" and "MASTER_ADDR" in os.environ:
        raise PointsetError(
            "accelerate launch --cpu started processes that are not connected, or only one: "
            "start them with torchrun --nproc-per-node N -m -- pointset.cli train ... --device cpu"
        )
    return 1


def is_main() -> bool:
    """True for the process that writes and prints: the first, or the only one."""
    return world_size() == 1 or os.environ.get("RANK", "0") == "0"


def join_processes(device: torch.device) -> Processes:
    """Join the processes that train together, each on its own device; `device` is that of a single process."""
    world = world_size()
    if world == 1:
        return Processes(device)
    for name in ("RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
        if name not in os.environ:
            raise PointsetError(
                f"WORLD_SIZE is {world} and {name} is not set: start through torchrun or accelerate launch, "
                "or unset WORLD_SIZE to train in one process"
            )
    if device.index is not None:
        raise PointsetError(f"device {str(device)!r} cannot be shared by {world} processes: use auto or {device.type}")
    try:
        from accelerate import Accelerator
    except ImportError as error:
        raise PointsetError("training in several processes needs accelerate: pip install accelerate") from error
    accelerator = Accelerator(cpu=device.type == "cpu", mixed_precision="no")  # precision comes from the recipe
    if accelerator.num_processes != world or accelerator.device.type != device.type:
        raise PointsetError(
            f"accelerate cannot train in {world} processes on {device.type}: give --device cpu, or start one process"
        )
    return Processes(device, accelerator)
