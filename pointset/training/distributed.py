"""Several processes for one training, on the GPUs or cores of one machine or of many, through Hugging Face Accelerate.

    torchrun --nproc-per-node 2 -m -- pointset.cli train isab16-pma --run runs/mine
    accelerate launch --multi_gpu --num_processes 2 -m pointset.cli train isab16-pma --run runs/mine

Both start the same; add `--device cpu` to train on the CPU. (Without the two dashes torchrun takes `--run` for an
abbreviated option of its own.) Every process draws the whole batch of the recipe and works on its share of the rows:
every world-th, starting at its rank. The processes add up the gradient of the mean loss over the whole batch, also
where their shares differ in size.

The model does not become a DistributedDataParallel (`Accelerator.prepare`), which averages over processes instead of
rows and waits forever for a process without a row of a short last batch. Its advantage, sums that overlap the backward
pass, is small for the few megabytes of gradients of the models here.

Limits:

- Batch normalisation uses a process's own rows, as in DistributedDataParallel. The running statistics are averaged over
  the processes after each epoch, but small shares make them noisy: the result differs from that of a single process by
  more than rounding.
- Validation runs in the main process while the others wait. Every process holds the data and draws whole batches.
- `precision` comes from the recipe: `accelerate launch --mixed_precision` has no effect.
- A resumed run equals an uninterrupted one only with the same number of processes: it decides dropout and rounding.
- `accelerate launch --cpu` is refused: without an MPI it starts a single process, whatever its `--num_processes`
  (accelerate 1.15).
"""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from pointset.data.batches import Batch, MixedBatch
from pointset.errors import PointsetError

T = TypeVar("T")
AnyBatch = TypeVar("AnyBatch", Batch, MixedBatch)


class OneProcess:
    """A single process."""

    rank = 0
    """Index of this process, from 0."""
    world = 1
    """Number of processes."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    @property
    def is_main(self) -> bool:
        """Whether this process is the one that reads and writes the run's folder."""
        return self.rank == 0

    def share(self, batch: AnyBatch) -> AnyBatch:
        """This process's rows of a batch, perhaps none."""
        return batch

    def sum_gradients(self, model: nn.Module) -> None:
        """Add up the gradients of all processes, for all of them."""

    def sum(self, numbers: Tensor) -> Tensor:
        """Numbers [k] added up over the processes."""
        return numbers

    def from_main(self, work: Callable[[], T]) -> T:
        """What `work` gives in the main process, for all of them. An error there is an error everywhere."""
        return work()

    def start_alike(self, model: nn.Module) -> None:
        """Give every process the main one's weights: a user's own model may have been made without a seed."""

    def settle_buffers(self, model: nn.Module) -> None:
        """Make buffers, such as running statistics, equal in all processes."""


class SeveralProcesses(OneProcess):
    """One of several processes that train one model together; the methods must be called by all of them."""

    def __init__(self, accelerator: Any) -> None:
        super().__init__(accelerator.device)
        self.accelerator = accelerator
        self.rank = accelerator.process_index
        self.world = accelerator.num_processes

    def share(self, batch: AnyBatch) -> AnyBatch:
        """Rows rank, rank + world, ... of a batch; none of a batch that is too short."""
        rows = slice(self.rank, None, self.world)
        kind: Any = type(batch)
        return kind(*(None if part is None else part[rows] for part in batch))

    def sum_gradients(self, model: nn.Module) -> None:
        """Add up the gradients of all processes in one piece.

        A parameter without a gradient in any process keeps none, so that no decay touches it, as in one process.
        """
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        found = [float(parameter.grad is not None) for parameter in parameters]
        pieces = [p.new_zeros(p.numel()) if p.grad is None else p.grad.flatten() for p in parameters]
        total = self.sum(torch.cat([torch.tensor(found, device=self.device), *pieces]))
        anywhere, *sums = total.split([len(parameters), *(parameter.numel() for parameter in parameters)])
        for index, (parameter, gradient) in enumerate(zip(parameters, sums, strict=True)):
            if found[index] or anywhere[index]:  # reading `anywhere` makes a GPU wait: only where it is needed
                parameter.grad = gradient.view_as(parameter).to(parameter.dtype)

    def sum(self, numbers: Tensor) -> Tensor:
        """Numbers [k] added up over the processes, the same to the last bit in all of them."""
        return self.accelerator.reduce(numbers, reduction="sum")

    def from_main(self, work: Callable[[], T]) -> T:
        """What `work` gives in the main process, sent to the others; it must be plain data or tensors on the CPU.

        Raises:
            PointsetError: in the other processes, where the main one failed; there the error is raised as it is.
        """
        from accelerate.utils import broadcast_object_list

        result, failure = None, None
        if self.is_main:
            try:
                result = work()
            except Exception as error:
                failure = error
        told = (
            str(failure) if isinstance(failure, PointsetError) else failure and f"the main process failed: {failure!r}"
        )
        result, told = broadcast_object_list([result, told])
        if failure is not None:
            raise failure
        if told is not None:
            raise PointsetError(told)
        return result

    def start_alike(self, model: nn.Module) -> None:
        """Load the main process's parameters and buffers."""
        model.load_state_dict(self.from_main(lambda: _on_cpu(model.state_dict())))

    def settle_buffers(self, model: nn.Module) -> None:
        """Average the running statistics of batch normalisation; take every other buffer from the main process."""
        buffers = dict(model.named_buffers())
        if not buffers:
            return
        for module in model.modules():
            if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d) and module.track_running_stats:
                for statistic in (module.running_mean, module.running_var):
                    assert statistic is not None
                    statistic.copy_(self.sum(statistic) / self.world)
        mains = self.from_main(lambda: _on_cpu(buffers))
        for name, buffer in buffers.items():
            buffer.copy_(mains[name])


def _on_cpu(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu() for name, tensor in tensors.items()}


def world_size() -> int:
    """How many processes the launcher has started for one training; 1 where there was none.

    Raises:
        PointsetError: the launcher was asked for several processes and has started one.
    """
    if "WORLD_SIZE" in os.environ:
        return int(os.environ["WORLD_SIZE"])
    if os.environ.get("ACCELERATE_USE_CPU", "").lower() == "true" and "MASTER_ADDR" in os.environ:
        raise PointsetError(
            "accelerate launch --cpu started processes that are not connected, or only one: "
            "start them with torchrun --nproc-per-node N -m -- pointset.cli train ... --device cpu"
        )
    return 1


def is_main() -> bool:
    """Whether this process is the one that writes and prints: the first, or the only one."""
    return world_size() == 1 or os.environ.get("RANK", "0") == "0"


def join_processes(device: torch.device) -> OneProcess:
    """Find the processes that this one trains with, and the device that is its own.

    Args:
        device: where one process alone would train.

    Raises:
        PointsetError: there are several, and accelerate is not installed, a launcher's variable is missing, or the
            device cannot be divided among them.
    """
    world = world_size()
    if world == 1:
        return OneProcess(device)
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
    accelerator = Accelerator(cpu=device.type == "cpu", mixed_precision="no")  # the recipe's precision is ours to keep
    if accelerator.num_processes != world or accelerator.device.type != device.type:
        raise PointsetError(
            f"accelerate cannot train in {world} processes on {device.type}: give --device cpu, or start one process"
        )
    return SeveralProcesses(accelerator)
