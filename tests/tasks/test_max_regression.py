"""Max regression: the sets, the models of the paper's table, the loss and its metric."""

import pytest
import torch

from pointset.data.batches import epoch_generator
from pointset.tasks import SetBatch, create_task
from pointset.zoo.options import ModelOptions

PAPER = ModelOptions(dim=64, heads=4, dropout=0.0, initial="xavier")
TASK = create_task("max-regression")
FC = 64 * 64 + 64


def drawn(batches: int, count: int = 50) -> list[SetBatch]:
    return [TASK.draw(count, epoch_generator(7, step)) for step in range(batches)]


def test_sizes_and_numbers_are_uniform():
    batches = drawn(2000, 5)
    sizes = torch.tensor([batch.X.shape[1] for batch in batches])
    counts = torch.bincount(sizes, minlength=11)
    assert counts[0] == 0
    assert counts[1:].min() > 200 - 5 * 14, "200 of each expected, with a deviation of 13.4"
    assert counts[1:].max() < 200 + 5 * 14
    numbers = torch.cat([batch.X.flatten() for batch in batches])
    assert numbers.min() >= 0
    assert numbers.max() <= 100
    shares = torch.histc(numbers, bins=4, min=0, max=100) / len(numbers)
    assert shares == pytest.approx([0.25] * 4, abs=0.01)


def test_a_batch_is_whole_sets_of_one_size_with_their_largest():
    batch = TASK.draw(3, epoch_generator(0, 0))
    assert batch.mask is None
    assert batch.X.shape[0::2] == (3, 1)
    assert batch.target["maximum"].tolist() == [max(row) for row in batch.X.squeeze(2).tolist()]


def test_test_sets_are_a_thousand_of_each_size_and_always_the_same():
    sets, again = TASK.test_sets(), TASK.test_sets()
    assert [tuple(batch.X.shape) for batch in sets] == [(1000, size, 1) for size in range(1, 11)]
    assert all(torch.equal(one.X, other.X) for one, other in zip(sets, again, strict=True))
    watched = TASK.watched_sets()
    assert [batch.X.shape[1] for batch in watched] == list(range(1, 11))
    assert not torch.isin(watched[0].X, sets[0].X).any(), "curves are taken on other sets"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("row", "parameters"),
    [
        # FC(1 -> 64), three FC(64 -> 64); FC(64 -> 64), FC(64 -> 1)
        ("rFF + mean", 128 + 3 * FC + FC + 65),
        ("rFF + sum", 128 + 3 * FC + FC + 65),
        ("rFF + max", 128 + 3 * FC + FC + 65),
        # queries, keys, values and the feed-forward of each block; the seed; FC(64 -> 1)
        ("SAB + PMA", (3 * 128 + FC) + 4 * FC + (64 + 4 * FC) + 65),
    ],
)
def test_models_by_the_papers_table(row, parameters):
    model = TASK.build(row, PAPER, seed=0)
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters
    kinds = [type(module).__name__ for module in model.modules()]
    assert kinds.count("SAB") == 2 * (row == "SAB + PMA")
    assert kinds.count("ReLU") == (3 + 1 if row.startswith("rFF") else 3), "none after the encoder's last layer"


def test_loss_and_metric_are_mean_absolute_errors():
    """Two batches of unequal size, so that a mean of means would differ: (1 + 3 + 0 + 0 + 6) / 5 = 2."""
    batches = [
        SetBatch(torch.zeros(2, 4, 1), target={"maximum": torch.tensor([10.0, 20.0])}),
        SetBatch(torch.zeros(3, 9, 1), target={"maximum": torch.tensor([5.0, 6.0, 7.0])}),
    ]
    outputs = [torch.tensor([[11.0], [17.0]]), torch.tensor([[5.0], [6.0], [13.0]])]
    assert float(TASK.loss(outputs[0], batches[0])) == 2.0
    assert TASK.score(outputs, batches) == {"MAE": pytest.approx(2.0)}
