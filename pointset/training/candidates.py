"""Candidates for a choice between classifiers: their held-out outputs, how these are judged, and their product."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from statsmodels.stats.proportion import proportion_confint
from torch import Tensor, nn

from pointset.baselines.models import Mixture
from pointset.data.groups import Groups, assign_folds, number_groups
from pointset.evaluation.calibration import fit_temperature
from pointset.training.baselines import FOLDS, judged
from pointset.zoo.models import MIXTURE

OWN = ("features-svm", "surface-svm")
"""The candidates that are fitted to rows which know nothing of other shapes."""
ROWS = (*OWN, "any-svm", "embedding-svm")
"""All that are fitted to rows: the others are embeddings of trained networks."""
TURNED_ROWS = (*OWN, "any-svm")
"""The same for shapes that are turned to their axes: networks of upright shapes know little of them."""
NETWORK = "network"
PAIR_SPREAD = 0.3
"""The spread (see `Mixture.fit`) of the weights of a network and the product of the others."""
MANY = 100
"""On so many shapes, a network that is never wrong is taken although the mixture is not wrong either."""


@dataclass(frozen=True)
class Candidate:
    """A way to predict the classes of shapes, and how it did on shapes that it was not fitted to."""

    name: str
    accuracy: float
    low: float
    """Of the 95 % interval for new shapes (Wilson, Nadeau and Bengio), as is `high`."""
    high: float
    tested: int
    """Number of held-out training shapes."""
    seconds: float
    """Core-seconds for the held-out fits; of a resumed training, those of the network by all of its processes."""
    chosen: bool = False
    seen: float | None = None
    """Accuracy on held-out shapes of whose group others were trained on, where there are groups; of fits to rows."""
    loss: float | None = None
    """Log loss on the held-out shapes, at the best temperature."""


class HeldOut:
    """What candidates say of shapes that they were not fitted to, and what follows from it."""

    def __init__(self, labels: Tensor, groups: Groups, rows: Sequence[str], seed: int) -> None:
        """Begin without candidates.

        Args:
            labels: the classes of all shapes, [N].
            groups: the numbers of their groups, [N].
            rows: names of the candidates that are fitted to rows, which are the members of the product.
            seed: of the parts to which the product is fitted in turn.
        """
        self.labels, self.groups, self.rows, self.seed = labels, groups, tuple(rows), seed
        self.members = [*rows]
        self.outputs: dict[str, Tensor] = {}
        """Held-out outputs [N, classes] of each candidate, NaN for the shapes on which it was not judged."""

    def add_product(self) -> None:
        """Judge the product of the candidates, in which the network is unless it clearly makes it worse.

        Where the network was not judged, they are those of the product without it. Where nothing is held out, the
        product is one of embeddings, which need the fewest shapes.
        """
        rows = self.outputs[MIXTURE] = self.of_product()
        if not judged(rows).any():
            self.members = [name for name in self.rows if name not in OWN]
        elif NETWORK in self.outputs:
            self.members.append(NETWORK)
            mixed = self.of_product()
            common = judged(mixed)
            if common.any() and self.gain(rows, mixed) <= 0:
                self.outputs[MIXTURE] = torch.where(common[:, None], mixed, rows)
            else:
                self.members.remove(NETWORK)

    def of_product(self) -> Tensor:
        """Outputs of the product of the members, fitted to other shapes; NaN where one of them was not judged."""
        members = {name: self.outputs[name] for name in self.members}
        common = torch.stack([judged(outputs) for outputs in members.values()]).all(dim=0)
        mixed = torch.full_like(self.outputs[self.rows[0]], torch.nan)
        parts = torch.full((len(mixed),), -1)  # a single fold of the network has parts, too
        own = self.groups_of(common)
        parts[common] = torch.from_numpy(assign_folds(own, [0] * len(own), self.seed, FOLDS))
        for part in range(FOLDS):
            inside = parts == part
            if inside.any():
                product = self.product(~inside)
                mixed[inside] = product.combine([outputs[inside] for outputs in members.values()])
        return mixed

    def product(self, shapes: Tensor) -> Mixture:
        """The product of the members that suits their held-out outputs of these shapes, bool [N], best."""
        members = {name: self.outputs[name] for name in self.members}
        return fit_product(members, self.labels, shapes, self.groups)

    def best(self) -> tuple[str, str]:
        """The product, unless the log loss of another candidate is smaller by a standard error, and why.

        On few shapes a single one is soon better by chance; a standard error is the margin of Breiman et al. 1984,
        "Classification and Regression Trees", section 3.4.3, too. A network, which can be drawn and exported, is also
        taken if neither is wrong on any of many shapes.
        """
        if not judged(self.outputs[MIXTURE]).any():
            return MIXTURE, f"of {' and '.join(self.members)}; no shape can be held out to choose by"
        if NETWORK in self.outputs and self._never_wrong():
            return NETWORK, f"neither it nor the mixture is wrong on any of {MANY} shapes or more, and it can be drawn"
        gains = {name: self.gain(own, self.outputs[MIXTURE]) for name, own in self.outputs.items() if name != MIXTURE}
        best = max(gains, key=gains.__getitem__)
        if gains[best] > 0:
            return best, "its log loss is smaller than that of the mixture by a standard error"
        return MIXTURE, "no other log loss is smaller by a standard error"

    def gain(self, outputs: Tensor, others: Tensor) -> float:
        """How much more than a standard error the log loss is below that of other outputs, on the shapes of both."""
        common = judged(outputs) & judged(others)
        if not common.any():
            return 0.0
        smaller = self.losses(others, common) - self.losses(outputs, common)
        mean, error = mean_with_error(smaller, self.groups_of(common))
        return mean - error

    def _never_wrong(self) -> bool:
        """Whether the network and the product are right on all shapes that both were judged on, and these are many."""
        both = [self.outputs[name] for name in (NETWORK, MIXTURE)]
        common = judged(both[0]) & judged(both[1])
        return int(common.sum()) >= MANY and all(bool(self.right(outputs, common).all()) for outputs in both)

    def candidate(self, name: str, trained: float, seconds: float, seen: float | None, chosen: bool) -> Candidate:
        """How a candidate did, whose fits were to so many shapes; other arguments are as of `Candidate`."""
        outputs, tested = self.outputs[name], judged(self.outputs[name])
        right = self.right(outputs, tested)
        interval = accuracy_interval(right, self.groups_of(tested), trained)
        accuracy = float(right.sum()) / max(len(right), 1)
        loss = float(self.losses(outputs, tested).mean()) if len(right) else None
        return Candidate(name, accuracy, *interval, len(right), seconds, chosen, seen, loss)

    def temperature(self, name: str) -> float:
        """The temperature that suits the outputs of a candidate best; 1 if it was not judged."""
        tested = judged(self.outputs[name])
        return self._temperature(self.outputs[name], tested) if tested.any() else 1.0

    def _temperature(self, outputs: Tensor, shapes: Tensor) -> float:
        logits, labels = outputs[shapes].numpy(), self.labels[shapes].numpy()
        return fit_temperature(logits, labels, groups=self.groups_of(shapes))

    def right(self, outputs: Tensor, shapes: Tensor) -> Tensor:
        """1.0 for each of these shapes, bool [N], whose class is right by the outputs [N, classes], else 0.0."""
        return (outputs[shapes].argmax(dim=1) == self.labels[shapes]).float()

    def groups_of(self, shapes: Tensor) -> Groups:
        """The groups of these shapes, bool [N]."""
        return self.groups[shapes.numpy()]

    def losses(self, outputs: Tensor, shapes: Tensor) -> Tensor:
        """The log losses of the outputs of these shapes, bool [N], at their best temperature."""
        logits = outputs[shapes] / self._temperature(outputs, shapes)
        return nn.functional.cross_entropy(logits, self.labels[shapes], reduction="none")


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
