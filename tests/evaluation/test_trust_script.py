"""scripts/experiments/trust.py: the fit, its figures, and the card."""

from pathlib import Path

import numpy as np
import pytest
import trust
from toy import ship

import pointset
from pointset.training.recipe import Recipe
from pointset.zoo import pretrained

NAME = "rff-max.toy"


@pytest.fixture
def shipped(clouds_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    ship(NAME, tmp_path, clouds_folder, Recipe(epochs=3, validation=0.2))
    monkeypatch.setattr(pretrained, "FOLDER", tmp_path)
    return tmp_path / NAME


def test_worth_is_the_area_under_the_curve_and_the_error_in_bins():
    probabilities, right = np.array([0.9, 0.9, 0.4, 0.39]), np.array([True, False, True, False])
    worth = trust.Worth.of(probabilities, right)
    assert worth.auroc == pytest.approx(0.625)
    assert worth.calibration_error == pytest.approx((0.8 + abs(0.4 + 0.39 - 1)) / 4)


def test_a_fit_replaces_the_earlier_one_on_the_card(shipped, clouds_folder, tmp_path, capsys):
    sets = pointset.load_dataset(clouds_folder, "test", points=64)
    for name in ("Plane", *sets.classes):
        (tmp_path / "others" / name).mkdir(parents=True)
    for index in range(0, len(sets), 5):
        np.save(tmp_path / "others" / sets.classes[sets.labels[index]] / f"{index}.npy", sets.points[index])
        np.save(tmp_path / "others" / "Plane" / f"{index}.npy", sets.points[index].numpy() * [1.0, 1.0, 0.01])
    before = pretrained.pretrained_card(NAME)
    assert trust.run([NAME, "--foreign", str(tmp_path / "others"), "--write"]) == 0
    card = pretrained.pretrained_card(NAME)
    assert card.accuracy == before.accuracy
    assert card.trust != before.trust
    assert 0 <= card.trust.exponent <= 2
    assert list(card.trust.auroc) == list(card.trust.calibration_error)
    assert list(card.trust.auroc)[-2:] == ["others, classes of the model", "others, all classes"]
    model, _ = pointset.load_run(NAME)
    assert (model.trust.median, model.trust.exponent) == (card.trust.median, card.trust.exponent)
    assert len(model.trust.means) == 3


def test_a_run_without_held_out_shapes_is_refused(clouds_folder, tmp_path, capsys):
    ship("rff-max.plain", tmp_path, clouds_folder)
    assert trust.run([str(tmp_path / "rff-max.plain"), "--foreign", str(tmp_path)]) == 2
    assert "--validation 0.1" in capsys.readouterr().err
