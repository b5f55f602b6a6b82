"""Packed sets: sets of several sizes concatenated without padding. A `Packed` is passed in place of the mask.

The rows are X [N, d]: those of set 0, then those of set 1, and so on. Row-wise layers need no change. Layers that look
at whole sets work *run by run*: a run is a sequence of neighbouring sets of one size, and so a plain batch
[sets, size, d].
"""

import functools
import itertools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pointset.errors import described
from pointset.inputs import InputError

RUN = 64
"""The cost of one more run, as a number of rows that take as long. Measured on one CPU thread with 32 sets, for a
training step at width 128: isab16-pma 53 to 76, in form "paper" about 100; rff-max below 10."""


class EqualSets(NamedTuple):
    """Neighbouring sets of one size."""

    sets: int
    size: int


@dataclass(frozen=True)
class Packed:
    """The layout of packed sets: the first lengths[0] of rows [N, d] are set 0, the next lengths[1] are set 1, ...

    Raises:
        InputError: a length is not a whole number, at least 0.

    Example:
        >>> layout = pointset.nn.Packed((2, 3))
        >>> padded, mask = layout.padded(torch.rand(5, 16))
        >>> padded.shape, mask.sum(dim=1)
        (torch.Size([2, 3, 16]), tensor([2, 3]))
    """

    lengths: tuple[int, ...]
    """Rows of each set, B of them; 0 is an empty set."""

    def __post_init__(self) -> None:
        if type(self.lengths) is not tuple or set(map(type, self.lengths)) - {int}:  # else there is nothing to do
            object.__setattr__(self, "lengths", tuple(map(operator.index, self.lengths)))
        if self.lengths and min(self.lengths) < 0:
            raise InputError(f"lengths must be at least 0, got {min(self.lengths)}")

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def rows(self) -> int:
        """The number N of rows of all sets."""
        return sum(self.lengths)

    @functools.cached_property
    def runs(self) -> list[EqualSets]:
        """The sets grouped into runs of one size; without sets, one run of 0 sets."""
        return [EqualSets(len(list(run)), size) for size, run in itertools.groupby(self.lengths)] or [EqualSets(0, 0)]

    @property
    def is_better_padded(self) -> bool:
        """True if padding all sets costs less than working run by run: the sets are small, or nearly of one size."""
        return len(self) * max(self.lengths, default=0) <= self.rows + RUN * len(self.runs)

    def padded(self, X: Float[Tensor, "N d"]) -> tuple[Float[Tensor, "B n d"], Bool[Tensor, "B n"] | None]:
        """The sets padded with zeros to the largest size, at least 1, and their mask (None if nothing is padded)."""
        longest = max((1, *self.lengths))
        if self.rows == longest * len(self):
            return X.unflatten(0, (len(self), longest)), None
        lengths = torch.tensor(self.lengths, device=X.device)
        mask = torch.arange(longest, device=X.device) < lengths[:, None]
        return X.new_zeros(*mask.shape, X.shape[1]).masked_scatter(mask.unsqueeze(-1), X), mask

    def batches(self, X: Tensor) -> list[Tensor]:
        """Split a tensor into one plain batch per run.

        Args:
            X: rows [N, d], split into [sets, size, d]; or values per set [B, m, d], split into [sets, m, d]; or
                [1, m, d], shared by all sets and repeated unchanged.
        """
        runs = self.runs
        if X.dim() == 2:  # `split`, not slices: its backward pass concatenates the gradients once
            parts = X.split([sets * size for sets, size in runs])
            return [part.unflatten(0, run) for part, run in zip(parts, runs, strict=True)]
        if X.shape[0] == 1:
            return [X] * len(runs)
        return list(X.split([run.sets for run in runs]))

    def each_set(self, function: Callable[[Tensor], Tensor], X: Float[Tensor, "N d"]) -> Float[Tensor, "B 1 _"]:
        """One row for each set, by a function of plain batches [sets, size, d]; an empty set is one row of zeros."""
        parts = [x if x.shape[1] else x.new_zeros(len(x), 1, x.shape[2]) for x in self.batches(X)]
        return torch.cat([function(x) for x in parts])

    def each_row(self, function: Callable[[Tensor], Tensor], X: Float[Tensor, "N d"]) -> Float[Tensor, "N d"]:
        """Apply a function that keeps the number of rows to plain batches [sets, size, d]; empty sets are skipped."""
        return torch.cat([function(x).flatten(0, 1) for x in self.batches(X) if len(x[0])]) if len(X) else X

    def index(self, device: torch.device) -> Int[Tensor, " N"]:
        """The index of the set to which each row belongs."""
        lengths = torch.tensor(self.lengths, device=device, dtype=torch.int64)
        return torch.arange(len(self), device=device).repeat_interleave(lengths, output_size=self.rows)


Layout = Bool[Tensor, "*rows"] | Packed
"""Describes which rows [*rows, d] belong to which set: the mask [B, n] of padded sets, or a `Packed`."""


INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def sort_sets(rows: Tensor, sets: Packed) -> tuple[Tensor, Packed, list[int]]:
    """Sort packed sets by size, so that there are few runs.

    Returns:
        The reordered rows [N, d], their layout, and the new index of each original set.
    """
    order = sorted(range(len(sets)), key=sets.lengths.__getitem__)
    new_indices = sorted(range(len(sets)), key=order.__getitem__)
    if order == list(range(len(sets))):
        return rows, sets, new_indices
    parts = rows.split(sets.lengths)
    return (
        torch.cat([parts[index] for index in order]),
        Packed(tuple(sets.lengths[index] for index in order)),
        new_indices,
    )


def lengths_of(batch: Tensor, points: Tensor, sets: int | None = None) -> Packed:
    """The layout of points [N, .] whose set indices are given by `batch` [N], as in torch-geometric.

    The indices are sorted, from 0; one that does not occur is an empty set, and `sets` counts those at the end too.

    Raises:
        InputError: `batch` does not have one sorted index per point, or `sets` is too small.
    """
    if not isinstance(batch, Tensor) or batch.dtype not in INTEGERS or batch.shape != points.shape[:1]:
        raise InputError(f"batch must be integers [{len(points)}], each point's set, got {described(batch)}")
    numbers = batch.cpu()  # one synchronisation with the GPU instead of one per check
    last = int(numbers[-1]) if len(numbers) else -1
    if len(numbers) and int(numbers[0]) < 0:
        raise InputError(f"batch must number sets from 0, got {int(numbers[0])}")
    if bool((numbers[1:] < numbers[:-1]).any()):
        raise InputError("batch must be sorted, so that the points of each set are contiguous: sort it with the points")
    if sets is not None and sets < 0:
        raise InputError(f"sets must be at least 0, got {sets}")
    if sets is not None and sets <= last:
        raise InputError(f"sets must be at least {last + 1}, as batch numbers a set {last}; got {sets}")
    return Packed(tuple(torch.bincount(numbers, minlength=sets or 0).tolist()))
