"""How candidates for a choice between classifiers are judged, and how they are multiplied."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from statsmodels.stats.proportion import proportion_confint
from torch import Tensor, nn

from pointset.baselines.models import Mixture
from pointset.data.groups import Groups, number_groups
from pointset.evaluation.calibration import fit_temperature
from pointset.training.baselines import judged

OWN = ("features-svm", "surface-svm")
"""The candidates that are fitted to rows which know nothing of other shapes."""
ROWS = (*OWN, "any-svm", "embedding-svm")
"""All that are fitted to rows: the others are embeddings of trained networks."""
TURNED_ROWS = (*OWN, "any-svm")
"""The same for shapes that are turned to their axes: networks of upright shapes know little of them."""
NETWORK = "network"
PAIR_SPREAD = 0.3
"""The spread (see `Mixture.fit`) of the weights of a network and the product of the others."""


def log_losses(outputs: Tensor, labels: Tensor, groups: Groups) -> Tensor:
    """The log loss [N] of each of the outputs [N, classes] at the best temperature of all."""
    temperature = fit_temperature(outputs.numpy(), labels.numpy(), groups=groups)
    return nn.functional.cross_entropy(outputs / temperature, labels, reduction="none")


def mean_with_error(values: Tensor, groups: Groups) -> tuple[float, float]:
    """The mean, and its standard error where shapes of one group vary together: infinite for a single group."""
    mean = values.double().mean()
    sums = np.bincount(number_groups(groups.tolist()), weights=(values - mean).numpy())
    if len(sums) < 2:
        return float(mean), float("inf")
    return float(mean), float(np.linalg.norm(sums) * np.sqrt(len(sums) / (len(sums) - 1)) / len(values))


def accuracy_interval(right: Tensor, groups: Groups, trained: float) -> tuple[float, float]:
    """The 95 % interval (Wilson) of the accuracy on new shapes, of fits to `trained` shapes without some folds.

    It counts as many shapes as would vary as the groups do, with one more group of the usual size, all wrong: few
    errors do not tell how they stand together. The fits vary too and share shapes, so that the variance is
    1 + tested / trained times as large (Nadeau and Bengio 2003, "Inference for the generalization error"): 2.25 times
    for five folds.
    """
    if not len(right):
        return 0.0, 1.0
    count, mean = len(right), float(right.mean())
    sums = np.bincount(number_groups(groups.tolist()), weights=right.numpy() - mean)
    usual = count / len(sums)  # shapes of a group
    grouped = (float(np.square(sums).sum()) + usual**2) * len(sums) / max(len(sums) - 1, 1)  # the variance of the sum
    alone = count * mean * (1 - mean) + usual
    effective = count * min(1.0, alone / grouped) / (1 + count / trained)
    low, high = proportion_confint(mean * effective, effective, method="wilson")
    return float(low), float(high)


def fit_product(outputs: Mapping[str, Tensor], labels: Tensor, shapes: Tensor, groups: Groups) -> Mixture:
    """The product of candidates, by their outputs [N, classes], with the weights that suit some shapes, bool [N], best.

    A network is judged on fewer shapes than the others, which are multiplied first, on all that they were judged on;
    then this product and the network, on those that all were judged on. These are too few to tell much of its weight,
    which stays near that of one of all members.
    """
    rows = [values for name, values in outputs.items() if name != NETWORK]
    counts = labels.bincount(minlength=rows[0].shape[1])

    def temperature(values: Tensor, some: Tensor) -> float:
        return fit_temperature(values[some].numpy(), labels[some].numpy(), groups=groups[some.numpy()])

    def fitted(members: list[Tensor], temperatures: list[float], some: Tensor, *expectation: Any) -> Mixture:
        mixture = Mixture([nn.Identity() for _ in members], len(counts))
        mixture.temperatures = torch.tensor(temperatures, dtype=torch.float32)
        return mixture.fit([values[some] for values in members], labels[some], counts, *expectation)

    some = shapes & judged(rows[0])
    product = fitted(rows, [temperature(values, some) for values in rows], some)
    certain = max(1.0, temperature(product.combine(rows), some))  # weights, too, want certainty if no shape is wrong
    product.weights, product.prior = product.weights / certain, product.prior / certain
    if NETWORK in outputs:
        network, share = outputs[NETWORK], 1 / len(outputs)
        some = some & judged(network)
        temperatures = [1.0, temperature(network, some)]
        pair = fitted([product.combine(rows), network], temperatures, some, (1 - share, share), PAIR_SPREAD)
        product.temperatures = torch.cat([product.temperatures, pair.temperatures[1:]])
        product.prior = pair.weights[0] * product.prior + pair.prior
        product.weights = torch.cat([pair.weights[0] * product.weights, pair.weights[1:]])
    return product
