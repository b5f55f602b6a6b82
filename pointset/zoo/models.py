"""Models from their names: `head(pool(encoder(X)))`.

All poolings but pma share one decoder, so that such models differ in the pooling alone. `pointnet` and `dgcnn` stand
beside them as context.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from pointset.configuration import check_seed
from pointset.errors import PointsetError
from pointset.nn.dropout import Dropout
from pointset.nn.modes import in_evaluation_mode
from pointset.nn.norms import is_norm
from pointset.nn.registry import Choice, part_of
from pointset.nn.rowwise import Masked
from pointset.streaming.chains import check_streams
from pointset.zoo.classifiers import PackedClassifier, SetClassifier
from pointset.zoo.names import parse_name
from pointset.zoo.options import ModelOptions


@dataclass(frozen=True)
class Spec:
    """All it takes to build a zoo model again; saved beside its weights."""

    name: str
    classes: int
    inputs: int
    seed: int
    options: ModelOptions


@dataclass(frozen=True)
class Body:
    """An encoder and a pooling, for a head of one's own."""

    encoder: list[nn.Module]
    pool: nn.Module
    width: int
    """Of the pooled rows, laid side by side."""


def create_model(name: str, classes: int = 40, *, inputs: int = 3, seed: int = 0, **options: Any) -> nn.Module:
    """Build a classifier of point sets by name.

    Args:
        name: `encoder-pooling`, such as "isab16-pma"; see `list_models`.
        classes: number of logits.
        inputs: numbers per point.
        seed: of the initial weights; global random state is neither used nor changed.
        options: fields of `ModelOptions` (dim, heads, layers, form, scale, norm, prenorm, dropout, ...). One that the
            model has no use for changes nothing, so that several models can share them; see `used_options`.

    Returns:
        A module called as `model(points [B, n, inputs], mask [B, n] or None) -> logits [B, classes]`. Its `spec` says
        how to build it again.

    Raises:
        PointsetError: the name is unknown (the nearest ones are given) or names an aggregation that is no pooling of
            sets (why is said), or an option is unknown.
    """
    return build_model(Spec(name, classes, inputs, seed, ModelOptions.from_dict(options)))


def build_model(spec: Spec) -> nn.Module:
    """Build what a `Spec` describes; see `create_model`."""
    choices = parse_name(spec.name)
    check_seed(spec.seed)
    if spec.classes < 1:
        raise PointsetError(f"classes must be at least 1, got {spec.classes}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(spec.seed)
        model = _assemble(choices, spec)
    model.spec = spec  # type: ignore[assignment]
    return model


def build_body(name: str, inputs: int, options: ModelOptions, seed: int) -> Body:
    """Build the encoder and the pooling of a model, with the weights that they have in `create_model`.

    Args:
        name: of a model with an encoder and a pooling.
        inputs: numbers per element.
        options: of encoder and pooling.
        seed: of the initial weights; global random state is neither used nor changed.

    Raises:
        PointsetError: the name is unknown, or that of a whole model.
    """
    choices = parse_name(name)
    check_seed(seed)
    if len(choices) < 2:
        raise PointsetError(f"{name} is a whole model: name an encoder and a pooling, as in isab16-pma")
    encoder, pooling = choices
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return _body(encoder, pooling, inputs, options)


def _assemble(choices: tuple[Choice, ...], spec: Spec) -> nn.Module:
    if len(choices) == 1:
        known = _known(spec.options, inputs=spec.inputs, classes=spec.classes)
        return PackedClassifier(choices[0].make(known), spec.inputs)
    encoder, pooling = choices
    body = _body(encoder, pooling, spec.inputs, spec.options)
    dim, rate = spec.options.dim, spec.options.dropout
    layers: list[nn.Module] = [nn.Flatten(), Dropout(rate)]
    width = body.width
    if pooling.part.head == "hidden":
        layers += [nn.Linear(width, dim), encoder.part.activation(), Dropout(rate)]
        width = dim
    head = nn.Sequential(*layers, nn.Linear(width, spec.classes))
    return SetClassifier(body.encoder, body.pool, head, spec.inputs)


def _body(encoder: Choice, pooling: Choice, inputs: int, options: ModelOptions) -> Body:
    known = _known(options, inputs=inputs, statistic=pooling.part.statistic)
    made = encoder.make(known)
    made = made if isinstance(made, list) else [made]
    if not encoder.part.own:
        _check_rows(encoder, made, inputs, options.dim)
    layers: list[nn.Module] = []
    for layer in made:
        layers.append(layer)
        if options.row_dropout and not is_norm(layer):  # a norm is a part of the layer before it
            layers.append(Masked(Dropout(options.row_dropout)))
    pool = pooling.make(known)
    return Body(layers, pool, _width(pooling, pool, options.dim))


def _known(options: ModelOptions, **beside: Any) -> dict[str, Any]:
    attention = {"attention": options.attention(), "pool_attention": options.attention(pooling=True)}
    return {**vars(options), **attention, **beside}


def _width(pooling: Choice, pool: nn.Module, dim: int) -> int:
    with torch.no_grad(), in_evaluation_mode(pool):
        pooled = pool(torch.zeros(1, 1, dim), None)
    if pooled.dim() not in (2, 3) or len(pooled) != 1:
        raise PointsetError(
            f"pooling {pooling.name!r} must give [B, d] or [B, rows, d], got {list(pooled.shape)} for [1, 1, {dim}]"
        )
    return pooled.flatten(1).shape[1]


def _check_rows(encoder: Choice, layers: list[nn.Module], inputs: int, dim: int) -> None:
    rows = torch.zeros(1, 1, inputs)
    for layer in layers:
        with torch.no_grad(), in_evaluation_mode(layer):
            rows = layer(rows, None)
    if rows.shape != (1, 1, dim):
        raise PointsetError(
            f"encoder {encoder.name!r} must give [B, n, dim], got {list(rows.shape)} for [1, 1, {inputs}] and dim={dim}"
        )


def abilities(model: nn.Module) -> dict[str, bool]:
    """Whether a model has attention maps, streams, and can be exported."""
    return {
        "maps": any(part.maps for module in model.modules() if (part := part_of(module))),
        "streams": _passes(check_streams, model),
        "exports": _passes(check_export, model),
    }


def _passes(check: Callable[[nn.Module], None], model: nn.Module) -> bool:
    try:
        check(model)
    except PointsetError:
        return False
    return True


def check_export(model: nn.Module) -> None:
    """Raise a PointsetError that names a part, unless all parts of a model say that they can be exported."""
    for module in model.modules():
        part = part_of(module)
        if part and not part.export:
            raise PointsetError(
                f"{part.kind} {part.name!r} cannot be exported: register it with export=True if it is made of tensor "
                "operations that look at no size"
            )
