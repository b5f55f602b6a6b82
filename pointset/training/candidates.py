"""How candidates for a choice between classifiers are judged, and how they are multiplied."""

from collections.abc import Mapping

import numpy as np
import torch
from statsmodels.stats.proportion import proportion_confint
from torch import Tensor, nn

from pointset.baselines.models import Mixture
from pointset.data.groups import Groups, number_groups
from pointset.evaluation.calibration import fit_temperature
from pointset.training.baselines import judged

ROWS = ("features-svm", "surface-svm", "embedding-svm")
"""The candidates that are fitted to rows."""
TURNED_ROWS = (*ROWS[:2], "any-svm")
"""The same for shapes that are turned to their axes: networks of upright shapes know little of them."""
NETWORK = "network"


def log_loss(outputs: Tensor, labels: Tensor, groups: Groups) -> float:
    """The log loss of outputs [N, classes] at the best temperature."""
    temperature = fit_temperature(outputs.numpy(), labels.numpy(), groups=groups)
    return float(nn.functional.cross_entropy(outputs / temperature, labels))


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

    A network may be judged on fewer shapes than the others, which are multiplied first, on all that they were judged
    on; then this product and the network, on those that all were judged on.
    """

    def fitted(members: list[Tensor], some: Tensor) -> Mixture:
        own, classes = labels[some], members[0].shape[1]
        given = [values[some] for values in members]
        mixture = Mixture([nn.Identity() for _ in members], classes)
        temperatures = [fit_temperature(each.numpy(), own.numpy(), groups=groups[some.numpy()]) for each in given]
        mixture.temperatures = torch.tensor(temperatures, dtype=torch.float32)
        return mixture.fit(given, own, labels.bincount(minlength=classes))

    rows = [values for name, values in outputs.items() if name != NETWORK]
    product = fitted(rows, shapes & judged(rows[0]))
    if NETWORK in outputs:
        members = [product.combine(rows), outputs[NETWORK]]
        pair = fitted(members, shapes & judged(members[0]) & judged(members[1]))
        share, own = pair.weights
        share = share / pair.temperatures[0]
        product.temperatures = torch.cat([product.temperatures, pair.temperatures[1:]])
        product.weights = torch.cat([share * product.weights, own[None]])
        product.prior = share * product.prior + pair.prior
    return product
