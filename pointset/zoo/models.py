"""Models by name: `head(pool(encoder(X)))`. All poolings except pma have the same head."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from pointset.baselines.models import Ensemble
from pointset.configuration import Count, check, check_once, check_options, check_seed
from pointset.data.local_features import WIDTHS
from pointset.data.options import Preparation
from pointset.data.point_sets import PointSets
from pointset.errors import QUOTED, PointsetError, one_line, quoted
from pointset.nn.layers import Dropout, in_evaluation_mode
from pointset.nn.modules import Encoder
from pointset.nn.norms import has_shift, make_norm
from pointset.nn.registry import Builder
from pointset.zoo import pretrained as trained_models
from pointset.zoo.classifiers import Classifier, SetClassifier, WholeClassifier
from pointset.zoo.local_feature_inputs import LocalFeatureInputs
from pointset.zoo.names import parse_name
from pointset.zoo.options import ModelOptions
from pointset.zoo.out_of_distribution import load_distribution
from pointset.zoo.pretrained import WEIGHTS, find_run, run_description, run_weights, trained_name
from pointset.zoo.registration import source_digests

ENSEMBLE = "ensemble"
"""Name of a `Spec` with members."""
ClassesLike = Any
"""An integer of any type, a list or an array of names, or None."""


@dataclass(frozen=True)
class Spec:
    """The description from which a model is rebuilt, saved next to the weights of the model."""

    name: str
    classes: int
    inputs: int
    seed: int
    options: ModelOptions
    members: "tuple[Spec, ...]" = ()
    """The classifiers whose log-probabilities an ensemble averages."""
    pretrained: str = ""
    """Name or run folder of the trained model that gave the initial weights."""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain data, for run.json."""
        always = {name: getattr(self, name) for name in ("name", "classes", "inputs", "seed")}
        sometimes = {
            "modules": {} if self.members else source_digests(self.name, self.options),
            "members": [member.as_dict() for member in self.members],
            "pretrained": self.pretrained,
        }
        given = {key: value for key, value in sometimes.items() if value}
        return {**always, "options": self.options.as_dict(), **given}


def create_model(
    name: str,
    classes: ClassesLike = None,
    options: ModelOptions | None = None,
    *,
    inputs: int = 3,
    seed: int = 0,
    pretrained: bool | str | Path | None = None,
    **changes: Any,
) -> nn.Module:
    """Build a classifier of point sets by name.

    Args:
        name: `encoder-pooling`, such as "isab16-pma" (see `list_models`), or the full name of a trained model, such as
            "isab16-pma.modelnet40-1024" (see `list_pretrained`).
        classes: number of classes, or their names, which become `model.classes`. None means 40 or, for a trained model,
            the classes of the training.
        options: options of the model; None means the defaults. Options that the model does not use are ignored.
        inputs: number of values per point.
        seed: seed of the initial weights; global random state is neither used nor changed.
        pretrained: tag of trained weights, such as "modelnet40-1024"; True for the usual tag; or the folder of a
            training run. The model then has the options of the training. For other classes, the last layer is new and
            must be trained with `fit`; only classes with the same name keep their weights.
        changes: fields of `ModelOptions` by name, which replace those of `options`.

    Returns:
        A `Classifier`, called as `model(points [B, n, inputs], mask [B, n] or None) -> logits [B, classes]` with
        prepared points: those of `PointSets`, or `model.prepare(shape).points`. `model.predict` takes shapes in any
        unit.

    Raises:
        PointsetError: the name is unknown (the message has similar names); the name is that of an aggregation that does
            not pool sets; an option is unknown; the weights belong to a model with other options.

    Example:
        >>> model = pointset.create_model("isab16-pma", classes=10, dim=64)
        >>> model(torch.rand(2, 100, 3)).shape
        torch.Size([2, 10])
    """
    if options is not None and not isinstance(options, ModelOptions):
        raise PointsetError(f"options must be ModelOptions, got {quoted(options)}")
    count, names = count_classes(classes)
    known = ModelOptions.option_names()
    check_options("create_model", changes, [*known, "attention"], ["classes", "inputs", "seed", "pretrained", *known])
    if trained := trained_name(name, pretrained):
        given = {} if options is None else options.flat()
        model = load_trained(trained, names or count, {"inputs": inputs, **given, **changes}, seed)
        if isinstance(trained, Path) and (found := model.spec.name) != name:  # type: ignore[union-attr]
            raise PointsetError(f"{trained} is a run of {found}, not of {name}: write {found}")
        return model
    options = (options or ModelOptions()).changed(changes)
    model = build_model(Spec(name, 40 if count is None else count, inputs, seed, options))
    model.classes = names  # type: ignore[assignment]
    return model


def count_classes(classes: ClassesLike) -> tuple[int | None, list[str] | None]:
    """Return the number of classes and their names; each is None if it is not known.

    Raises:
        PointsetError: `classes` is neither a number nor names, or a name is repeated.
    """
    if classes is None or isinstance(classes, Integral):
        return classes if classes is None or isinstance(classes, bool) else int(classes), None
    if isinstance(classes, str) or not isinstance(classes, Iterable) or not getattr(classes, "ndim", 1):
        raise PointsetError(f"classes must be a whole number or a list of names, got {quoted(classes)}")
    names = [str(name) for name in classes]
    check_once("classes:", names)
    return len(names), names


def load_model(name: str | Path) -> Any:
    """Return a trained model of the package, or the model of a finished run, in evaluation mode.

    Args:
        name: a name in `list_pretrained()`, such as "isab16-pma.modelnet40-1024", or the folder of a run.

    Returns:
        A `Classifier`: `model.predict`, `predict_proba`, `classify` and `embed` take shapes in any unit and prepare
        them as in training; `model(points)` takes prepared points. `model.classes` has the names of the classes,
        `model.preparation` describes how shapes become points, and `model.description` is the content of run.json.

    Raises:
        PointsetError: there is no such trained model, the folder is not a finished run, or the model of the run is not
            one of this package.

    Example:
        >>> model = pointset.load_model("isab16-pma.modelnet40-1024")
        >>> model.classes[:2], model(torch.rand(1, 100, 3)).shape
        (['airplane', 'bathtub'], torch.Size([1, 40]))
    """
    return load_trained(name).eval()


def load_trained(
    name: str | Path,
    classes: int | Sequence[str] | None = None,
    given: Mapping[str, Any] | None = None,
    seed: int | None = None,
) -> nn.Module:
    """Return a trained model for the classes of its training, or for others with a new last layer; see `create_model`.

    Options in `given` must be equal to those of the training. The `seed` None means the seed of the run.
    """
    folder = find_run(name)
    weights, run, file = run_weights(folder), run_description(folder), folder / "run.json"
    try:
        spec, preparation = spec_of(run["model"]), Preparation.from_dict(run["data"]["preparation"])
        own = {"inputs": spec.inputs, **spec.options.flat()}
        for option, value in (given or {}).items():
            if option not in own or value != own[option]:
                raise PointsetError(f"{name} was trained with {option}={own.get(option)}, not {value}: leave it out")
        known: list[str] = run["data"]["classes"]
        wanted = known if classes in (None, len(known)) else classes
        count, seed = wanted if isinstance(wanted, int) else len(wanted), spec.seed if seed is None else seed
        model = build_model(replace(spec, classes=count, seed=seed, pretrained=str(name)))
    except PointsetError as error:
        raise error if given else PointsetError(f"{file} does not fit this installation: {error}") from error
    assert isinstance(model, Classifier)
    if wanted != known:
        weights = _with_new_classes(model, weights, [] if isinstance(wanted, int) else wanted, known)
    load_weights(model, weights, str(folder / WEIGHTS))
    set_preparation(model, known, preparation)
    if wanted != known:
        model.classes = None if isinstance(wanted, int) else list(wanted)
        model.untrained_layer = model.head[-1].weight.detach().clone()  # type: ignore[index,union-attr]
        return model
    model.by_thresholds = run["recipe"].get("ordered") == "thresholds"
    model.temperature, model.description = run.get("temperature", 1.0), run
    if folder.parent == trained_models.FOLDER:
        model.temperature = trained_models.pretrained_card(folder.name).temperature
        model.training_distribution = load_distribution(folder)
    return model


def _with_new_classes(
    model: Classifier, weights: Mapping[str, Tensor], wanted: Sequence[str], known: Sequence[str]
) -> dict[str, Tensor]:
    """Return the trained weights with the model's new last layer, in which known classes have their trained weights."""
    if not isinstance(model, SetClassifier):
        raise PointsetError("only models with an encoder and a pooling can be fine-tuned for other classes")
    layer, shared = f"head.{len(list(model.head.children())) - 1}.", [name for name in wanted if name in known]
    new = {name: tensor.clone() for name, tensor in model.state_dict().items() if name.startswith(layer)}
    for name, tensor in new.items():
        tensor[[wanted.index(one) for one in shared]] = weights[name][[known.index(one) for one in shared]].to(tensor)
    return {**weights, **new}


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], source: str) -> None:
    """Load weights into a model; `source` is the name of the weights in messages."""
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        message = f"{source} does not fit the model that run.json describes: restore both files"
        raise PointsetError(message) from error


def set_preparation(model: nn.Module, classes: Sequence[str], preparation: Preparation) -> None:
    """Set the preparation of a model to that of its training sets, and set the classes of a model of the zoo."""
    if not isinstance(model, Classifier):
        model.preparation = preparation  # type: ignore[assignment]
    else:
        model.preparation = replace(preparation, local_features=model.local_features)
        model.temperature, model.training_distribution, model.untrained_layer = 1.0, None, None
        model.classes = list(classes) if model.spec.classes == len(classes) else None  # type: ignore[union-attr]


def spec_of(described: Mapping[str, Any]) -> Spec:
    """Return the spec from the entry "model" of run.json."""
    options = ModelOptions.from_dict(described["options"])
    members = tuple(map(spec_of, described.get("members", ())))
    return Spec(described["name"], described["classes"], described["inputs"], described["seed"], options, members)


def build_model(spec: Spec) -> nn.Module:
    """Build the model that a `Spec` describes; see `create_model`."""
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
                whole = entry.module(spec.classes, spec.inputs, load_trained)
            else:
                whole = builders[0].build(spec.options, spec.inputs, spec.classes)
            model: nn.Module = WholeClassifier(whole, spec.inputs)
        else:
            encoder, pooling = builders
            model = _with_head(encoder, pooling, spec)
    model.spec = spec  # type: ignore[assignment]
    return model


def create_for(
    sets: PointSets,
    name: str,
    options: ModelOptions | None = None,
    *,
    seed: int = 0,
    pretrained: bool | str | Path | None = None,
) -> nn.Module:
    """Build a model by name for the classes and the inputs of these sets; see `create_model`."""
    return create_model(name, sets.classes, options, inputs=sets.inputs, seed=seed, pretrained=pretrained)


def ensemble_of(members: list[nn.Module]) -> nn.Module:
    """Return the ensemble of classifiers of the zoo with the same classes and inputs; see `Ensemble`."""
    specs: Any = tuple(member.spec for member in members)
    spec = replace(specs[0], name=ENSEMBLE, options=ModelOptions(), members=specs, pretrained="")
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
    pooled = math.prod(pooled_shape(pooling, pool, width))  # width of the concatenated pooled vectors
    first = options.dropout_rate if options.pooled_dropout is None else options.pooled_dropout
    dim, norm = options.head_dim or options.dim, options.head_norm
    head: list[nn.Module] = [nn.Flatten(), Dropout(first)]
    if pooling.head == "hidden":
        head.append(nn.Linear(pooled, dim, bias=not has_shift(norm)))
        head += [] if norm == "none" else [make_norm(norm, dim)]
        head += [activation(), Dropout(options.dropout_rate)]
        pooled = dim
    return SetClassifier(layers, pool, nn.Sequential(*head, nn.Linear(pooled, spec.classes)), spec.inputs, numbers)


def shape_of(module: nn.Module, width: int, rows: int = 1) -> list[int]:
    """Return the shape of a module's output for a set of `rows` vectors of this width."""
    with torch.no_grad(), in_evaluation_mode(module):
        return list(module(torch.zeros(1, rows, width), None).shape)


def pooled_shape(pooling: Builder, pool: nn.Module, width: int) -> list[int]:
    """Return the shape of one pooled set; a PointsetError if a user-defined pooling takes no mask or does not pool."""
    if not any(member.entry.user_defined for member in pooling.members):
        return shape_of(pool, width)
    try:
        one, several = (shape_of(pool, width, rows) for rows in (1, 3))
        wrong = "" if one == several else f"its output for 3 rows is {several}, and for 1 row {one}"
    except TypeError as error:
        wrong = one_line(error, QUOTED)
    if wrong:
        names = "+".join(member.entry.name for member in pooling.members)
        raise PointsetError(f"pooling {names} must have forward(X, mask=None) -> [B, d], but {wrong}")
    return one
