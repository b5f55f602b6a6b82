"""All that can be seen of one prediction: maps of the model, the points that decide, and which explanation is true."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pointset.baselines.models import points_for
from pointset.data.preparation import Prepared
from pointset.errors import PointsetError
from pointset.explain.faithfulness import Curves, check_explanations
from pointset.explain.maps import AttentionMap, attention_maps, attentions
from pointset.explain.support import Support, exact_support, support_map
from pointset.zoo.classifiers import Classifier, SetClassifier
from pointset.zoo.predicting import Prediction, padded_batches, predict


@dataclass(frozen=True, eq=False)
class Inspection:
    """What a model says of a shape, and what it looked at."""

    prepared: Prepared
    """The shape as the model got it."""
    prediction: Prediction
    """Of one set."""
    maps: list[AttentionMap]
    """Of all attentions, in the order of the computation; first the points that decide, if some do not."""
    support: Support | None
    """The points that decide; None where all have a weight, or where points interact before the pooling."""
    checks: Mapping[str, Curves]
    """Of each explanation, how the probability changes as points are removed, if that was asked for."""


def network_of(model: Classifier) -> Classifier:
    """The model itself, or the network in an ensemble.

    Raises:
        PointsetError: the product has none.
    """
    members = getattr(getattr(model, "model", None), "members", ())
    networks = [member for member in members if isinstance(member, SetClassifier)]
    if members and not networks:
        raise PointsetError("the product has no network: load the network of its run, or train with a larger --budget")
    return networks[0] if networks else model


def inspect_shape(model: Classifier, shape: Any, *, check: bool = False, **reading: Any) -> Inspection:
    """Prepare a shape, classify it, and record what the model looks at.

    Args:
        model: a network of the zoo; of an ensemble, its network is inspected.
        shape: a file, a mesh, a cloud or points; see `Preparation.prepare`.
        check: also remove points in the order of every explanation; see `pointset.explain.faithfulness`.
        reading: arguments of `prepare`, such as `points`, `seed` and `up`.

    Returns:
        The shape as the model got it, its prediction, maps, the points that decide, and the checks if asked for.

    Raises:
        PointsetError: the shape cannot be prepared, or the model neither has attention nor leaves points out.

    Example:
        >>> seen = pointset.explain.inspect_shape(pointset.create_model("rff-max", classes=2, dim=4), test.points[0])
        >>> [map.kind for map in seen.maps]
        ['decides']
    """
    prepared, network = model.prepare(shape, **reading), network_of(model)
    prediction = predict(model, padded_batches([prepared.points]))
    if not prediction.logits.isfinite().all():
        raise PointsetError("the model's logits are not finite: its training diverged, train it again")
    points = points_for(network, prepared.points)
    support = exact_support(network, points)
    maps = [] if support is None else [support_map(support)]
    if support is None or any(True for _ in attentions(network)):
        maps += attention_maps(network, points)
    checks = check_explanations(network, [points]) if check else {}
    return Inspection(prepared, prediction, maps, support, checks)
