"""Set anomaly detection: the sets, the equivariant model, and the metrics."""

import pytest
import torch

from pointset.data.batches import epoch_generator
from pointset.tasks import SetBatch, create_task
from pointset.zoo.options import ModelOptions

SMALL = ModelOptions(dim=8, heads=2, dropout=0.0)
TASK = create_task("anomaly")


def test_seven_belong_together_and_one_does_not():
    batch = TASK.draw(200, epoch_generator(0, 0))
    assert batch.X.shape == (200, 8, 64)
    assert batch.mask is None
    for labels, place in zip(batch.target["labels"].tolist(), batch.target["stranger"].tolist(), strict=True):
        stranger = labels.pop(place)
        assert len(set(labels)) == 1
        assert stranger != labels[0]


def test_strangers_are_anywhere_and_of_any_class():
    batch = TASK.draw(4000, epoch_generator(1, 0))
    assert torch.bincount(batch.target["stranger"]).tolist() == pytest.approx([500] * 8, abs=5 * 21)
    labels, place = batch.target["labels"], batch.target["stranger"][:, None]
    assert torch.bincount(labels.gather(1, place)[:, 0]).tolist() == pytest.approx([400] * 10, abs=5 * 19)
    assert torch.bincount(labels.flatten()).min() > 0.8 * 3200


def test_padding_changes_nothing_and_gets_no_probability():
    model = TASK.build("SAB + PMA", SMALL, seed=0)
    X, mask = TASK.draw(3, epoch_generator(0, 0)).X, torch.arange(11) < 8
    padded = torch.cat([X, 9 * torch.rand(3, 3, 64)], dim=1)
    output = model(padded, mask.expand(3, -1))
    assert torch.allclose(output[:, :8], model(X), atol=1e-5)
    assert output.softmax(dim=1)[:, 8:].abs().max() == 0
    X[:, 7] = torch.rand(3, 64)
    assert not torch.allclose(model(X)[:, :7], output[:, :7]), "an element's logit depends on the others"


def test_metrics_by_hand():
    """Two sets of three: in the first the stranger is found, in the second it is second.

    Scores .7 .2 .1 (stranger .7) and .6 .3 .1 (stranger .3): of 2 x 4 pairs stranger and other, 7 are in order; the
    average precision is (1/1 + 2/3) / 2.
    """
    outputs = [torch.tensor([[0.7, 0.2, 0.1]]).log()[:, :, None], torch.tensor([[0.6, 0.3, 0.1]]).log()[:, :, None]]
    batches = [SetBatch(torch.zeros(1, 3, 64), target={"stranger": torch.tensor([place])}) for place in (0, 1)]
    found = TASK.score(outputs, batches)
    assert found == pytest.approx({"AUROC": 7 / 8, "AUPR": (1 + 2 / 3) / 2, "accuracy": 0.5})
