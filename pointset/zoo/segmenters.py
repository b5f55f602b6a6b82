"""Networks that label every point of a set."""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from pointset.nn.fast.packing import sort_sets
from pointset.streaming.stream import stream_rows
from pointset.zoo.classifiers import CloudsLike, MaskLike, PointsLike, PooledClassifier, checked, checked_packed
from pointset.zoo.predicting import BATCH, as_given, predict_points


class Segmenter(PooledClassifier):
    """logits of each point = head(row of the encoder, pool(encoder(X))), as in PointNet's segmentation network.

    Equivariant to the order of the points, for sets of any size. The layers know a point by its coordinates and by
    what it reads from summaries of its set (inducing points, a pooled vector), not by its neighbours as PointNet++ and
    DGCNN do, which learn more from each pass over the data and take far longer for it.

    Attributes:
        encoder: equivariant modules, called in turn as `module(X, mask)`; rows in, rows out.
        pool: called as `pool(Z, mask)`; [B, n, d] to [B, k, d].
        head: called as `head(Z, pooled, mask)`; logits of every row.
        classes: names of the classes of points, in the order of the logits; None before training.
    """

    def forward(self, points: PointsLike, mask: MaskLike = None) -> Float[Tensor, "B n classes"]:
        """Return logits [B, n, classes], zeros for padded points.

        Args:
            points: [B, n, inputs], or one cloud [n, inputs], which gives [1, n, classes].
            mask: bool [B, n], True at real points; the values of padded points have no effect.

        Raises:
            InputError: the points are not [B, n, inputs] or [n, inputs], or the mask is not of these points.
        """
        shape = getattr(points, "shape", ())
        points, mask = checked(points, mask, self.inputs, self)
        rows = self.encode(points, mask)
        logits = self.head(rows, self.pool(rows, mask), mask)
        return logits[:, :0] if shape[-2:-1] == (0,) else logits  # `checked` gives an empty set one row

    def packed(self, points: PointsLike, batch: Any, sets: int | None = None) -> Float[Tensor, "N classes"]:
        """Return logits [N, classes] of the points of sets of several sizes, without padding.

        Args:
            points: [N, inputs], the sets one after the other.
            batch: [N], the number of the set of each point; see `SetClassifier.packed`.
            sets: number of sets; one more than the last number when None.
        """
        points, layout = checked_packed(points, batch, sets, self.inputs, self)
        if layout.is_better_padded or not self.packs:
            padded, mask = layout.padded(points)
            logits = self(padded, mask)
            return logits.flatten(0, 1) if mask is None else logits[mask]
        points, ordered, places = sort_sets(points, layout)
        rows = self.encode(points, ordered)
        logits = self.head(rows, self.pool(rows, ordered), ordered).split(ordered.lengths)
        return torch.cat([logits[place] for place in places])

    def stream(self, chunks: Any) -> Iterator[Float[Tensor, "n classes"]]:
        """Yield the logits [n_i, classes] of a cloud of any size that arrives in pieces, in constant memory.

        They equal `model(cloud[None])[0]` in evaluation mode up to float32 rounding, in the order of the points. The
        last pass over the cloud follows those that the pooled vector needs; see `SetClassifier.stream`.
        """
        return stream_rows(self, chunks)

    def predict(self, points: CloudsLike, mask: MaskLike = None, *, batch_size: int = BATCH) -> Any:
        """Return the class index of each point: an array or a tensor [n] for each cloud, in a list.

        Clouds may have any unit and position: they are normalised as in training; see `Classifier.predict`.

        Args:
            points: one cloud [n, inputs], a batch [B, n, inputs], or a list of B clouds [n_i, inputs].
            mask: bool [B, n] of a batch, True at real points; the others have no class.
            batch_size: clouds at a time; does not change the result beyond rounding.
        """
        return [as_given(logits.argmax(dim=1), points) for logits in self._logits(points, mask, batch_size)]

    def predict_proba(self, points: CloudsLike, mask: MaskLike = None, *, batch_size: int = BATCH) -> Any:
        """Return the probabilities of the classes of each point, float32 [n, classes] for each cloud; see `predict`."""
        each = self._logits(points, mask, batch_size)
        return [as_given((logits / self.temperature).softmax(dim=1), points) for logits in each]

    def _logits(self, points: Any, mask: Any, batch_size: int) -> list[Tensor]:
        return predict_points(self, self._batches(points, mask, batch_size))
