"""Numbers of point sets: units, sizes, losses, intervals, and what cannot be learned."""

import numpy as np
import pytest
import torch
from sklearn.metrics import r2_score

import pointset
from pointset.data.normalize import log_size
from pointset.errors import PointsetError
from pointset.training.objectives import Regression
from pointset.training.recipe import Recipe
from pointset.zoo.predicting import predict
from pointset.zoo.regressors import predict_numbers

RECIPE = Recipe(epochs=2, batch_size=16, validation=0.25, augment=("scale", "jitter"))


def cuboids(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Points on the surfaces of cuboids of sizes over three decades, and their volumes and areas."""
    rng = np.random.default_rng(seed)
    sides = 10 ** rng.uniform(-1, 2, (count, 1)) * rng.uniform(0.5, 1.5, (count, 3))
    points = rng.uniform(-1, 1, (count, 64, 3))
    face = rng.integers(3, size=(count, 64, 1))
    np.put_along_axis(points, face, np.sign(np.take_along_axis(points, face, 2)), 2)
    area = 2 * (sides[:, 0] * sides[:, 1] + sides[:, 1] * sides[:, 2] + sides[:, 2] * sides[:, 0])
    return points * sides[:, None] / 2, np.stack([sides.prod(axis=1), area], axis=1)


X, Y = cuboids(80)
SETS = pointset.from_arrays(X, Y, target=["volume", "area"])


def model(**options) -> torch.nn.Module:
    return pointset.create_model("rff-max", targets=["volume", "area"], dim=8, **options)


@pytest.mark.parametrize("loss", ["squared", "absolute", "huber", "gaussian"])
def test_every_loss_learns_numbers_over_decades_in_their_own_units(loss: str) -> None:
    regressor = model(variance=loss == "gaussian")
    fitted = pointset.fit(regressor, SETS, RECIPE.changed({"loss": loss, "epochs": 10}), progress=False)
    assert fitted.history[-1]["validation_r2"] > 0.9
    new, truth = cuboids(50, seed=1)
    numbers = regressor.predict_interval(new, level=0.8)
    assert (numbers.values.shape, numbers.targets) == ((50, 2), ("volume", "area"))
    assert np.array_equal(numbers.values, regressor.predict(new))
    assert (np.abs(np.log(numbers.values / truth)).mean(axis=0) < 0.4).all()
    inside = (numbers.low <= truth) & (truth <= numbers.high)
    assert (inside.mean(axis=0) > 0.6).all()
    assert (numbers.low < numbers.values).all()
    assert (numbers.values < numbers.high).all()
    assert regressor.log.tolist() == [True, True]


@pytest.mark.parametrize(
    ("loss", "formula"),
    [
        ("squared", lambda e, s: e**2),
        ("absolute", lambda e, s: abs(e)),
        ("huber", lambda e, s: torch.where(abs(e) < 1, e**2 / 2, abs(e) - 1 / 2)),
        ("gaussian", lambda e, s: (s + e**2 / s.exp()) / 2),
    ],
)
def test_losses_are_their_formulas_of_standardised_errors(loss: str, formula) -> None:
    regressor = model(variance=loss == "gaussian")
    objective = Regression(regressor, SETS, Recipe(loss=loss), 0)
    batch = next(objective.batches(0))
    outputs, log_variances = torch.randn(2, len(batch.labels), 2, generator=torch.Generator().manual_seed(0))
    errors = outputs - regressor.standardised(batch.labels).float()
    given = torch.cat([outputs, log_variances], dim=1) if loss == "gaussian" else outputs
    torch.testing.assert_close(objective.loss(given, batch).mean, formula(errors, log_variances).mean())


def test_validation_r2_is_that_of_scikit_learn() -> None:
    regressor = model()
    objective = Regression(regressor, SETS, RECIPE, 0)
    outputs = predict(regressor, objective.validation.normalized("none")).logits
    expected = r2_score(regressor.standardised(objective.validation.targets), outputs)
    assert objective.validate(regressor)["validation_r2"] == pytest.approx(expected, abs=1e-5)


def test_metrics_of_numbers_are_those_of_scikit_learn_in_the_units_of_the_user() -> None:
    regressor = model()
    pointset.fit(regressor, SETS, RECIPE, progress=False)
    found = pointset.evaluate_numbers(regressor, SETS, level=0.5)
    values = found.numbers.values
    assert list(found.r2.values()) == pytest.approx(r2_score(Y, values, multioutput="raw_values"), rel=1e-9)
    assert list(found.mae.values()) == pytest.approx(np.abs(values - Y).mean(axis=0))
    inside = np.logical_not((found.numbers.low > Y) | (found.numbers.high < Y)).mean(axis=0)
    assert list(found.coverage.values()) == inside.tolist()
    assert 0.2 < inside.min() < 0.9


def test_augmented_shapes_keep_their_sizes() -> None:
    sizes = dict(zip(map(tuple, Y.tolist()), log_size(torch.from_numpy(X)).tolist(), strict=True))
    recipe = Recipe(augment=("stretch-wide", "shift-wide", "jitter"))
    for batch in Regression(model(), SETS, recipe, 0).batches(0):
        expected = [sizes[tuple(target)] for target in batch.labels.tolist()]
        np.testing.assert_allclose(log_size(batch.points), expected, atol=1e-4)


def test_a_scaled_shape_has_a_scaled_number() -> None:
    regressor = model()
    pointset.fit(regressor, SETS, RECIPE, progress=False)
    once, twice = regressor.predict(X[:3]), regressor.predict(2 * X[:3] + 5)
    power = np.log2(twice / once)
    np.testing.assert_allclose(power, np.tile(power[0], (3, 1)), rtol=1e-4)
    np.testing.assert_allclose(power[0], [3, 2], atol=0.25)


def test_a_run_is_loaded_and_continued_with_its_units_and_intervals(tmp_path) -> None:
    fitted = pointset.fit(model(), SETS, RECIPE, run=tmp_path / "run", progress=False)
    loaded, description = pointset.load_run(tmp_path / "run")
    assert description["model"]["targets"] == ["volume", "area"]
    before, after = (one.predict_interval(X[:5]) for one in (fitted.model, loaded))
    for name in ("values", "low", "high"):
        assert np.array_equal(getattr(before, name), getattr(after, name))
    of_sets = predict_numbers(loaded, SETS.subset(range(5)))
    np.testing.assert_allclose(of_sets.values, before.values, rtol=1e-5)
    longer = RECIPE.changed({"epochs": 3})
    assert len(pointset.fit(model(), SETS, longer, run=tmp_path / "run", progress=False).history) == 3


def test_intervals_need_held_out_shapes() -> None:
    regressor = model()
    pointset.fit(regressor, SETS, RECIPE.changed({"validation": 0.0}), progress=False)
    numbers = regressor.predict_interval(X[:3])
    assert np.isfinite(numbers.values).all()
    assert (numbers.high == np.inf).all()
    pointset.fit(regressor, SETS, RECIPE, progress=False)  # 20 held-out shapes
    assert np.isfinite(regressor.predict_interval(X[:3], level=20 / 21).high).all()
    assert (regressor.predict_interval(X[:3], level=0.96).high == np.inf).all()


def test_negative_targets_stay_as_they_are() -> None:
    heights = X[..., 2].max(axis=1) - np.median(X[..., 2].max(axis=1))
    regressor = pointset.create_model("rff-max", targets="y", dim=8)
    pointset.fit(regressor, pointset.from_arrays(X, heights), RECIPE, progress=False)
    assert not regressor.log.any()


@pytest.mark.parametrize(
    ("make", "sets", "recipe", "words"),
    [
        (lambda: pointset.create_model("rff-max", 2, dim=8), SETS, {}, r"targets=\['volume', 'area'\]"),
        (lambda: pointset.create_model("rff-max", targets="mass", dim=8), SETS, {}, "model predicts mass"),
        (model, pointset.from_arrays(X[:4], [0, 1, 0, 1]), {}, "volume, area, and arrays has classes"),
        (model, SETS, {"loss": "gaussian"}, "variance=True"),
        (lambda: model(variance=True), SETS, {}, "variance=False"),
        (model, SETS, {"class_weights": "balanced"}, "class_weights"),
        (model, SETS, {"augment": ("jitter", "cutmix-r")}, "cutmix-r"),
        (model, SETS.subset([0]), {"validation": 0.0}, "1 training shape"),
        (
            lambda: pointset.create_model("rff-max", targets="y", dim=8),
            pointset.from_arrays(X[:4], np.full(4, 2.5)),
            {"validation": 0.0},
            "y is 2.5 for all 4 training shapes",
        ),
    ],
)
def test_what_cannot_be_learned_is_refused(make, sets, recipe, words) -> None:
    with pytest.raises(PointsetError, match=words):
        pointset.fit(make(), sets, RECIPE.changed(recipe), progress=False)
