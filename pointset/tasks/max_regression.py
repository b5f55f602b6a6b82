"""Max regression: the largest of up to ten numbers (Set Transformer, arXiv 1810.00825, section 5.1)."""

from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from pointset.comparison.metric import Metric, Size
from pointset.data.batches import epoch_generator
from pointset.tasks.set_problem import SetBatch, SetProblem, fully_connected, parts_of, row_model
from pointset.zoo.options import ModelOptions

LARGEST_SET = 10
RANGE = 100.0
"""Elements are uniform in [0, RANGE]."""
TEST_SEED = 0x3A
TEST_SETS = 1000
"""Number of test sets of each size."""


class MaxRegression(SetProblem):
    """Predict the maximum of n numbers uniform in [0, 100], with n uniform in 1 ... 10. The loss is the absolute error.

    All sets of a batch have the same size, as in the authors' notebook, so nothing is padded. There are 1,000 test
    sets of each size, so metrics do not depend on randomly drawn sizes.

    Models follow table 1 of the paper's supplement, at width 64. The models with rFF are FC(64, ReLU) x 3, FC(64), then
    mean, sum or max, FC(64, ReLU), FC(1). "SAB + PMA" is SAB(64, 4 heads) x 2, PMA_1(64, 4 heads), FC(1). The notebook
    has the same models, but draws integers from 1 to 99, and trains for 500 steps of 1,024 sets at a learning rate of
    1e-4.
    """

    name = "max-regression"
    title = "Max regression"
    metrics = (Metric("MAE", higher_is_better=False),)
    rows = ("rFF + mean", "rFF + sum", "rFF + max", "SAB + PMA")
    largest = LARGEST_SET

    def build(self, row: str, options: ModelOptions, seed: int, size: Size = None) -> nn.Module:
        """Return the model of a row of the comparison, which maps [B, n, 1] to [B, 1]."""
        hidden = () if parts_of(row)[1].startswith("pma") else (options.dim,)
        return row_model(row, 1, options, seed, lambda width: fully_connected(width, *hidden, 1))

    def draw(self, count: int, generator: torch.Generator) -> SetBatch:
        size = int(torch.randint(1, LARGEST_SET + 1, (), generator=generator))
        return draw_sets(count, size, generator)

    def test_sets(self) -> Sequence[SetBatch]:
        return [draw_sets(TEST_SETS, size, epoch_generator(TEST_SEED, size)) for size in range(1, LARGEST_SET + 1)]

    def loss(self, output: Float[Tensor, "B 1"], batch: SetBatch) -> Float[Tensor, ""]:
        return F.l1_loss(output[:, 0], batch.target["maximum"])

    def score(self, outputs: Sequence[Tensor], batches: Sequence[SetBatch]) -> Mapping[str, float]:
        """Return the mean absolute error over all sets."""
        errors = [
            (output[:, 0] - batch.target["maximum"]).abs() for output, batch in zip(outputs, batches, strict=True)
        ]
        return {"MAE": float(torch.cat(errors).double().mean())}


def draw_sets(count: int, size: int, generator: torch.Generator) -> SetBatch:
    """Draw `count` sets of `size` elements."""
    X = RANGE * torch.rand(count, size, 1, generator=generator)
    return SetBatch(X, target={"maximum": X.amax(dim=(1, 2))})
