"""Fine-tuning: a trained model for other classes and another upward axis."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from pointset.data.axes import UP_TO_Z
from pointset.data.local_features import rotate_local_features
from pointset.data.point_sets import PointSets
from pointset.errors import PointsetError
from pointset.zoo.classifiers import SetClassifier
from pointset.zoo.models import build_model


def start_from(trained: nn.Module, sets: PointSets, *, seed: int = 0, start: str = "") -> nn.Module:
    """Return a new model for the classes of sets, with the weights of a trained one; see `Spec` for `start`."""
    if not isinstance(trained, SetClassifier):
        raise PointsetError(
            "only models with an encoder and a pooling can be fine-tuned: use a name of list_pretrained"
        )
    spec: Any = trained.spec
    wanted, known = list(sets.classes), trained.classes or []
    model = build_model(replace(spec, classes=len(wanted), seed=seed, start=start))
    assert isinstance(model, SetClassifier)
    weights = dict(trained.state_dict())
    layer = f"head.{len(list(trained.head.children())) - 1}."
    # Classes that both have, by name, keep their weights of the last layer.
    shared = [name for name in wanted if name in known]
    for name, new in model.state_dict().items():
        if name.startswith(layer) and known != wanted:
            kept = new.clone()
            kept[[wanted.index(one) for one in shared]] = weights[name][[known.index(one) for one in shared]].to(new)
            weights[name] = kept
    model.load_state_dict(weights)
    if sets.options.normalize != "principal-axes":  # which do not depend on the axis up
        # The model sees the same shapes where another axis points up.
        turn_inputs(model, torch.tensor(UP_TO_Z[trained.preparation.up]).T @ torch.tensor(UP_TO_Z[sets.up]))
    return model


def turn_inputs(model: SetClassifier, turn: Tensor) -> None:
    """Change a model, in place, into one that gives for X what it gave for X @ turn.T: exact, but for rounding.

    Every layer that reads coordinates is linear, so the matrix [3, 3] goes into its weights. A rotation between upward
    axes permutes local features, up to their sign, so that mean and deviation follow.
    """
    whole = turn
    if (numbers := model.numbers) is not None:
        one = torch.eye(numbers.width)[None].to(turn)
        turned = rotate_local_features(one, turn[None], numbers.kind)[0].T
        whole = torch.block_diag(turn, torch.eye(numbers.given - 3).to(turn), turned)
        numbers.mean, numbers.deviation = turned.T @ numbers.mean, turned.abs().T @ numbers.deviation
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.Linear) and module.in_features == len(whole):
                module.weight.copy_(module.weight @ whole.to(module.weight))
