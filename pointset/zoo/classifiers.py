"""Classifiers of point sets: head(pool(encoder(X))), and a context model behind the same face."""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from pointset.nn.fast.packing import Layout, Packed, lengths_of, sort_sets
from pointset.nn.masks import as_mask, zero_padding
from pointset.nn.registry import part_of
from pointset.streaming.chains import Chain, chain_of, chain_of_parts
from pointset.streaming.logits import stream_logits


class SetClassifier(nn.Module):
    """logits = head(pool(encoder(X))): invariant to the order of the rows, for sets of any size.

    Attributes:
        encoder: equivariant modules, called in turn as `module(X, mask)`; rows in, rows out.
        pool: called as `pool(Z, mask)`; [B, n, d] to [B, k, d]. Like the encoder it also takes rows [N, d] of sets
            that lie end to end, with a `Packed` in place of the mask, unless it was registered as one that does not.
        head: from the k pooled rows to logits [B, classes].
    """

    def __init__(self, encoder: list[nn.Module], pool: nn.Module, head: nn.Module, inputs: int = 3) -> None:
        super().__init__()
        self.inputs = inputs
        self.encoder = nn.ModuleList(encoder)
        self.pool = pool
        self.head = head

    def forward(
        self, points: Float[Tensor, "B n inputs"], mask: Bool[Tensor, "B n"] | None = None
    ) -> Float[Tensor, "B classes"]:
        """Return logits [B, classes].

        `mask` is True at real points; what stands in padded rows has no effect. An empty set (n = 0, or no True in its
        mask) pools to zeros and gets the logits that the head makes of them.

        Raises:
            ValueError: the points are not [B, n, inputs], or the mask is not [B, n].
        """
        points, mask = checked(points, mask, self.inputs)
        return self.head(self.pool(self.encode(points, mask), mask))

    def packed(
        self, points: Float[Tensor, "N inputs"], batch: Int[Tensor, " N"], sets: int | None = None
    ) -> Float[Tensor, "B classes"]:
        """Return logits [B, classes] of sets of several sizes without padding them.

        Logits and gradients are those of `forward` with padding and a mask, to rounding, in time and memory that go
        with the N points there are. (Sets so small or so alike that padding is the faster way are padded after all, and
        all sets are if a part does not take packed ones.)
        Dropout of rows, which pma has, draws for each row there is, so that a training step drops other ones.

        Args:
            points: the sets one after the other.
            batch: the number of the set of each point, from 0 and never falling, as in torch-geometric:
                `model.packed(data.pos, data.batch, data.num_graphs)`. A number that does not occur is an empty set.
            sets: B, where the last sets may be empty; one more than the last number when None.

        Raises:
            ValueError: the points are not [N, inputs], or `batch` is no such numbering of them.
        """
        points, packed, places = sort_sets(*checked_packed(points, batch, sets, self.inputs))
        pad = packed.is_better_padded or not self.takes_packed
        points, layout = packed.padded(points) if pad else (points, packed)
        pooled = self.pool(self.encode(points, layout), layout)
        return self.head(pooled[places])

    @property
    def takes_packed(self) -> bool:
        """Whether no part was registered as one that needs its sets padded."""
        return all(part.packed for module in (*self.encoder, self.pool) if (part := part_of(module)))

    def stream(self, chunks: Any) -> Float[Tensor, "1 classes"]:
        """Return the logits [1, classes] of one cloud of any size that arrives in pieces, in constant memory.

        Equal to `model(cloud[None])` in evaluation mode, to the rounding of float32, however the cloud is cut. L layers
        that need something of the whole set go through the pieces L times, and the pooling once more.

        Args:
            chunks: a function that gives a fresh iterator over pieces [n_i, inputs] each time it is called, such as
                `pointset.data.open_scan(path)`; or a list of pieces, or the cloud [n, inputs]. Tensors or arrays of
                any number type, on any device; pieces may be empty.

        Raises:
            PointsetError: a part of the model needs the whole set at once (it is named), or the chunks run only once
                or are no points.
        """
        return stream_logits(self, chunks)

    def encode(self, points: Float[Tensor, "*rows inputs"], mask: Layout | None = None) -> Float[Tensor, "*rows d"]:
        """Return the encoded rows [B, n, d], in the order of the points."""
        for module in self.encoder:
            points = module(points, mask)
        return points


class PackedClassifier(nn.Module):
    """A context model behind the same face as `SetClassifier`."""

    def __init__(self, model: nn.Module, inputs: int = 3) -> None:
        super().__init__()
        self.inputs = inputs
        self.model = model

    def forward(
        self, points: Float[Tensor, "B n inputs"], mask: Bool[Tensor, "B n"] | None = None
    ) -> Float[Tensor, "B classes"]:
        """Return logits [B, classes]; see `SetClassifier.forward`."""
        return self.model(*checked(points, mask, self.inputs))

    def packed(
        self, points: Float[Tensor, "N inputs"], batch: Int[Tensor, " N"], sets: int | None = None
    ) -> Float[Tensor, "B classes"]:
        """Return logits [B, classes] of sets of several sizes without padding them; see `SetClassifier.packed`."""
        return self.model(*checked_packed(points, batch, sets, self.inputs))

    def stream(self, chunks: Any) -> Float[Tensor, "1 classes"]:
        """Return the logits [1, classes] of one cloud in pieces; see `SetClassifier.stream`. dgcnn refuses."""
        return stream_logits(self, chunks)


@chain_of.register
def _(model: SetClassifier) -> Chain:
    return chain_of_parts(list(model.encoder), model.pool, model.head)


@chain_of.register
def _(model: PackedClassifier) -> Chain:
    return chain_of(model.model)


def checked(points: Tensor, mask: Tensor | None, inputs: int) -> tuple[Tensor, Tensor | None]:
    """Points with nothing in their padded rows and at least one row, or an error that shows the shapes."""
    if points.dim() != 3 or points.shape[2] != inputs:
        raise ValueError(f"points must be [B, n, {inputs}], got {list(points.shape)}")
    if mask is not None and (mask.shape != points.shape[:2] or mask.dtype != torch.bool):
        expected = list(points.shape[:2])
        raise ValueError(f"mask must be bool {expected}, True at real points; got {mask.dtype} {list(mask.shape)}")
    if points.shape[1] == 0:
        points = points.new_zeros(points.shape[0], 1, inputs)
        mask = torch.zeros_like(as_mask(points, None))
    return zero_padding(points, mask), mask


def checked_packed(points: Tensor, batch: Tensor, sets: int | None, inputs: int) -> tuple[Tensor, Packed]:
    """Points of sets laid end to end and how they lie, or an error that shows the shapes."""
    if points.dim() != 2 or points.shape[1] != inputs or not points.is_floating_point():
        raise ValueError(f"points must be floating [N, {inputs}], got {points.dtype} {list(points.shape)}")
    return points, lengths_of(batch, points, sets)
