"""The training loop: it learns, it is repeatable, and a kill changes no result; and its objectives."""

import copy
import math
import time
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from toy import Recorder, StopError, kill_at, numbers, same_weights, small, stop_after

import pointset
from pointset import DataOptions, PointsetError, PointSets, Recipe, load_model
from pointset.cli import main
from pointset.data import PointCache
from pointset.training.checkpoints import RunFolder
from pointset.training.loop import Training, best_epoch, learning_rate
from pointset.training.objectives import Classification, balanced_weights, drawn_size, ordered_losses
from pointset.training.processes import Processes
from pointset.zoo.classifiers import ranked

SHORT = Recipe(epochs=2, batch_size=16, learning_rate=3e-3)


class Flat(nn.Module):
    """A linear function of a cloud's corner."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        with torch.no_grad():
            self.layer.weight.copy_(torch.eye(3))
            self.layer.bias.zero_()

    def forward(self, points: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        return self.layer(points.amax(dim=1))


def test_a_training_follows_its_formulas_by_hand(train):
    """Warm-up and cosine, smoothed labels, clipped gradients, decay of the matrix alone, momentum; in float64."""
    recipe = Recipe(epochs=2, batch_size=25, learning_rate=0.5, optimizer="sgd", weight_decay=0.1)
    recipe = replace(recipe, warmup=0.3, label_smoothing=0.2, clip_norm=0.2)
    model, objective, norms = Flat(), Classification(train, recipe, 3), []
    W, b = (parameter.detach().clone().double() for parameter in model.parameters())
    momenta, rates = [torch.zeros_like(W), torch.zeros_like(b)], [1 / 3, 2 / 3, 1]
    rates += [(1 + math.cos(math.pi * step / 7)) / 2 for step in range(7)]
    batches = [batch for epoch in range(2) for batch in objective.batches(epoch)]
    for batch, rate in zip(batches, rates, strict=True):
        rows = batch.points.double().amax(dim=1)
        wanted = 0.8 * nn.functional.one_hot(batch.labels, 3) + 0.2 / 3
        slopes = ((rows @ W.T + b).softmax(dim=1) - wanted) / len(rows)
        gradients = [slopes.T @ rows, slopes.sum(dim=0)]
        norms.append(math.sqrt(sum(float(gradient.square().sum()) for gradient in gradients)))
        for weights, gradient, momentum, decay in zip((W, b), gradients, momenta, (0.1, 0.0), strict=True):
            momentum.mul_(0.9).add_(gradient * min(1, 0.2 / norms[-1]) + decay * weights)
            weights.sub_(0.5 * rate * momentum)
    fitted = pointset.fit(model, train, recipe, seed=3, progress=False)
    assert min(norms) < 0.2 < max(norms)
    for found, expected in zip(fitted.model.parameters(), (W, b), strict=True):
        torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-5)


def test_waiting_time_is_not_counted_as_training_time(train):
    model = small("rff-max")
    model.register_forward_pre_hook(lambda *_: time.sleep(0.05))
    fitted = pointset.fit(model, train, replace(SHORT, batch_size=60))
    assert fitted.seconds > 4 * 0.05, "2 epochs of 2 steps"
    assert 0 < fitted.work < fitted.seconds - 0.15


@pytest.mark.slow
def test_killed_in_mid_epoch_and_resumed_gives_the_same_numbers_to_the_last_bit(clouds_folder, tmp_path):
    sizes = "--points 48 --dim 32 --train-points 8 24 --last-points 48 64 --batch-size 3"
    recipe = "--epochs 4 --validation 0.2 --seed 3 --augment stretch-wide drop cutmix-k"
    command = ["train", "isab4-pma", "--data", str(clouds_folder), "--json", *sizes.split(), *recipe.split(), "--run"]
    main([*command, str(tmp_path / "whole")])

    killed = tmp_path / "killed"
    kill_at(80, Training, "_backward", main, [*command, str(killed)])  # of 32 steps an epoch
    assert not (killed / "model.safetensors").exists()
    main([*command, str(killed)])

    whole = (tmp_path / "whole" / "model.safetensors").read_bytes()
    assert (killed / "model.safetensors").read_bytes() == whole
    assert numbers(RunFolder(killed).history()) == numbers(RunFolder(tmp_path / "whole").history())
    assert {path.name for path in killed.iterdir()} - {".lock"} == {"history.jsonl", "model.safetensors", "run.json"}


def test_a_model_of_the_users_own_trains_and_resumes_but_is_not_built_again(train, tmp_path):
    pointset.fit(Flat(), train, SHORT, run=tmp_path)
    with pytest.raises(PointsetError, match="holds a custom model"):
        load_model(tmp_path)


@pytest.mark.slow
def test_a_budget_in_steps_ends_in_the_middle_of_an_epoch(train):
    """The schedule ends with the last step; a whole number of epochs in steps equals these epochs."""
    per_epoch = -(-len(train) // 7)
    fitted = pointset.fit(small(), train, Recipe(steps=per_epoch + 2, batch_size=7, warmup=0.0), progress=False)
    assert [row["epoch"] for row in fitted.history] == [1, 2]
    assert fitted.history[-1]["learning_rate"] == learning_rate(Recipe(warmup=0.0), per_epoch + 1, per_epoch + 2)
    whole = pointset.fit(small(), train, Recipe(steps=2 * per_epoch, batch_size=7, schedule="constant"), progress=False)
    same = pointset.fit(small(), train, Recipe(epochs=2, batch_size=7, schedule="constant"), progress=False)
    assert numbers(whole.history) == numbers(same.history)


@pytest.mark.slow
def test_mixed_precision_learns_the_same_to_its_precision_and_keeps_float32_weights(train):
    recipe = Recipe(epochs=3, batch_size=8, learning_rate=5e-3)
    exact = pointset.fit(small(), train, recipe, progress=False)
    rounded = pointset.fit(small(), train, replace(recipe, precision="bfloat16"), progress=False)
    assert {tensor.dtype for tensor in rounded.model.state_dict().values()} == {torch.float32}
    assert rounded.history[0]["loss"] != exact.history[0]["loss"]
    assert rounded.history[0]["loss"] == pytest.approx(exact.history[0]["loss"], rel=0.02)


@pytest.mark.parametrize(
    "changes",
    [
        {"optimizer": "sgd", "weight_decay": 1e-3},
        {"optimizer": "adam", "weight_decay": 1e-3},
        {"optimizer": "muon", "weight_decay": 1e-3},
        {"patience": 5, "validation": 0.2},
        {"local_features": "upright", "augment": ("rotate-up", "jitter", "cutmix-k")},
    ],
)
def test_a_training_resumes_to_the_last_bit(changes, train, tmp_path, monkeypatch):
    changes = dict(changes)
    network = partial(small, local_features=changes.pop("local_features", "none"))
    recipe = Recipe(epochs=4, batch_size=40, learning_rate=1e-2, **changes)
    whole = pointset.fit(network(), train, recipe)
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        with pytest.raises(StopError):
            pointset.fit(network(), train, recipe, run=tmp_path)
    with pytest.raises(PointsetError, match="is not finished"):
        load_model(tmp_path)
    resumed = pointset.fit(network(), train, recipe, run=tmp_path)
    assert numbers(resumed.history) == numbers(whole.history)
    assert same_weights(resumed.model, whole.model)


def test_the_default_recipe_learns_simple_shapes():
    labels, X = np.arange(180) % 3, np.random.default_rng(0).normal(size=(180, 64, 3))
    X *= np.array([[1, 1, 1], [1, 1, 0.2], [0.3, 0.3, 1]])[labels][:, None]
    train, test = (pointset.from_arrays(X[part], labels[part]) for part in (slice(120), slice(120, None)))
    model = pointset.create_model("rff-max", classes=3, dim=32)
    pointset.fit(model, train, progress=False)
    assert pointset.evaluate(model, test).accuracy > 0.95


def test_a_training_that_ends_at_chance_warns(train):
    with pytest.warns(
        UserWarning, match=r"training ends at chance: the loss 1\.\d+ is near 1\.099 .*: give more steps"
    ):
        pointset.fit(small("rff-max"), train, Recipe(epochs=1, learning_rate=1e-9), progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        recipe = Recipe(epochs=4, batch_size=8, learning_rate=1e-2)
        pointset.fit(small("rff-max", dropout=0.0), train, recipe, progress=False)
        pointset.fit(small("rff-max"), train, replace(recipe, epochs=1, ordered="soft"), progress=False)


class NoMask(Flat):
    """A model whose forward takes points alone."""

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        return self.layer(points.amax(dim=1))


@pytest.mark.filterwarnings("ignore:training ends at chance")
def test_a_model_without_a_mask_is_trained_where_nothing_is_padded(train):
    called = []
    pointset.fit(NoMask(), train, Recipe(epochs=1), callbacks=called.append, progress=False)
    assert len(called) == 1
    assert pointset.evaluate(NoMask(), train).accuracy >= 0
    ragged = pointset.from_arrays([np.arange(15.0 + 3 * row).reshape(-1, 3) for row in range(6)], [0, 1, 2] * 2)
    with pytest.raises(PointsetError, match=r"NoMask\.forward must take \(points, mask\)"):
        pointset.fit(NoMask(), ragged, Recipe(epochs=1), progress=False)


def test_without_epochs_there_are_at_least_1200_steps():
    assert [Recipe().total_steps(per_epoch) for per_epoch in (4, 100)] == [1200, 5000]
    assert [Recipe(epochs=3).total_steps(4), Recipe(epochs=3, min_steps=20).total_steps(4)] == [12, 20]
    assert Recipe(steps=7).total_steps(4) == 7


def with_points(value: float, normalize: str, count: int = 6) -> PointSets:
    """Sets of two classes, with one unusual coordinate."""
    points = torch.randn(count, 8, 3, generator=torch.Generator().manual_seed(0)).numpy()
    points[3, :, 1] = value
    cache = PointCache(points, [f"s{row}" for row in range(count)], np.arange(count) % 2, ["a", "b"])
    return PointSets(cache, DataOptions(points=8, normalize=normalize))


@pytest.mark.parametrize(
    ("value", "normalize", "words"),
    [
        (math.nan, "unit-sphere", "the loss became nan in epoch 1: shape 's3' has a coordinate that is not finite"),
        (math.inf, "none", "shape 's3' has a coordinate that is not finite"),
        (3.3e38, "none", r"shape 's3' has coordinates of 3.3e\+38.* choose normalize"),
    ],
)
def test_a_shape_that_spoils_the_loss_is_named_in_training_and_in_evaluation(value, normalize, words):
    sets, model = with_points(value, normalize), pointset.create_model("isab4-pma", classes=2, dim=16)
    with pytest.raises(PointsetError, match=words.split(": ")[-1]):
        pointset.evaluate(model, sets)
    with pytest.raises(PointsetError, match=words):
        pointset.fit(model, sets, Recipe(epochs=1), progress=False)
    assert with_points(3.3e38, "standardize").point_cache.fault(range(6), "standardize") == ""


def test_sets_in_another_frame_than_those_of_the_training_are_told_of(train):
    """A trained model was 15 points worse on sets of the default normalisation than on its own, in silence."""
    model, other = pointset.fit(small(), train, SHORT, progress=False).model, copy.copy(train)
    pointset.evaluate(model, train)
    other.options = replace(train.options, normalize="none")
    for function in (pointset.evaluate, pointset.evaluation.embed):
        with pytest.warns(UserWarning, match="normalize='none', and the model was trained with"):
            function(model, other)


def test_a_loss_that_is_not_finite_asks_for_a_lower_learning_rate(train):
    with pytest.raises(PointsetError, match="lower learning_rate"):
        pointset.fit(small(), train, Recipe(epochs=1, learning_rate=1e30, batch_size=8), progress=False)


@pytest.mark.parametrize(
    ("model", "sets", "words"),
    [
        (small(), torch.zeros(5, 32, 3), r"train must be .*PointSets, got float32 \[5, 32, 3\]"),
        ("isab4-pma", None, r"model must be a torch module.*create_model\('isab4-pma'\)"),
        (pointset.create_model("rff-max", classes=2), None, r"gives float32 \[16, 2\].*3 classes: .*classes=3"),
        (pointset.create_model("rff-max", classes=4), None, r"gives float32 \[16, 4\].*3 classes"),
    ],
)
def test_untrainable_data_is_an_error_before_anything_is_written(model, sets, words, train, tmp_path):
    with pytest.raises(PointsetError, match=words):
        pointset.fit(model, train if sets is None else sets, SHORT, run=tmp_path / "run", progress=False)
    assert not (tmp_path / "run" / "history.jsonl").exists()


def test_the_best_epoch_is_what_is_kept_and_saved(train, tmp_path):
    recipe = Recipe(epochs=12, batch_size=24, learning_rate=3e-2, validation=0.2, patience=3, schedule="constant")
    fitted = pointset.fit(small("rff-max", norm="batch"), train, recipe, run=tmp_path, progress=False)
    best = best_epoch(fitted.history)
    assert len(fitted.history) == best + 3 < 12, "no longer than it may be without a better one"
    held_out = train.split_validation(0.2, 0)[1]
    found = fitted.history[best - 1]["validation_accuracy"]
    assert pointset.evaluate(fitted.model, held_out).accuracy == found
    assert same_weights(load_model(tmp_path), fitted.model)


def test_a_model_that_is_trained_again_learns_the_classes_of_the_new_data(train):
    recipe = Recipe(epochs=1, validation=0.2)
    model = pointset.fit(small("rff-max"), train, recipe, progress=False).model
    renamed = pointset.from_arrays(train.points, train.labels, train.classes[::-1])
    with pytest.raises(PointsetError, match=r"other classes than the model \(their order\): .*\(X, y, model.classes\)"):
        pointset.evaluate(model, renamed)
    assert pointset.evaluate(pointset.fit(model, renamed, recipe, progress=False).model, renamed).classes


def sizes_of(train, recipe, epoch, seed=0):
    return [batch.points.shape[1] for batch in Classification(train, recipe, seed).batches(epoch)]


def test_draws_are_log_uniform_between_both_bounds_and_come_from_seed_epoch_and_batch_alone():
    drawn = np.array([drawn_size((2, 15), 0, 0, batch) for batch in range(8000)])
    assert (drawn.min(), drawn.max()) == (2, 15)
    for doubling in (2, 4, 8):  # 2 to 3, 4 to 7, 8 to 15: a third each
        share = np.mean((drawn >= doubling) & (drawn < 2 * doubling))
        assert abs(share - 1 / 3) < 4 * math.sqrt(2 / 9 / 8000)
    assert np.mean(drawn == 15) == pytest.approx(math.log(16 / 15) / math.log(8), abs=0.008)
    assert {drawn_size((7, 7), 0, 0, batch) for batch in range(50)} == {7}
    first = [drawn_size((8, 512), 3, 5, batch) for batch in range(20)]
    for other in ((4, 5), (3, 6)):
        assert first != [drawn_size((8, 512), *other, batch) for batch in range(20)]


def test_a_training_sees_one_size_a_batch_without_padding_and_is_validated_at_that_of_the_sets(train):
    model = Recorder(classes=3)
    pointset.fit(model, train, Recipe(epochs=3, batch_size=10, train_points=(5, 64), validation=0.2), progress=False)
    trained, evaluated = ([points.shape[1] for points, _ in given] for given in (model.trained, model.evaluated))
    assert len(trained) == 3 * 10
    assert min(trained) >= 5 < 32 < max(trained) <= 64  # fewer and more than are evaluated
    assert len(set(trained)) > 10
    assert set(evaluated) == {32}
    assert not any(mask is not None for _, mask in model.trained + model.evaluated)


def test_sizes_change_neither_the_order_of_the_shapes_nor_the_batches_of_other_recipes(train):
    plain, sized = (Classification(train, Recipe(batch_size=50, train_points=points), 0) for points in (None, (32, 32)))
    for one, other in zip(plain.batches(1), sized.batches(1), strict=True):
        assert torch.equal(one.points, other.points)
        assert torch.equal(one.labels, other.labels)


def test_the_bounds_move_by_equal_factors_over_epochs_and_steps_alike(train):
    recipe = Recipe(train_points=(2, 4), last_points=(32, 64))
    for bounds in ([(2, 4)], [(2, 4), (32, 64)], [(2, 4), (4, 8), (8, 16), (16, 32), (32, 64)]):
        assert [recipe.sizes(epoch, len(bounds)) for epoch in range(len(bounds))] == bounds
    for length in ({"epochs": 3}, {"steps": 3 * 12 - 5}):  # 120 shapes in batches of 10: the last epoch is cut short
        recipe = Recipe(batch_size=10, train_points=(3, 3), last_points=(48, 48), **length)
        assert [set(sizes_of(train, recipe, epoch)) for epoch in range(3)] == [{3}, {12}, {48}]


def test_sets_of_several_sizes_give_all_they_have_where_the_draw_is_larger():
    offsets = np.array([0, 4, 10, 22, 30])
    points = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)
    cache = PointCache(points, list("abcd"), np.array([0, 1, 0, 1]), ["a", "b"], offsets=offsets)
    sets = PointSets(cache, DataOptions(points=5))
    for batch in Classification(sets, Recipe(batch_size=4, train_points=(8, 8)), 0).batches(0):
        assert sorted(batch.mask.sum(dim=1).tolist()) == [4, 6, 8, 8]
        assert batch.points.shape == (4, 8, 3)
    with pytest.raises(
        PointsetError, match=r"train_points=\[8, 13\] of the recipe is more than the 12 .*: choose at most 12"
    ):
        Classification(sets, Recipe(train_points=(8, 13)), 0)


def test_more_points_than_are_stored_are_refused_before_a_run_or_a_comparison_has_files(train, classifiers, tmp_path):
    recipe = Recipe(train_points=(8, 9), last_points=(8, 99))
    words = r"last_points=\[8, 99\].* 64 .*--last-points \.\.\. 64"
    with pytest.raises(PointsetError, match=words):
        pointset.fit(Recorder(classes=3), train, recipe, run=tmp_path / "run")
    with pytest.raises(PointsetError, match=words):
        pointset.comparison.run_experiment(classifiers(recipe=recipe), tmp_path / "out")
    assert not list(tmp_path.iterdir())


@pytest.fixture
def unbalanced():
    X = np.random.default_rng(0).normal(size=(20, 8, 3))
    return pointset.from_arrays(X, ["chair"] * 16 + ["lamp"] * 4, ["chair", "lamp", "sofa"])


def test_balanced_weights_are_one_on_average_and_rare_classes_weigh_more(unbalanced):
    weights = balanced_weights(unbalanced.labels, 3)
    assert weights[1] / weights[0] == pytest.approx(2)  # the root of 16 / 4
    assert (16 * weights[0] + 4 * weights[1]) / 20 == pytest.approx(1)


def test_the_loss_is_weighted(unbalanced):
    recipe = pointset.Recipe(class_weights="balanced", label_smoothing=0.0)
    objective = Classification(unbalanced, recipe, seed=0)
    batch = next(objective.batches(0))
    output = torch.randn(len(batch.labels), 3, generator=torch.Generator().manual_seed(0))
    weights = balanced_weights(unbalanced.labels, 3)[batch.labels]
    losses = torch.nn.functional.cross_entropy(output, batch.labels, reduction="none")
    torch.testing.assert_close(objective.loss(output, batch).mean, (weights * losses).sum() / weights.sum())


@pytest.mark.parametrize(("name", "value"), [("class_weights", "balanced"), ("ordered", "soft")])
def test_sets_of_two_classes_have_no_weight_and_no_rank(name, value, unbalanced):
    with pytest.raises(pointset.PointsetError, match=f"{name} cannot be used with cutmix"):
        Classification(unbalanced, pointset.Recipe(augment=("cutmix-r",)).changed({name: value}), seed=0)


@pytest.mark.parametrize("weights", ["balanced", None])
def test_shares_of_processes_add_up_to_the_loss_and_the_gradient_of_a_batch(weights, unbalanced):
    recipe = pointset.Recipe(class_weights=weights, device="cpu")
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


GRADES = ["0 new", "1 used", "2 worn", "3 broken"]


@pytest.fixture(scope="module")
def sets():
    """Forty clouds, flatter with each grade."""
    X = np.random.default_rng(0).normal(size=(40, 24, 3)) * [[[1, 1, 4.0 ** -(row % 4)]] for row in range(40)]
    return pointset.from_arrays(X, [row % 4 for row in range(40)], GRADES, normalize="center-standardize")


def test_losses_follow_their_formulas():
    output, label = torch.tensor([[0.5, 2.0, -1.0]]), torch.tensor([1])
    shares = [math.exp(-1), 1.0, math.exp(-1)]
    logs = output[0].log_softmax(0)
    soft = -sum(share / sum(shares) * float(log) for share, log in zip(shares, logs, strict=True))
    assert float(ordered_losses(output, label, "soft")) == pytest.approx(soft)
    passed, not_passed = 1 / (1 + math.exp(-1.5)), 1 / (1 + math.exp(3.0))  # t = 1.5, -3; class 1 passes the first
    thresholds = -(math.log(passed) + math.log(1 - not_passed)) / 2
    assert float(ordered_losses(output, label, "thresholds")) == pytest.approx(thresholds)


def test_as_many_classes_are_passed_as_thresholds():
    output = torch.randn(500, 6, generator=torch.Generator().manual_seed(0))
    logits = ranked(output)
    assert logits.shape == output.shape
    assert torch.equal(logits.argmax(dim=1), (output.diff(dim=1) > 0).sum(dim=1))
    assert not torch.equal(logits.argmax(dim=1), output.argmax(dim=1))


@pytest.mark.parametrize("ordered", ["soft", "thresholds"])
def test_a_run_is_loaded_with_the_predictions_that_it_was_tested_with(ordered, sets, tmp_path):
    recipe = pointset.Recipe(epochs=30, learning_rate=2e-2, ordered=ordered, batch_size=10)
    model = pointset.create_model("rff-mean", classes=4, dim=16, dropout=0.0)
    pointset.fit(model, sets, recipe, run=tmp_path / "run", progress=False)
    result = pointset.evaluate(model, sets)
    assert result.rank_error == np.abs(result.predictions - sets.labels.numpy()).mean()
    assert result.rank_error < 0.5
    loaded = pointset.load_model(tmp_path / "run")
    description = loaded.description
    assert description["recipe"]["ordered"] == ordered
    assert np.array_equal(pointset.evaluate(loaded, sets).logits, result.logits)
