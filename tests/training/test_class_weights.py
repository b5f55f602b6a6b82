"""Weights of classes in the loss: balanced, by name, and what is refused."""

import numpy as np
import pytest
import torch

import pointset
from pointset.training.devices import Processes
from pointset.training.loop import Training
from pointset.training.objectives import Classification, class_weights


@pytest.fixture
def unbalanced() -> pointset.PointSets:
    X = np.random.default_rng(0).normal(size=(20, 8, 3))
    return pointset.from_arrays(X, ["chair"] * 16 + ["lamp"] * 4, ["chair", "lamp", "sofa"])


def test_balanced_weights_are_one_on_average_and_rare_classes_weigh_more(unbalanced) -> None:
    weights = class_weights("balanced", unbalanced.labels, unbalanced.classes)
    assert weights[1] / weights[0] == pytest.approx(2)  # the root of 16 / 4
    assert (16 * weights[0] + 4 * weights[1]) / 20 == pytest.approx(1)
    assert class_weights("lamp=2.5, chair=.5", unbalanced.labels, unbalanced.classes).tolist() == [0.5, 2.5, 1.0]


def test_the_loss_is_weighted(unbalanced) -> None:
    recipe = pointset.Recipe(class_weights="chair=3", label_smoothing=0.0)
    objective = Classification(unbalanced, recipe, seed=0)
    batch = next(objective.batches(0))
    output = torch.randn(len(batch.labels), 3, generator=torch.Generator().manual_seed(0))
    weights = torch.where(batch.labels == 0, 3.0, 1.0)
    losses = torch.nn.functional.cross_entropy(output, batch.labels, reduction="none")
    torch.testing.assert_close(objective.loss(output, batch).mean, (weights * losses).sum() / weights.sum())


@pytest.mark.parametrize(("name", "value"), [("class_weights", "balanced"), ("ordered", "soft")])
def test_sets_of_two_classes_have_no_weight_and_no_rank(name, value, unbalanced) -> None:
    with pytest.raises(pointset.PointsetError, match=f"{name} cannot be used with sets of two classes"):
        Classification(unbalanced, pointset.Recipe(augment=("cutmix-r",)).changed({name: value}), seed=0)


@pytest.mark.parametrize(("weights", "smoothing"), [("chair=3", 0.1), ("chair=0", 0.0), (None, 0.1)])
def test_shares_of_processes_add_up_to_the_loss_and_the_gradient_of_a_batch(weights, smoothing, unbalanced) -> None:
    recipe = pointset.Recipe(class_weights=weights, label_smoothing=smoothing, device="cpu")
    objective = Classification(unbalanced, recipe, seed=0)
    batch = next(objective.batches(0))

    def totals_and_gradient(world: int) -> list[torch.Tensor]:
        model = pointset.create_model("rff-max", classes=3, dim=8, dropout=0.0).double()
        totals = torch.zeros(3, dtype=torch.float64)
        for rank in range(world):
            processes = Share(torch.device("cpu"))
            processes.rank, processes.world = rank, world
            training = Training(model, objective, recipe, 0, processes=processes)
            totals += training._backward(batch._replace(points=batch.points.double()))
        return [totals, *(parameter.grad for parameter in model.parameters())]

    whole = totals_and_gradient(1)
    assert whole[0][2] == 20
    for world in (2, 7):
        torch.testing.assert_close(totals_and_gradient(world), whole, rtol=1e-5, atol=1e-7)


class Share(Processes):
    """One of several processes, whose gradients are added where they lie."""

    def sum_gradients(self, model: torch.nn.Module) -> None:
        pass
