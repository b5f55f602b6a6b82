"""How candidates for a choice between models are judged, and how they are combined."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from statsmodels.stats.proportion import proportion_confint
from torch import Tensor, nn

from pointset.baselines.models import Mixture
from pointset.data.groups import Groups, number_groups
from pointset.data.point_sets import PointSets
from pointset.evaluation.calibration import fit_temperature
from pointset.zoo.models import mix
from pointset.zoo.predicting import predict


class Classes:
    """Candidates that classify, judged by their accuracy and log loss, and multiplied."""

    rows = ("features-svm", "surface-svm", "embedding-svm")

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

    def interval(self, scores: Tensor, groups: Groups, trained: float) -> tuple[float, float]:
        """The 95 % interval (Wilson) of the accuracy on new shapes, of fits to `trained` shapes without some folds.

        It counts as many shapes as would vary as the groups do. The fits vary too and share shapes, so that the
        variance is 1 + tested / trained times as large (Nadeau and Bengio 2003, "Inference for the generalization
        error"): 2.25 times for five folds.
        """
        count, mean = max(len(scores), 1), float(scores.mean()) if len(scores) else 0.0
        sums = np.bincount(number_groups(groups.tolist()), weights=scores.numpy() - mean)
        grouped = float(np.square(sums).sum()) * len(sums) / max(len(sums) - 1, 1)  # the variance of the sum
        alone = count * mean * (1 - mean)
        effective = count * min(1.0, alone / grouped) if grouped > 0 else min(count, max(len(sums), 1))
        effective /= 1 + len(scores) / trained
        low, high = proportion_confint(mean * effective, effective, method="wilson")
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
