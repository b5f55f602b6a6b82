"""What a choice between models is about, classes or numbers: how candidates are judged, and how they are combined."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from scipy import stats
from scipy.optimize import nnls
from statsmodels.stats.proportion import proportion_confint
from torch import Tensor, nn

from pointset.baselines.models import Mixture
from pointset.data.point_sets import PointSets
from pointset.evaluation.calibration import fit_temperature
from pointset.training.objectives import learn_units
from pointset.zoo.models import as_regressor, create_model, mix
from pointset.zoo.predicting import predict
from pointset.zoo.regressors import Regressor

TOGETHER = 1e3
"""How firmly the weights of a mean of regressors add up to 1."""


class Classes:
    """Candidates that classify, judged by their accuracy and log loss, and multiplied."""

    rows = ("features-svm", "surface-svm", "embedding-svm")
    fewest = 0
    """Fewest training shapes for a network."""

    def __init__(self, train: PointSets) -> None:
        self.labels, self.outputs = train.labels, len(train.classes)

    def predicted(self, model: nn.Module, sets: PointSets) -> Tensor:
        """Outputs [N, outputs] of a model for sets."""
        return predict(model, sets).logits.cpu()

    def scores(self, outputs: Tensor, shapes: Tensor) -> Tensor:
        """How good each prediction is; their mean is the accuracy of a candidate."""
        return (outputs.argmax(dim=1) == self.labels[shapes]).float()

    def loss(self, outputs: Tensor, shapes: Tensor) -> float:
        """The log loss at the best temperature."""
        labels = self.labels[shapes]
        return float(nn.functional.cross_entropy(outputs / fit_temperature(outputs.numpy(), labels.numpy()), labels))

    def margin(self, gain: Tensor) -> float:
        """How much better than the combination a simple candidate must be: a standard error."""
        return float(gain.std()) / len(gain) ** 0.5

    def interval(self, scores: Tensor) -> tuple[float, float]:
        low, high = proportion_confint(int(scores.sum()), max(len(scores), 1), method="wilson")
        return float(low), float(high)

    def combined(self, outputs: Mapping[str, Tensor], fitted: Tensor, shapes: Tensor) -> Tensor:
        """The product of all candidates for some shapes, with the weights that suit others best."""
        return self._product(outputs, fitted).combine([values[shapes] for values in outputs.values()])

    def mix(self, members: Mapping[str, nn.Module], outputs: Mapping[str, Tensor], shapes: Tensor) -> nn.Module:
        """The model that multiplies the members, with the weights that suit their held-out outputs of these shapes."""
        model: Any = mix([members[name] for name in outputs])
        model.model.load_state_dict(self._product(outputs, shapes).state_dict(), strict=False)
        return model

    def _product(self, outputs: Mapping[str, Tensor], shapes: Tensor) -> Mixture:
        labels, members = self.labels[shapes], [values[shapes] for values in outputs.values()]
        mixture = Mixture([nn.Identity() for _ in outputs], self.outputs)
        temperatures = [fit_temperature(values.numpy(), labels.numpy()) for values in members]
        mixture.temperatures = torch.tensor(temperatures, dtype=torch.float32)
        return mixture.fit(members, labels, self.labels.bincount(minlength=self.outputs))


class Numbers:
    """Candidates that predict numbers, judged by R2 and the squared error, and averaged."""

    rows = ("features-ridge", "surface-ridge", "features+surface-ridge")
    fewest = 1000
    """With fewer, networks have larger errors than ridge regression; see scripts/experiments/regression.py."""

    def __init__(self, train: PointSets) -> None:
        units = create_model("rff-max", targets=train.target_names, inputs=train.inputs, dim=4, layers=1)
        assert isinstance(units, Regressor)
        self.outputs, self.units = len(train.target_names), units
        self.line = learn_units(units, train)
        self.truth = units.standardised(train.learned)
        self.variance = self.truth.var(dim=0, correction=0)

    def predicted(self, model: nn.Module, sets: PointSets) -> Tensor:
        """Outputs of a model, which may have been trained on other shapes, in the units of these."""
        assert isinstance(model, Regressor)
        outputs = predict(model, sets.normalized("none")).logits.cpu()
        return self.units.standardised(model.in_units(outputs)).float()

    def scores(self, outputs: Tensor, shapes: Tensor) -> Tensor:
        """1 minus squared error by variance, averaged over the targets; their mean is R2."""
        return (1 - ((outputs - self.truth[shapes]).square() / self.variance).mean(dim=1)).float()

    def loss(self, outputs: Tensor, shapes: Tensor) -> float:
        return -float(self.scores(outputs, shapes).mean())

    def margin(self, gain: Tensor) -> float:
        """A simple candidate that is as good as the combination is better: it is one fit."""
        return 0.0

    def interval(self, scores: Tensor) -> tuple[float, float]:
        """A 95 % interval of R2, by Student's t over the shapes."""
        count = len(scores)
        if count < 2:
            return float("-inf"), float("inf")
        reach = float(stats.t.ppf(0.975, count - 1)) * float(scores.std()) / count**0.5
        return float(scores.mean()) - reach, float(scores.mean()) + reach

    def combined(self, outputs: Mapping[str, Tensor], fitted: Tensor, shapes: Tensor) -> Tensor:
        """See `Classes`: a mean of the candidates."""
        weights = self._weights(outputs, fitted)
        return torch.stack(
            [weight * values[shapes] for weight, values in zip(weights, outputs.values(), strict=True)]
        ).sum(0)

    def mix(self, members: Mapping[str, nn.Module], outputs: Mapping[str, Tensor], shapes: Tensor) -> nn.Module:
        networks: list[Any] = [members[name].networks[0] for name in outputs]  # type: ignore[index]
        model = as_regressor(networks, self.units.targets)
        for name in ("log", "mean", "scale", "slope"):
            setattr(model, name, getattr(self.units, name))
        model.weights = self._weights(outputs, shapes)
        return model

    def calibrate(self, model: nn.Module, outputs: Tensor) -> None:
        """Make intervals from held-out outputs, with NaN for shapes that were not held out."""
        assert isinstance(model, Regressor)
        tested = outputs.isfinite().all(dim=1)
        model.calibrate(outputs[tested], self.units.in_units(self.truth[tested]))

    def _weights(self, outputs: Mapping[str, Tensor], shapes: Tensor) -> Tensor:
        """Weights of a mean with the smallest squared error: none is negative, and they add up to 1."""
        residuals = (self.truth - self.line)[shapes].flatten()
        columns = torch.stack([(values - self.line)[shapes].flatten() for values in outputs.values()], dim=1)
        firm = TOGETHER * columns.abs().amax().clamp(min=1)
        left = torch.cat([columns, firm * torch.ones(1, len(outputs))]).double().numpy()
        weights = nnls(left, np.append(residuals.double().numpy(), float(firm)))[0]
        return torch.from_numpy(weights / weights.sum()).float()
