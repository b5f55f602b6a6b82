"""Counting: the sets, the loss, the metrics."""

import math

import pytest
import torch
from scipy.stats import poisson

from pointset.data.batches import epoch_generator
from pointset.errors import PointsetError
from pointset.tasks import SetBatch, create_task
from pointset.tasks.counting import poisson_loss
from pointset.tasks.images import Images, digits
from pointset.zoo.options import ModelOptions

SMALL = ModelOptions(dim=8, heads=2, dropout=0.0)
TASK = create_task("counting")


def sets(count: int = 4000) -> SetBatch:
    return TASK.draw(count, epoch_generator(0, 0))


def test_every_set_has_as_many_classes_as_it_says():
    batch = sets(300)
    assert batch.X.shape == (300, 10, 64)
    found = [len(set(row[keep].tolist())) for row, keep in zip(batch.target["labels"], batch.mask, strict=True)]
    assert found == batch.target["count"].tolist()
    assert (batch.X[~batch.mask] == 0).all()
    assert (batch.target["labels"] == -1).equal(~batch.mask)


def test_images_are_those_of_their_labels_and_of_their_split():
    batch, test = sets(20), TASK.test_sets()
    images = {
        row.numpy().tobytes(): label for row, label in zip(digits("train").pixels, digits("train").labels, strict=True)
    }
    for image, label in zip(batch.X[batch.mask], batch.target["labels"][batch.mask], strict=True):
        assert images[image.numpy().tobytes()] == label
    assert not any(image.numpy().tobytes() in images for image in test[0].X[test[0].mask])
    assert [tuple(one.X.shape) for one in test] == [(250, 10, 64)] * 8
    assert torch.equal(test[3].X, create_task("counting").test_sets()[3].X)


def test_sizes_are_uniform_and_counts_uniform_below_them():
    batch = sets()
    sizes, counts = batch.mask.sum(dim=1), batch.target["count"]
    assert torch.bincount(sizes, minlength=11)[6:].tolist() == pytest.approx([800] * 5, abs=5 * 26)
    assert torch.bincount(sizes)[:6].sum() == 0
    for size in range(6, 11):
        of_size = counts[sizes == size]
        shares = torch.bincount(of_size, minlength=11)[1 : size + 1] / len(of_size)
        assert shares.tolist() == pytest.approx([1 / size] * size, abs=5 * math.sqrt(1 / size / 700))
        assert of_size.max() == size


def test_counts_do_not_exceed_the_number_of_classes():
    few = Images(torch.rand(9, 4), torch.tensor([0, 1, 2] * 3), side=2)
    batch = TASK.draw_sets(few, 500, epoch_generator(1, 0))
    assert set(batch.target["count"].tolist()) == {1, 2, 3}
    found = [len(set(row[keep].tolist())) for row, keep in zip(batch.target["labels"], batch.mask, strict=True)]
    assert found == batch.target["count"].tolist()


def test_poisson_is_scipys():
    output = torch.linspace(-3, 12, 40)[:, None].double()
    counts = torch.arange(40) % 11
    rates = torch.nn.functional.softplus(output[:, 0]).numpy()
    expected = -poisson.logpmf(counts.numpy(), rates).mean()
    assert float(poisson_loss(output, counts)) == pytest.approx(expected, rel=1e-6)
    best = [max(range(30), key=lambda count: poisson.pmf(count, rate)) for rate in rates]
    score = TASK.score([output], [SetBatch(torch.zeros(40, 10, 64), target={"count": torch.tensor(best)})])
    assert score["accuracy of the mode"] == 1.0


def test_poisson_stays_finite_where_the_rate_underflows():
    """For the rate e^x, the loss is e^x - count x + log(count!)."""
    output = torch.tensor([[-120.0], [-16.5], [-15.5]], requires_grad=True)
    loss = poisson_loss(output, torch.tensor([3, 2, 1]))
    expected = (3 * 120.0 + math.log(6) + 2 * 16.5 + math.log(2) + 15.5) / 3
    assert loss.item() == pytest.approx(expected, rel=1e-6)
    loss.backward()
    torch.testing.assert_close(output.grad[:, 0] * 3, torch.tensor([-3.0, -2.0, -1.0]), rtol=1e-5, atol=1e-6)


def test_metrics_by_hand():
    """Rates 1.2, 2.7, 5.4 and 4.1: rounded 1, 3, 5 and 4, modes 1, 2, 5 and 4; true 1, 3, 7 and 4."""
    outputs = [torch.tensor(rates).expm1().log()[:, None] for rates in ([1.2, 2.7, 5.4], [4.1])]
    batches = [
        SetBatch(torch.zeros(len(counts), 10, 64), target={"count": torch.tensor(counts)})
        for counts in ([1, 3, 7], [4])
    ]
    assert TASK.score(outputs, batches) == {"accuracy": 0.75, "accuracy of the mode": 0.5, "MAE": 0.5}


def test_the_error_for_missing_data_says_how_to_get_it(tmp_path):
    with pytest.raises(PointsetError, match=r"nowhere does not exist: .*alphabet/character"):
        create_task("counting", data=str(tmp_path / "nowhere"))
    with pytest.raises(PointsetError, match="counting has no option 'images': its options are data"):
        create_task("counting", images="x")
