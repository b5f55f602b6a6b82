"""Classifiers of point sets: head(pool(encoder(X))), and context models with the same methods."""

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
            laid end to end, with a `Packed` in place of the mask, unless it is registered without `packed`.
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

        `mask` is True at real points; the values of padded rows have no effect. An empty set (n = 0, or no True in its
        mask) pools to zeros.

        Raises:
            ValueError: the points are not [B, n, inputs], or the mask is not [B, n].
        """
        points, mask = checked(points, mask, self.inputs)
        return self.head(self.pool(self.encode(points, mask), mask))

    def packed(
        self, points: Float[Tensor, "N inputs"], batch: Int[Tensor, " N"], sets: int | None = None
    ) -> Float[Tensor, "B classes"]:
        """Return logits [B, classes] of sets of several sizes without padding them.

        Logits and gradients equal those of `forward` with padding and a mask, to rounding. Time and memory grow with
        the N points. Sets are padded after all where that is faster, or where a part does not take packed sets.
        Dropout of rows draws for real rows only, so that a training step drops other rows than with padding.

        Args:
            points: the sets one after the other.
            batch: the number of the set of each point, from 0 and never falling, as in torch-geometric:
                `model.packed(data.pos, data.batch, data.num_graphs)`. The set of a number that is missing is empty.
            sets: B, needed if the last sets are empty; one more than the last number when None.

        Raises:
            ValueError: the points are not [N, inputs], or `batch` does not number them like that.
        """
        points, packed, places = sort_sets(*checked_packed(points, batch, sets, self.inputs))
        parts = filter(None, map(part_of, (*self.encoder, self.pool)))
        pad = packed.is_better_padded or not all(part.packed for part in parts)
        points, layout = packed.padded(points) if pad else (points, packed)
        pooled = self.pool(self.encode(points, layout), layout)
        return self.head(pooled[places])

    def stream(self, chunks: Any) -> Float[Tensor, "1 classes"]:
        """Return the logits [1, classes] of one cloud of any size that arrives in pieces, in constant memory.

        They equal `model(cloud[None])` in evaluation mode, to the rounding of float32, however the cloud is cut. Each
        layer that needs something of the whole set takes a pass over the pieces, and the pooling one more.

        Args:
            chunks: a function that gives a fresh iterator over pieces [n_i, inputs] each time it is called, such as
                `pointset.data.open_scan(path)`; or a list of pieces, or the cloud [n, inputs]. Tensors or arrays of
                any number type, on any device; pieces may be empty.

        Raises:
            PointsetError: a part of the model, which is named, needs the whole set at once, or the chunks can be read
                only once or are not points.
        """
        return stream_logits(self, chunks)

    def encode(self, points: Float[Tensor, "*rows inputs"], mask: Layout | None = None) -> Float[Tensor, "*rows d"]:
        """Return the encoded rows [B, n, d], in the order of the points."""
        for module in self.encoder:
            points = module(points, mask)
        return points


class PackedClassifier(nn.Module):
    """A context model with the methods of `SetClassifier`."""

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
    """Points with zeros in padded rows and at least one row, or an error that shows the shapes."""
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
