"""Models from their names: `head(pool(encoder(X)))`; all poolings except pma share one head."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from pointset.baselines.models import Ensemble
from pointset.configuration import Count, check, check_seed, name_of
from pointset.data.local_features import WIDTHS
from pointset.data.point_sets import PointSets
from pointset.data.preparation import Preparation
from pointset.errors import PointsetError, quoted
from pointset.nn.layers import Dropout, in_evaluation_mode
from pointset.nn.modules import Encoder
from pointset.nn.norms import has_shift, make_norm
from pointset.nn.registry import Builder, entries, entry_of
from pointset.nn.weights import Weights
from pointset.zoo.classifiers import Classifier, SetClassifier, WholeClassifier
from pointset.zoo.local_feature_inputs import LocalFeatureInputs
from pointset.zoo.names import list_models, parse_name
from pointset.zoo.options import ModelOptions
from pointset.zoo.out_of_distribution import load_distribution
from pointset.zoo.pretrained import (
    pretrained_card,
    pretrained_folder,
    pretrained_name,
    pretrained_run,
    pretrained_weights,
)
from pointset.zoo.registration import source_digests

ENSEMBLE = "ensemble"
"""Name of the specs that have members."""


@dataclass(frozen=True)
class Spec:
    """Everything needed to rebuild a zoo model; saved beside its weights."""

    name: str
    classes: int
    inputs: int
    seed: int
    options: ModelOptions
    members: "tuple[Spec, ...]" = ()
    """Of an ensemble: the classifiers whose log-probabilities it averages."""
    start: str = ""
    """The trained model that was fine-tuned."""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain data, for run.json."""
        always = {name: getattr(self, name) for name in ("name", "classes", "inputs", "seed")}
        sometimes = {
            "modules": {} if self.members else source_digests(self.name, self.options),
            "members": [member.as_dict() for member in self.members],
            "start": self.start,
        }
        given = {key: value for key, value in sometimes.items() if value}
        return {**always, "options": self.options.as_dict(), **given}


def create_model(
    name: str,
    classes: int | None = None,
    options: ModelOptions | None = None,
    *,
    inputs: int = 3,
    seed: int = 0,
    pretrained: bool | str | None = None,
    **changes: Any,
) -> nn.Module:
    """Build a classifier of point sets by name.

    Args:
        name: `encoder-pooling`, such as "isab16-pma" (see `list_models`), or the full name of a trained model, such as
            "isab16-pma.modelnet40-1024" (see `list_pretrained`).
        classes: number of logits; 40, or those of the trained model, when None.
        options: how it is built; the defaults when None. Options that the model does not use are ignored.
        inputs: numbers per point.
        seed: of the initial weights; global random state is neither used nor changed.
        pretrained: True for the trained weights of this model, or their tag, such as "modelnet40-1024"; they come with
            the options of their training. With another number of classes the last layer is new, to be fine-tuned.
        changes: fields of `ModelOptions` by name, in place of those of `options`.

    Returns:
        A module called as `model(points [B, n, inputs], mask [B, n] or None) -> logits [B, classes]`.

    Raises:
        PointsetError: the name is unknown (the nearest ones are given) or names an aggregation that does not pool sets
            (the reason is given), an option is unknown, or the weights are of a model with other options.

    Example:
        >>> model = pointset.create_model("isab16-pma", classes=10, dim=64)
        >>> model(torch.rand(2, 100, 3)).shape
        torch.Size([2, 10])
    """
    if options is not None and not isinstance(options, ModelOptions):
        raise PointsetError(f"options must be ModelOptions, got {quoted(options)}")
    if full_name := pretrained_name(name, pretrained):
        given = {} if options is None else options.flat()
        return create_pretrained(full_name, classes, {"inputs": inputs, **given, **changes}, seed)
    chosen = (options or ModelOptions()).changed(changes)
    return build_model(Spec(name, 40 if classes is None else classes, inputs, seed, chosen))


def create_pretrained(
    name: str, classes: int | None = None, given: Mapping[str, Any] | None = None, seed: int | None = 0
) -> nn.Module:
    """Return a trained model of the package by its full name; see `create_model`. The seed None is that of its run."""
    run = pretrained_run(name)
    spec = spec_of(run["model"])
    seed = spec.seed if seed is None else seed
    known = {"inputs": spec.inputs, **spec.options.flat()}
    for option, value in (given or {}).items():
        if option not in known or value != known[option]:
            raise PointsetError(f"{name} was trained with {option}={known.get(option)}, not {value}: leave it out")
    model = build_model(replace(spec, classes=spec.classes if classes is None else classes, seed=seed))
    weights, own = pretrained_weights(name), model.state_dict()
    if classes not in (None, spec.classes):  # the last layer stays new
        weights = {key: tensor if tensor.shape == own[key].shape else own[key] for key, tensor in weights.items()}
    load_weights(model, weights, name)
    set_preparation(model, run["data"]["classes"], Preparation.from_dict(run["data"]["preparation"]))
    if isinstance(model, Classifier) and model.classes:
        card = pretrained_card(name)
        model.temperature = card.temperature
        model.training_distribution = load_distribution(pretrained_folder(name))
        model.description = run
    return model


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], source: str) -> None:
    """Load weights into a model; `source` names them in messages."""
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        message = f"{source} does not fit the model that run.json describes: restore the two as they were"
        raise PointsetError(message) from error


def set_preparation(model: nn.Module, classes: Sequence[str], preparation: Preparation) -> None:
    """Give a model the preparation of its training sets, and a zoo model their classes, for predictions."""
    if not isinstance(model, Classifier):
        object.__setattr__(model, "preparation", preparation)
    else:
        model.preparation = replace(preparation, local_features=model.local_features)
        model.temperature, model.training_distribution = 1.0, None
        model.classes = list(classes) if model.spec.classes == len(classes) else None  # type: ignore[union-attr]


def spec_of(described: Mapping[str, Any]) -> Spec:
    """Return the spec that run.json has under "model"; a KeyError, a TypeError or a ValueError if it does not."""
    options = ModelOptions.from_dict(described["options"])
    members = tuple(map(spec_of, described.get("members", ())))
    return Spec(described["name"], described["classes"], described["inputs"], described["seed"], options, members)


def build_model(spec: Spec) -> nn.Module:
    """Build what a `Spec` describes; see `create_model`."""
    if spec.members:
        return ensemble_of([build_model(member) for member in spec.members])
    check("name", spec.name, str)
    check("classes", spec.classes, Count)
    check("inputs", spec.inputs, Count)
    check_seed(spec.seed)
    builders = parse_name(spec.name)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(spec.seed)
        if len(builders) == 1:
            entry = builders[0].entry
            if entry.kind == "baseline":
                whole = entry.module(spec.classes, spec.inputs, create_pretrained)
            else:
                whole = builders[0].build(spec.options, spec.inputs, spec.classes)
            model: nn.Module = WholeClassifier(whole, spec.inputs)
        else:
            encoder, pooling = builders
            model = _with_head(encoder, pooling, spec)
    model.spec = spec  # type: ignore[assignment]
    return model


def create_for(sets: PointSets, name: str, options: ModelOptions | None = None, *, seed: int = 0) -> nn.Module:
    """Build a model by name for the classes and the numbers per point of sets; see `create_model`."""
    return create_model(name, len(sets.classes), options, inputs=sets.inputs, seed=seed)


def ensemble_of(members: list[nn.Module]) -> nn.Module:
    """Return the ensemble of classifiers of the zoo with the same classes and inputs; see `Ensemble`."""
    specs: Any = tuple(member.spec for member in members)
    spec = replace(specs[0], name=ENSEMBLE, options=ModelOptions(), members=specs, start="")
    ensemble = WholeClassifier(Ensemble(members), spec.inputs)
    ensemble.spec = spec
    return ensemble


def _with_head(encoder: Builder, pooling: Builder, spec: Spec) -> nn.Module:
    options, activation = spec.options, encoder.entry.module.activation
    kind, noise, missing = options.local_features, options.local_feature_noise, options.local_feature_dropout
    numbers = None if kind == "none" else LocalFeatureInputs(kind, spec.inputs, noise, missing)
    inputs = spec.inputs + WIDTHS[kind]
    layers = encoder.build(options, inputs, pooling)
    if type(layers).forward is not Encoder.forward:  # one layer, called as a whole
        layers = Encoder([layers])
    width = shape_of(layers, inputs)[-1] if pooling.any_width else options.dim
    pool = pooling.build(options, width)
    pooled = math.prod(shape_of(pool, width))  # width of the pooled vectors, side by side
    first = options.dropout_rate if options.pooled_dropout is None else options.pooled_dropout
    dim, norm = options.head_dim or options.dim, options.head_norm
    head: list[nn.Module] = [nn.Flatten(), Dropout(first)]
    if pooling.head == "hidden":
        head.append(nn.Linear(pooled, dim, bias=not has_shift(norm)))
        head += [] if norm == "none" else [make_norm(norm, dim)]
        head += [activation(), Dropout(options.dropout_rate)]
        pooled = dim
    return SetClassifier(layers, pool, nn.Sequential(*head, nn.Linear(pooled, spec.classes)), spec.inputs, numbers)


def shape_of(module: nn.Module, width: int) -> list[int]:
    """Return the shape of a module's output for one row of this width."""
    with torch.no_grad(), in_evaluation_mode(module):
        return list(module(torch.zeros(1, 1, width), None).shape)


def describe_models(options: ModelOptions | None = None) -> list[dict[str, Any]]:
    """Return name, number of parameters and `abilities` of every model in `list_models`."""
    rows = []
    for name in list_models():
        model = create_model(name, options=options)
        parameters = sum(parameter.numel() for parameter in model.parameters())
        rows.append({"model": name, "parameters": parameters, **abilities(model)})
    return rows


def abilities(model: nn.Module) -> dict[str, bool]:
    """Return whether a model has attention maps, and whether it can be exported."""
    maps = any(getattr(type(module), "maps", None) for module in model.modules())
    try:
        check_export(model)
    except PointsetError:
        return {"maps": maps, "exports": False}
    return {"maps": maps, "exports": True}


def check_export(model: nn.Module) -> None:
    """Raise a PointsetError that names the first part of a model that cannot be exported, if any."""
    known = [entry.name for entry in entries("weights") if entry.export]
    used = (name for module in model.modules() if isinstance(module, Weights) for name in module.functions)
    lacking = [f"weights function {name_of(name)!r}" for name in used if name not in known]
    for entry in map(entry_of, model.modules()):
        lacking += [f"{entry.kind} {entry.name!r}"] if entry and not entry.module.export else []
    if lacking:
        raise PointsetError(
            f"{lacking[0]} cannot be exported: set export = True in its class, or for register_weights, if it "
            "consists of tensor operations that do not depend on sizes, and takes a mask"
        )
