from types import SimpleNamespace

import audit as auditing
import numpy as np
import pytest
import torch
import toy
from audit import VOTES, audit, draw_steps, main
from torch import nn

import pointset
from pointset.errors import PointsetError


class Spreads(nn.Module):
    """Says class 1 if the smallest distance between two points is above a limit: farthest points always are."""

    temperature = 1.0

    def __init__(self, limit):
        super().__init__()
        self.limit = nn.Parameter(torch.tensor(float(limit)))

    def forward(self, points, mask=None):
        apart = torch.cdist(points, points) + 9 * torch.eye(points.shape[1])
        far = (apart.amin(dim=(1, 2)) > self.limit).float()
        return torch.stack([1 - far, far], dim=1)


@pytest.fixture
def sets():
    """Twelve clouds of 200 points on a sphere, all of class 1, as random subsets of 16 and whole."""
    points = np.random.default_rng(0).normal(size=(12, 200, 3))
    points /= np.linalg.norm(points, axis=2, keepdims=True)
    options = {"classes": ["near", "far"], "split": "test"}
    return [pointset.from_arrays(points, [1] * 12, points=n, **options) for n in (16, None)]


def test_farthest_points_raise_what_depends_on_the_spread_of_points(sets):
    steps = {step.name: step for step in audit([Spreads(0.4)], *sets)}
    assert steps["last epoch, random points"].accuracy < 0.5
    assert steps["farthest-point order"].accuracy == 1.0
    assert steps["farthest-point order"].interval.low > 0
    assert steps[f"{VOTES} votes"].gain == 0.0


def test_the_best_of_several_seeds_is_a_step_and_unmeasured_steps_say_why(sets):
    steps = audit([Spreads(0.4), Spreads(9.0)], *sets)
    best = next(step for step in steps if step.name == "best of 2 seeds")
    assert (best.accuracy, best.gain) == (1.0, 0.5)
    assert [bool(step.note) for step in steps if step.accuracy is None] == [True, True]
    assert draw_steps(steps).axes[0].get_xlabel() == "accuracy %"


def test_votes_are_the_mean_of_probabilities(sets, monkeypatch):
    votes = {id(sets[0]): [[0.6, 0.4], [0.6, 0.4]], id(sets[1]): [[0.1, 0.9], [0.55, 0.45]]}
    monkeypatch.setattr(auditing, "predict_sets", lambda _, s: SimpleNamespace(probabilities=np.array(votes[id(s)])))
    few = [each.subset([0, 1]) for each in sets]
    votes |= {id(new): votes[id(old)] for new, old in zip(few, sets, strict=True)}
    assert auditing._right([Spreads(0.4)], few).tolist() == [[True, False]]


def test_other_shapes_and_no_models_are_refused(sets):
    few, whole = sets
    with pytest.raises(PointsetError, match="0"):
        audit([], few, whole)
    with pytest.raises(PointsetError, match="same test shapes"):
        audit([Spreads(0.4)], few, whole.subset([0, 1]))


def test_the_script_prints_the_steps_and_draws_them(clouds_folder, tmp_path, capsys):
    runs = [tmp_path / "run0", tmp_path / "run1"]
    for run in runs:
        toy.train_run(run, clouds_folder, "rff-max")
    main(*runs, output=tmp_path / "audit.png")
    assert "best of 2 seeds" in capsys.readouterr().out
    assert (tmp_path / "audit.png").read_bytes().startswith(b"\x89PNG")
