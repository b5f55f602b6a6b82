"""Inspection of one prediction: attention maps, the support, and checks of explanations."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pointset.baselines.models import points_for
from pointset.data.preparation import Prepared
from pointset.errors import PointsetError, described
from pointset.explain.faithfulness import Curves, curves_of
from pointset.explain.importance import Support, support_map, support_of
from pointset.explain.maps import AttentionMap
from pointset.explain.recording import attentions, each_shape, record_maps
from pointset.zoo.classifiers import Classifier, SetClassifier
from pointset.zoo.predicting import Prediction, padded_batches, predict


@dataclass(frozen=True, eq=False)
class Inspection:
    """The prediction of a model for a shape, with its explanations."""

    prepared: Prepared
    """The prepared shape."""
    prediction: Prediction
    """The prediction for the shape."""
    maps: list[AttentionMap]
    """Maps of all attentions, in the order of the computation. The map of the support, if there is one, comes first."""
    support: Support | None
    """The support, or None if all points have non-zero weight or if points interact before the pooling."""
    checks: Mapping[str, Curves]
    """Deletion and insertion curves, by the name of the explanation. Empty unless `check` is True."""


def network_of(model: Classifier) -> Classifier:
    """Return the network of an ensemble, and any other model unchanged.

    Raises:
        PointsetError: the ensemble has no network.
    """
    members = getattr(getattr(model, "model", None), "members", ())
    networks = [member for member in members if isinstance(member, SetClassifier)]
    if members and not networks:
        raise PointsetError("the ensemble has no network: load the network of the run, or train with a larger --budget")
    return networks[0] if networks else model


def inspect_shape(model: Classifier, shape: Any, *, check: bool = False, **reading: Any) -> Any:
    """Prepare a shape, classify it, and record its attention maps.

    Args:
        model: a model of the zoo. The maps, support and checks of an ensemble are those of its network alone.
        shape: any input of `model.predict`: a file, a mesh, a cloud or points [n, inputs]; a list or a batch of these;
            or `PointSets`.
        check: also compute deletion and insertion curves (see `pointset.explain.faithfulness`).
        reading: arguments of `prepare`, such as `points`, `seed` and `up`.

    Returns:
        An `Inspection`: the prepared shape, its prediction, maps and support, and the checks if `check` is True. For
        several shapes, a list of inspections.

    Raises:
        PointsetError: the shape cannot be prepared, or the model has neither attention nor a support.

    Example:
        >>> seen = pointset.explain.inspect_shape(pointset.create_model("rff-max", classes=2, dim=4), test.points[0])
        >>> [map.kind for map in seen.maps]
        ['support']
    """
    if not isinstance(model, Classifier):
        remedy = "for other modules, use attention_maps"
        raise PointsetError(f"model must be of the zoo, as create_model returns it, got {described(model)}: {remedy}")
    shapes, single = each_shape(model, shape)
    inspections = [_inspect(model, model.prepare(one, **reading), check) for one in shapes]
    return inspections[0] if single else inspections


def _inspect(model: Classifier, prepared: Prepared, check: bool) -> Inspection:
    network = network_of(model)
    prediction = predict(model, padded_batches([prepared.points]))
    if not prediction.logits.isfinite().all():
        raise PointsetError("the model's logits are not finite: its training diverged, train it again")
    points = points_for(network, prepared.points)
    support = support_of(network, points)
    maps = [] if support is None else [replace(support_map(support), up=model.preparation.up, points=points)]
    if support is None or any(True for _ in attentions(network)):
        maps += record_maps(network, points)
    checks = curves_of(network, [points]) if check else {}
    return Inspection(prepared, prediction, maps, support, checks)
