"""Rows of the papers' tables as zoo models with other heads."""

import pytest
import torch

from pointset.errors import PointsetError
from pointset.evaluation.symmetry import check_symmetry
from pointset.tasks import create_task, list_tasks
from pointset.tasks.set_problem import fully_connected, parts_of, row_model
from pointset.zoo.models import create_model
from pointset.zoo.options import ModelOptions

SMALL = ModelOptions(dim=16, heads=2, dropout=0.0)


@pytest.mark.slow
@pytest.mark.parametrize("row", ["rFF + max", "SAB + PMA", "ISAB4 + PMA3"])
def test_a_row_is_the_zoos_model_under_the_head(row):
    """With the zoo's head in place of the task's, the outputs equal those of the zoo's model."""
    ours = row_model(row, 5, SMALL, 3, lambda width: fully_connected(width, 11, 7)).eval()
    zoo = create_model("-".join(parts_of(row)), 1, inputs=5, seed=3, **SMALL.as_dict()).eval()
    X, mask = torch.randn(2, 6, 5), torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    assert ours(X, mask).shape == (2, 7)
    pooled = ours.pool(ours.encode(X, mask), mask)
    assert torch.equal(zoo.head(pooled), zoo(X, mask))


def test_a_task_with_its_own_head_refuses_options_of_a_classifiers_head():
    options = {"head_dim": 5, "head_norm": "batch", "pooled_dropout": 0.3}
    for name in list_tasks()[2:]:
        task = create_task(name)
        assert not options.keys() & task.used_options("rff-max")
        assert str(task.build("rff-max", ModelOptions(dim=8, **options), 0)) == str(
            task.build("rff-max", ModelOptions(dim=8), 0)
        )


@pytest.mark.parametrize(
    "row", ["rFF + PMA", "SAB + max", "isab4-pma2", "ISAB4 + max+mean", "rffp-pma", "rff-aggr.softmax", "none-dumlp3"]
)
@pytest.mark.parametrize("name", list_tasks()[2:])
def test_every_encoder_and_pooling_is_a_row_of_every_task(name, row):
    task = create_task(name)
    batch = task.draw(2, torch.Generator().manual_seed(0))
    model = task.build(row, SMALL, seed=0)
    task.loss(model(batch.X, batch.mask), batch).backward()
    assert {"dim", "dropout"} <= task.used_options(row)
    with pytest.raises(PointsetError, match="'dgcnn' does not name an encoder and a pooling"):
        task.build("dgcnn", SMALL, seed=0)


ROWS = [(name, row) for name in list_tasks()[2:] for row in create_task(name).rows]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "row"), ROWS, ids=": ".join)
def test_the_papers_models_are_functions_of_sets_whose_gradient_reaches_every_parameter(name, row):
    task = create_task(name)
    model, batch = task.build(row, SMALL, seed=0), task.draw(4, torch.Generator().manual_seed(0))
    task.loss(model(batch.X, batch.mask), batch).backward()
    idle = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert [name for name in idle if not name.endswith("key.bias")] == [], "a key's bias cancels where queries are few"
    scores = name == "anomaly"  # one for each element: minus infinity for padding
    found = check_symmetry(model, sizes=(1, 8), mask=False if scores else None)
    assert found.kind == ("equivariant" if scores else "invariant")
    assert found.worst < 1e-4
