"""Finding the odd image of a set (Set Transformer, arXiv 1810.00825, section 5.4)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.comparison.metric import Metric, Size
from pointset.tasks.images import PIXELS, ImageProblem, Images
from pointset.tasks.set_problem import SetBatch, fully_connected, row_model
from pointset.zoo.classifiers import SetClassifier
from pointset.zoo.options import ModelOptions

MEMBERS = 7
"""Number of images of a set that have something in common; the set has one more image, the anomaly."""


class ElementScorer(SetClassifier):
    """One logit for each element, from its row and the pooled set: head([z_i, pool(Z)]), Z = encoder(X). Equivariant.

    The pooling gives [B, k, width], and the head takes rows [..., d + k * width] to [..., 1].
    """

    def forward(
        self, X: Float[Tensor, "B n inputs"], mask: Bool[Tensor, "B n"] | None = None
    ) -> Float[Tensor, "*rows 1"]:
        """Return logits [B, n, 1]; those of padding are minus infinity."""
        Z = self.encode(X, mask)
        pooled = self.pool(Z, mask).flatten(1)[:, None].expand(-1, Z.shape[1], -1)
        logits = self.head(torch.cat([Z, pooled], dim=2))
        return logits if mask is None else logits.masked_fill(~mask[:, :, None], float("-inf"))


@dataclass(frozen=True)
class Anomaly(ImageProblem):
    """Find the one image of a set that differs from the other seven.

    A set has seven digits of one class and one of another. The paper has faces of
    CelebA, which may not be redistributed: seven share two attributes, one has neither.

    A model is "encoder + pooling" with a row-wise head FC(d, ReLU), FC(1) of the concatenation of each element's row
    and the pooled row; the loss is the cross entropy of the eight logits. Area under the ROC curve and average
    precision are computed over all elements of the test sets, with the probability of an element within its set as its
    score; chance is 0.5 and 0.125.
    """

    name: ClassVar[str] = "anomaly"
    title: ClassVar[str] = "Set anomaly detection"
    measured: ClassVar[Sequence[Metric]] = (
        Metric("AUROC", higher_is_better=True),
        Metric("AUPR", higher_is_better=True),
        Metric("accuracy", higher_is_better=True),
    )
    rows: ClassVar[Sequence[str]] = ("rFF + mean", "rFF + max", "rFFp-max + max", "rFF + PMA", "SAB + max", "SAB + PMA")
    most: ClassVar[int] = MEMBERS + 1
    test_seed: ClassVar[int] = 0xA0

    def build(self, model: str, options: ModelOptions, seed: int, size: Size = None) -> nn.Module:
        """Return the model of a row: [B, 8, pixels] -> [B, 8, 1]."""
        dim = options.dim

        def scoring_head(width: int) -> nn.Module:
            return nn.Sequential(fully_connected(dim + width, dim), nn.ReLU(), nn.Linear(dim, 1))

        body = row_model(model, dim, options, seed, scoring_head)
        assert isinstance(body.head, nn.Sequential)
        head = body.head[1:]  # without the first layer, which flattens the rows of each set
        return ElementScorer([self.embedding(dim, seed), *body.encoder], body.pool, head, PIXELS)

    def draw_sets(self, images: Images, count: int, generator: torch.Generator) -> SetBatch:
        """Draw sets in random order; the target has the index of the anomaly and, for pictures, the labels."""
        common, other = torch.rand(count, images.classes, generator=generator).topk(2, dim=1).indices.unbind(1)
        anomalies = torch.randint(0, MEMBERS + 1, (count,), generator=generator)
        is_anomaly = torch.arange(MEMBERS + 1) == anomalies[:, None]
        labels = torch.where(is_anomaly, other[:, None], common[:, None])
        return SetBatch(images.pixels[images.draw(labels, generator)], None, {"anomaly": anomalies, "labels": labels})

    def loss(self, output: Float[Tensor, "*rows 1"], batch: SetBatch) -> Float[Tensor, ""]:
        """Cross entropy over the elements of each set."""
        return F.cross_entropy(output[:, :, 0], batch.target["anomaly"])

    def score(self, outputs: Sequence[Tensor], batches: Sequence[SetBatch]) -> Mapping[str, float]:
        """Area under the ROC curve and average precision over elements; accuracy over sets."""
        from sklearn.metrics import average_precision_score, roc_auc_score

        logits = torch.cat([output[:, :, 0] for output in outputs])
        anomalies = torch.cat([batch.target["anomaly"] for batch in batches])
        is_anomaly = F.one_hot(anomalies, logits.shape[1]).flatten().numpy()
        scores = logits.double().softmax(dim=1).flatten().numpy()
        return {
            "AUROC": float(roc_auc_score(is_anomaly, scores)),
            "AUPR": float(average_precision_score(is_anomaly, scores)),
            "accuracy": float((logits.argmax(dim=1) == anomalies).double().mean()),
        }
