"""The papers' set problems: sets, models of rows, losses and metrics."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal, poisson
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from pointset import ModelOptions, PointsetError, check_symmetry
from pointset.data.batches import epoch_generator
from pointset.nn import AttentionOptions
from pointset.tasks import SetBatch, experiments
from pointset.tasks.clustering import (
    LEAST_SCALE,
    GaussianMixtures,
    PositionedEquivariantLayer,
    draw_elements,
    draw_mixtures,
    em_step,
    mean_log_likelihood,
    mixture_of,
)
from pointset.tasks.digits import digits, poisson_loss
from pointset.tasks.set_problem import row_options

SMALL = ModelOptions(dim=16, attention=AttentionOptions(heads=2), dropout=0.0)
TASKS = {name: make() for name, make in experiments.TASKS.items() if name != "classification"}
ANOMALY, CLUSTERING, COUNTING, MAXIMA = (TASKS[name] for name in sorted(TASKS))


def draw(task, count: int, seed: int = 0) -> SetBatch:
    return task.draw(count, epoch_generator(seed, 0))


@pytest.mark.parametrize("name", TASKS)
def test_test_sets_are_fixed_and_not_training_sets(name):
    first, again = TASKS[name].test_sets(), experiments.TASKS[name]().test_sets()
    shapes = {
        "max-regression": [(1000, size, 1) for size in range(1, 11)],
        "clustering": [(10, batch.X.shape[1], 2) for batch in first[:100]],
        "counting": [(250, 10, 64)] * 8,
        "anomaly": [(250, 8, 64)] * 8,
    }
    assert [tuple(batch.X.shape) for batch in first] == shapes[name]
    assert all(torch.equal(one.X, other.X) for one, other in zip(first, again, strict=True))
    seen = {batch.X.flatten()[:9].numpy().tobytes() for batch in first}
    drawn = [draw(TASKS[name], 100, seed) for seed in range(20)]
    assert not any(batch.X.flatten()[:9].numpy().tobytes() in seen for batch in drawn)


def test_maxima_are_those_of_sets_of_uniform_size_and_numbers():
    batches = [MAXIMA.draw(5, epoch_generator(7, step)) for step in range(2000)]
    counts = torch.bincount(torch.tensor([batch.X.shape[1] for batch in batches]), minlength=11)
    assert counts[0] == 0
    assert counts[1:].tolist() == pytest.approx([200] * 10, abs=5 * 14)
    numbers = torch.cat([batch.X.flatten() for batch in batches])
    assert (numbers.min() >= 0) & (numbers.max() <= 100)
    assert torch.histc(numbers, bins=4, min=0, max=100) / len(numbers) == pytest.approx([0.25] * 4, abs=0.01)
    assert all(batch.target["maximum"].equal(batch.X.amax(dim=(1, 2))) for batch in batches)


def test_in_an_anomaly_seven_belong_together_and_the_anomaly_is_anywhere_and_of_any_class():
    batch = draw(ANOMALY, 4000)
    labels, places = batch.target["labels"], batch.target["anomaly"]
    anomalies = labels.gather(1, places[:, None])
    assert ((labels == anomalies).sum(dim=1) == 1).all()
    assert all(len(row.unique()) == 2 for row in labels)
    assert torch.bincount(places).tolist() == pytest.approx([500] * 8, abs=5 * 21)
    assert torch.bincount(anomalies[:, 0]).tolist() == pytest.approx([400] * 10, abs=5 * 19)
    assert torch.bincount(labels.flatten()).min() > 0.8 * 3200


def classes_of(batch: SetBatch) -> list[int]:
    return [len(row[keep].unique()) for row, keep in zip(batch.target["labels"], batch.mask, strict=True)]


def test_sets_to_count_have_as_many_classes_as_they_say_uniform_below_their_sizes():
    batch = draw(COUNTING, 4000)
    sizes, counts = batch.mask.sum(dim=1), batch.target["count"]
    assert classes_of(batch) == counts.tolist()
    assert (batch.X[~batch.mask] == 0).all()
    assert (batch.target["labels"] == -1).equal(~batch.mask)
    assert torch.bincount(sizes, minlength=11).tolist() == pytest.approx([0] * 6 + [800] * 5, abs=5 * 26)
    assert sizes.min() == 6
    for size in range(6, 11):
        of_size = counts[sizes == size]
        shares = torch.bincount(of_size, minlength=11)[1 : size + 1] / len(of_size)
        assert shares.tolist() == pytest.approx([1 / size] * size, abs=5 * math.sqrt(1 / size / 700))
        assert of_size.max() == size


def test_images_are_those_of_their_labels_and_of_their_split():
    batch, test = draw(COUNTING, 20), COUNTING.test_sets()[0]
    train = zip(digits("train").pixels, digits("train").labels, strict=True)
    images = {row.numpy().tobytes(): label for row, label in train}
    for image, label in zip(batch.X[batch.mask], batch.target["labels"][batch.mask], strict=True):
        assert images[image.numpy().tobytes()] == label
    assert not any(image.numpy().tobytes() in images for image in test.X[test.mask])


def targets(name: str, *values) -> list[SetBatch]:
    return [SetBatch(torch.zeros(len(value), 3, 1), target={name: torch.tensor(value)}) for value in values]


METRICS = {
    # Batches of unequal size, so that a mean of means would differ: (1 + 3 + 0 + 0 + 6) / 5 = 2.
    "max-regression": (
        [torch.tensor([[11.0], [17.0]]), torch.tensor([[5.0], [6.0], [13.0]])],
        targets("maximum", [10.0, 20.0], [5.0, 6.0, 7.0]),
        {"MAE": 2.0},
    ),
    # Rates 1.2, 2.7, 5.4 and 4.1: rounded 1, 3, 5 and 4, modes 1, 2, 5 and 4; true 1, 3, 7 and 4.
    "counting": (
        [torch.tensor(rates).expm1().log()[:, None] for rates in ([1.2, 2.7, 5.4], [4.1])],
        targets("count", [1, 3, 7], [4]),
        {"accuracy": 0.75, "accuracy of the mode": 0.5, "MAE": 0.5},
    ),
    # Scores .7 .2 .1 (stranger .7) and .6 .3 .1 (stranger .3): of 2 x 4 pairs stranger and other, 7 are in order; the
    # average precision is (1/1 + 2/3) / 2.
    "anomaly": (
        [torch.tensor([scores]).log()[:, :, None] for scores in ([0.7, 0.2, 0.1], [0.6, 0.3, 0.1])],
        targets("anomaly", [0], [1]),
        {"AUROC": 7 / 8, "AUPR": (1 + 2 / 3) / 2, "accuracy": 0.5},
    ),
}


@pytest.mark.parametrize("name", METRICS)
def test_metrics_by_hand(name):
    outputs, batches, expected = METRICS[name]
    assert TASKS[name].score(outputs, batches) == pytest.approx(expected)


def test_losses():
    outputs, batches, _ = METRICS["max-regression"]
    assert float(MAXIMA.loss(outputs[0], batches[0])) == 2.0
    outputs, batches, _ = METRICS["anomaly"]
    assert float(ANOMALY.loss(outputs[0], batches[0])) == pytest.approx(-math.log(0.7))
    batches = [draw(CLUSTERING, count) for count in (2, 5)]  # a mean of means would differ
    outputs = [torch.randn(count, 20, generator=torch.Generator().manual_seed(1)) for count in (2, 5)]
    before = [mixture_of(output).log_likelihood(batch.X) for output, batch in zip(outputs, batches, strict=True)]
    after = [em_step(batch.X, mixture_of(output)) for output, batch in zip(outputs, batches, strict=True)]
    metrics = CLUSTERING.score(outputs, batches)
    assert CLUSTERING.loss(outputs[0], batches[0]).item() == pytest.approx(-before[0].mean().item())
    assert metrics["LL0"] == pytest.approx(torch.cat(before).mean().item())
    assert metrics["LL0"] < metrics["LL1"] == pytest.approx(mean_log_likelihood(after, batches))


def test_poisson_is_scipys():
    output, counts = torch.linspace(-3, 12, 40)[:, None].double(), torch.arange(40) % 11
    rates = torch.nn.functional.softplus(output[:, 0]).numpy()
    assert float(poisson_loss(output, counts)) == pytest.approx(-poisson.logpmf(counts.numpy(), rates).mean(), rel=1e-6)
    modes = [max(range(30), key=lambda count: poisson.pmf(count, rate)) for rate in rates]
    assert COUNTING.score([output], targets("count", modes))["accuracy of the mode"] == 1.0


def test_poisson_stays_finite_where_the_rate_underflows():
    """For the rate e^x, the loss is e^x - count x + log(count!)."""
    output = torch.tensor([[-120.0], [-16.5], [-15.5]], requires_grad=True)
    loss = poisson_loss(output, torch.tensor([3, 2, 1]))
    expected = (3 * 120.0 + math.log(6) + 2 * 16.5 + math.log(2) + 15.5) / 3
    assert loss.item() == pytest.approx(expected, rel=1e-6)
    loss.backward()
    torch.testing.assert_close(output.grad[:, 0] * 3, torch.tensor([-3.0, -2.0, -1.0]), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_the_published_oracle_is_the_likelihood_of_the_truth():
    """The published value is -1.4726; the standard error of ours is 0.007."""
    batches = CLUSTERING.test_sets()
    truth = [GaussianMixtures(**batch.target) for batch in batches]
    assert mean_log_likelihood(truth, batches) == pytest.approx(-1.4726, abs=0.02)


def fc(*widths: int) -> int:
    """The number of parameters of linear layers with biases."""
    return sum((before + 1) * after for before, after in itertools.pairwise(widths))


def mab(dim_query: int, dim_key: int, dim: int) -> int:
    """The number of parameters of a MAB in the released code: Q, K, V and one layer after them."""
    return fc(dim_query, dim) + 2 * fc(dim_key, dim) + fc(dim, dim)


def isab(dim_in: int, dim: int, m: int) -> int:
    return m * dim + mab(dim, dim_in, dim) + mab(dim_in, dim, dim)


D = 128
PARAMETERS = {
    "clustering": (
        D,
        {
            "rFF": fc(2, D, D, D, D),
            "rFFp-mean": fc(2, D, D, D, D) + 2 * D + 3 * D * D,
            "rFFp-max": fc(2, D, D, D, D) + 2 * D + 3 * D * D,
            "SAB": mab(2, 2, D) + mab(D, D, D),
            "ISAB16": isab(2, D, 16) + isab(D, D, 16),
        },
        {"mean": fc(D, D, D, D, 20), "max": fc(D, D, D, D, 20), "PMA4": 4 * D + mab(D, D, D) + mab(D, D, D) + fc(D, 5)},
    ),
    "max-regression": (
        64,
        {"rFF": fc(1, 64, 64, 64, 64), "SAB": mab(1, 1, 64) + mab(64, 64, 64)},
        {**dict.fromkeys(("mean", "sum", "max"), fc(64, 64, 1)), "PMA": 64 + mab(64, 64, 64) + fc(64, 1)},
    ),
}
ROWS = [(name, row) for name, task in TASKS.items() for row in task.rows]


@pytest.mark.parametrize(("name", "row"), [one for one in ROWS if one[0] in PARAMETERS], ids=": ".join)
def test_models_are_those_of_the_papers_tables(name, row):
    width, encoders, poolings = PARAMETERS[name]
    encoder, pooling = row.split(" + ")
    model = TASKS[name].build(row, ModelOptions(dim=width, dropout=0.0), seed=0)
    assert sum(parameter.numel() for parameter in model.parameters()) == encoders[encoder] + poolings[pooling]
    if name == "max-regression":  # none after the last layer of rFF
        relus = sum(isinstance(module, torch.nn.ReLU) for module in model.modules())
        assert relus == (3 + 1 if encoder == "rFF" else 3)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "row"), ROWS, ids=": ".join)
def test_the_papers_models_are_functions_of_sets_whose_gradient_reaches_every_parameter(name, row):
    task = TASKS[name]
    model, batch = task.build(row, SMALL, seed=0), draw(task, 4)
    task.loss(model(batch.X, batch.mask), batch).backward()
    idle = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert [name for name in idle if not name.endswith("key.bias")] == [], "a key's bias cancels where queries are few"
    scores = name == "anomaly"  # one for each element: minus infinity for padding
    symmetry = check_symmetry(model, sizes=(1, 8), mask=not scores)
    assert symmetry.kind == ("equivariant" if scores else "invariant")
    assert symmetry.worst < 1e-4


@pytest.mark.parametrize("row", ["ISAB4 + max+mean", "rffp-pma2", "rff-aggr.softmax", "none-dumlp3"])
@pytest.mark.parametrize("name", TASKS)
def test_every_encoder_and_pooling_is_a_row_of_every_task(name, row):
    task = TASKS[name]
    batch = draw(task, 2)
    task.loss(task.build(row, SMALL, seed=0)(batch.X, batch.mask), batch).backward()
    assert {"dim", "dropout"} <= row_options(row)
    with pytest.raises(PointsetError, match="'dgcnn' does not name an encoder and a pooling"):
        task.build("dgcnn", SMALL, seed=0)


def test_a_task_with_its_own_head_refuses_options_of_a_classifiers_head():
    options = {"head_dim": 5, "head_norm": "batch", "pooled_dropout": 0.3}
    for task in TASKS.values():
        assert not options.keys() & row_options("rff-max")
        with_them, without = (
            task.build("rff-max", ModelOptions.from_dict({"dim": 8, **given}), 0) for given in (options, {})
        )
        assert str(with_them) == str(without)


def test_equivariant_layers_see_where_a_set_is():
    layer = PositionedEquivariantLayer(2, 6, "mean").double()
    X = torch.randn(3, 4, 2, dtype=torch.float64)
    expected = (layer.gamma(X) - X.mean(dim=1, keepdim=True) @ layer.lambda_.weight.T).clamp(min=0)
    torch.testing.assert_close(layer(X), expected)
    assert (layer(X + 1.0) - layer(X)).abs().max() > 0.01
    assert check_symmetry(layer, dim=2).worst < 1e-9


def test_padding_of_anomalies_changes_nothing_and_gets_no_probability():
    model = ANOMALY.build("SAB + PMA", SMALL, seed=0)
    X, mask = draw(ANOMALY, 3).X, torch.arange(11) < 8
    output = model(torch.cat([X, 9 * torch.rand(3, 3, 64)], dim=1), mask.expand(3, -1))
    assert torch.allclose(output[:, :8], model(X), atol=1e-5)
    assert output.softmax(dim=1)[:, 8:].abs().max() == 0
    X[:, 7] = torch.rand(3, 64)
    assert not torch.allclose(model(X)[:, :7], output[:, :7]), "an element's logit depends on the others"


def test_digits_are_split_by_image_class_by_class():
    pixels, labels = load_digits(return_X_y=True)
    whole = {row.tobytes(): label for row, label in zip(pixels, labels, strict=True)}
    assert len(whole) == 1797, "no two images are the same, so that they can be told apart"
    for part in (digits("train"), digits("test")):
        assert (part.pixels.min(), part.pixels.max()) == (0, 1)
        for row, label in zip((part.pixels * 16).double().numpy(), part.labels.tolist(), strict=True):
            assert whole.pop(row.tobytes()) == label, "in one split, with its own label"
    assert whole == {}
    assert torch.bincount(digits("test").labels).tolist() == [int(n) // 5 for n in np.bincount(labels)]


SETS, SIZE, COMPONENTS, WIDTH = 2, 7, 3, 5


def test_a_mixture_is_read_from_the_output_of_a_model():
    softplus_of_zero = np.log(2)
    output = torch.tensor([[[0.0, 1.0, 2.0, 0.0, 30.0], [np.log(3.0), -1.0, -2.0, -200.0, 0.0]]])
    found = GaussianMixtures.from_output(output)
    assert found.log_proportions.exp().tolist() == [pytest.approx([0.25, 0.75])]
    assert found.means.tolist() == [[[1.0, 2.0], [-1.0, -2.0]]]
    expected = torch.tensor([[softplus_of_zero, 30.0], [0.0, softplus_of_zero]]) + LEAST_SCALE
    torch.testing.assert_close(found.scales[0], expected, check_dtype=False)
    assert found.scales.min() > 0


def test_densities_are_those_of_scipy():
    generator = torch.Generator().manual_seed(0)
    output = torch.randn(SETS, COMPONENTS, 1 + 2 * WIDTH, generator=generator, dtype=torch.float64)
    X = torch.randn(SETS, SIZE, WIDTH, generator=generator, dtype=torch.float64)
    mixture, joint = GaussianMixtures.from_output(output), np.empty((SETS, SIZE, COMPONENTS))
    for b, j in itertools.product(range(SETS), range(COMPONENTS)):
        normal = multivariate_normal(mixture.means[b, j], np.diag(mixture.scales[b, j].square()))
        joint[b, :, j] = mixture.log_proportions[b, j].item() + normal.logpdf(X[b])
    np.testing.assert_allclose(mixture.log_joint(X), joint, rtol=1e-10)
    each = np.logaddexp.reduce(joint, axis=2)
    np.testing.assert_allclose(mixture.log_likelihood(X), each.mean(axis=1), rtol=1e-10)
    assert mixture.log_joint(X).argmax(dim=2).tolist() == joint.argmax(axis=2).tolist()


def test_gradients_are_finite_where_a_scale_is_as_small_as_it_gets():
    output = torch.tensor([[[0.0, 3.0, 3.0, -300.0, -300.0], [0.0, 0.0, 0.0, 0.0, 0.0]]], requires_grad=True)
    GaussianMixtures.from_output(output).log_likelihood(torch.zeros(1, 3, 2)).sum().backward()
    assert output.grad.isfinite().all()


def test_draws_have_the_distribution_of_the_paper():
    generator = torch.Generator().manual_seed(0)
    mixture = draw_mixtures(4000, generator)
    proportions = mixture.log_proportions.exp()
    assert mixture.means.shape == (4000, 4, 2)
    torch.testing.assert_close(proportions.sum(dim=1), torch.ones(4000))
    # Dirichlet(1, 1, 1, 1): mean 1/4, variance 3/80, and P(pi_1 > t) = (1 - t)^3.
    assert proportions.mean(dim=0).tolist() == pytest.approx([0.25] * 4, abs=0.01)
    assert proportions.var(dim=0).tolist() == pytest.approx([3 / 80] * 4, rel=0.08)
    assert (proportions > 0.5).double().mean(dim=0).tolist() == pytest.approx([0.125] * 4, abs=0.02)
    assert mixture.means.min() >= -4
    assert mixture.means.max() <= 4
    assert mixture.means.mean(dim=(0, 1)).tolist() == pytest.approx([0, 0], abs=0.06)
    assert mixture.means.var(dim=(0, 1)).tolist() == pytest.approx([64 / 12] * 2, rel=0.05)
    torch.testing.assert_close(mixture.scales, torch.full((4000, 4, 2), 0.3))
    sizes = {draw(CLUSTERING, 1, seed).X.shape[1] for seed in range(40)}
    assert 100 <= min(sizes) < 150
    assert 450 < max(sizes) <= 500


def test_a_step_of_em_is_scikit_learns():
    generator = torch.Generator().manual_seed(0)
    X = draw_elements(draw_mixtures(3, generator), 60, generator).double()
    means = X[:, :4] + torch.randn(3, 4, 2, generator=generator)
    start = GaussianMixtures(torch.full((3, 4), 0.25).log().double(), means, torch.full((3, 4, 2), 0.8).double())
    found = em_step(X, start)
    for place in range(3):
        begin = {"means_init": means[place].numpy(), "precisions_init": np.full((4, 2), 0.8**-2)}
        once = {"covariance_type": "diag", "reg_covar": LEAST_SCALE**2, "max_iter": 1}
        theirs = GaussianMixture(4, weights_init=np.full(4, 0.25), **begin, **once)
        with pytest.warns(ConvergenceWarning):
            theirs.fit(X[place].numpy())
        np.testing.assert_allclose(found.log_proportions[place].exp(), theirs.weights_, rtol=1e-6)
        np.testing.assert_allclose(found.means[place], theirs.means_, rtol=1e-6)
        np.testing.assert_allclose(found.scales[place], np.sqrt(theirs.covariances_), rtol=1e-6)
    assert (found.log_likelihood(X) > start.log_likelihood(X)).all()
