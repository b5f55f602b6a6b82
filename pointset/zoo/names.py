"""Names of models: `encoder-pooling`, such as "isab16-pma", or the name of a whole model, such as "pointnet".

Encoders and poolings are those in the registry (`pointset.nn.registry`), which includes user-defined ones.
"""

import dataclasses
import difflib
import os
import re
import runpy
from pathlib import Path

import pointset.baselines.models
import pointset.nn.context
import pointset.nn.encoders
import pointset.nn.pooling  # noqa: F401 - importing them registers them
from pointset.configuration import AttentionOptions
from pointset.errors import PointsetError, quoted
from pointset.nn import registry
from pointset.nn.registry import Builder
from pointset.runs.files import MOST_SETTINGS, require_file
from pointset.zoo.options import ModelOptions

OPTIONS = {*ModelOptions.option_names()}
POOL_ATTENTION = {field.name for field in dataclasses.fields(AttentionOptions)} | {"pool_weights"}
"""Options of the attention in PMA. Other attention blocks do not use `coverage` and `pool_weights`."""
ATTENTION = POOL_ATTENTION - {"coverage", "pool_weights"}
HIDDEN_LAYER = {"head_dim", "head_norm"}
"""Options of the head's hidden layer."""
LOCAL_FEATURES = {"local_features", "local_feature_noise", "local_feature_dropout"}
CLASSIFIER = HIDDEN_LAYER | LOCAL_FEATURES | {"pooled_dropout"}
"""Options of the head and the inputs of a classifier; models for other tasks do not use them."""
PAPERS = {"settransformer": "isab16-pma", "deepset": "rff-max", "pointnet": "pointnet"}
"""Beginnings of the usual names of networks, and the names of these networks in this package."""
_LOADED = set[Path]()
"""Files of POINTSET_MODULES that were imported."""
ROW = re.compile(r"(?P<encoder>\S+?)(-(?P<statistic>max|mean))? \+ (?P<pooling>\S+)")


def list_models() -> list[str]:
    """Return the standard model names: every encoder with every pooling, and pointnet and dgcnn.

    Other numbers of inducing points (`isab32-max`) or seeds (`sab-pma4`) are allowed, too, and poolings can be joined
    by `+` (`isab16-max+pma`). Aggregations of torch-geometric that pool a set are poolings (`isab16-aggr.mean`; see
    `pointset.nn.pooling.aggregation`).

    Returns:
        Names for `create_model`.
    """
    load_files()
    pairs = [
        f"{one.listed}-{other.listed}" for one in registry.entries("encoder") for other in registry.entries("pooling")
    ]
    return pairs + [entry.listed for entry in registry.entries("model")]


def parse_name(name: str) -> tuple[Builder, ...]:
    """Return the builders of the encoder and the pooling of a model, or the builder of a whole model."""
    load_files()
    if whole := registry.find_builder("model", name) or registry.find_builder("baseline", name):
        return (whole,)
    encoder, _, pooling = name.partition("-")
    first, second = registry.find_builder("encoder", encoder), registry.find_builder("pooling", pooling)
    if first is None or second is None:
        letters = re.sub(r"[^a-z]", "", name.lower())
        usual = [ours for theirs, ours in PAPERS.items() if letters.startswith(theirs)]
        near = usual or difflib.get_close_matches(name.lower(), list_models(), n=3, cutoff=0.0)
        raise PointsetError(
            f"no model is called {quoted(name)}: did you mean {', '.join(near)}? Names are encoder-pooling, as in "
            "pointset.list_models(), with other numbers or poolings joined by +; POINTSET_MODULES names a file with "
            "user-defined ones"
        )
    for builder in (*first.members, *second.members):
        for argument in builder.argument:
            builder.entry.module.check_argument(argument)
    return first, second


def used_options(name: str) -> set[str]:
    """Return the names of the fields of `ModelOptions` that this model uses."""
    _, *others = builders = parse_name(name)
    used = {"dim", "dropout", "pooled_dropout", *LOCAL_FEATURES} if others else set[str]()
    used |= HIDDEN_LAYER if others and others[0].head == "hidden" else set()
    for member in (member for builder in builders for member in builder.members if member.entry.kind != "baseline"):
        if (options := member.entry.module.options_used) is None:
            return set(OPTIONS)
        used |= OPTIONS.intersection(options)
        used |= ATTENTION if "attention" in options else set()
        used |= POOL_ATTENTION if "pool_attention" in options else set()
    return used


def zoo_name(row: str) -> str:
    """Return the model name for a name in a table: isab16-pma for "ISAB16 + PMA". Model names are returned unchanged.

    "rFFp-max + max" (layers that subtract the maximum) is rffp-max, because the pooling decides what rFFp subtracts.
    """
    if not (match := ROW.fullmatch(row)):
        parse_name(row)
        return row
    name = f"{match['encoder']}-{match['pooling']}".lower()
    encoder, pooling = parse_name(name)
    subtracts = encoder.entry.module.subtracts_statistic
    if match["statistic"] and not (subtracts and pooling.statistic == match["statistic"]):
        raise PointsetError(
            f"{quoted(row)} does not exist: rFFp layers subtract the mean before mean pooling, and the maximum "
            "before all other poolings"
        )
    return name


def load_files() -> None:
    """Import each file in POINTSET_MODULES once; the files register user-defined encoders and poolings."""
    for file in filter(None, os.environ.get("POINTSET_MODULES", "").split(os.pathsep)):
        if (path := Path(file).resolve()) in _LOADED:
            continue
        try:
            require_file(path, MOST_SETTINGS)
            runpy.run_path(str(path), run_name=path.stem)
        except Exception as error:  # whatever the file raises
            raise PointsetError(f"POINTSET_MODULES names {path}, which cannot be imported: {error}") from error
        _LOADED.add(path)
