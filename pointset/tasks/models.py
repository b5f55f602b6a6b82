"""Models of the tables: "encoder + pooling", a model of the zoo with the head that the table has.

Encoders: rFF (rows on their own), rFFp-max and rFFp-mean (DeepSets' equivariant layers), SAB, ISAB16 (any number of
inducing points). Poolings: mean, sum, max, PMA (PMA4 has four seeds).
"""

import itertools
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import torch
from torch import nn

from pointset.errors import PointsetError
from pointset.nn.dropout import Dropout
from pointset.zoo.classifiers import SetClassifier
from pointset.zoo.models import create_model
from pointset.zoo.names import used_options as zoo_options
from pointset.zoo.options import ModelOptions

T = TypeVar("T", bound=nn.Module)
HEAD, EMBEDDING = 0x4EAD, 0xE3BED
"""Numbers of the parts of a model that the zoo does not make; see `seeded`."""
ROW = re.compile(r"(rFF|rFFp-max|rFFp-mean|SAB|ISAB[1-9]\d*) \+ (mean|sum|max|PMA(?:[1-9]\d*)?)", re.ASCII)


def zoo_name(row: str) -> str:
    """The zoo's name of "encoder + pooling".

    Raises:
        PointsetError: the row is no such name, or an rFFp encoder and its pooling differ in their statistic.
    """
    match = ROW.fullmatch(row)
    encoder, pooling = match.groups() if match else ("", "")
    if not encoder or (encoder.startswith("rFFp") and not encoder.endswith(pooling)):
        raise PointsetError(f"{row!r} is no model: name an encoder and a pooling, as in 'rFF + mean' or 'SAB + PMA'")
    return f"{encoder.split('-')[0]}-{pooling}".lower()


def check_row(row: str, rows: Sequence[str]) -> None:
    """Raise a PointsetError that gives the known rows, unless the row is one of them."""
    if row not in rows:
        raise PointsetError(f"no model is called {row!r}: choose from {', '.join(rows)}")


def used_options(row: str) -> set[str]:
    """Fields of `ModelOptions` that the model of a row is built from; see `pointset.zoo.names.used_options`."""
    return zoo_options(zoo_name(row))


def row_model(
    row: str,
    inputs: int,
    options: ModelOptions,
    seed: int,
    head: Callable[[int], nn.Module],
) -> SetClassifier:
    """The encoder and the pooling of a row under a head of one's own.

    Args:
        row: "encoder + pooling".
        inputs: numbers per element.
        options: of encoder, pooling and dropout.
        seed: of the initial weights; global random state is neither used nor changed.
        head: from the width of the pooled rows laid side by side to a module [B, width] -> [B, outputs].
    """
    found = create_model(zoo_name(row), 1, inputs=inputs, seed=seed, **options.as_dict())
    assert isinstance(found, SetClassifier), "rows name no context models"
    width = next(module.in_features for module in found.head.modules() if isinstance(module, nn.Linear))
    rest = seeded(seed, lambda: nn.Sequential(nn.Flatten(), Dropout(options.dropout), head(width)))
    return SetClassifier(list(found.encoder), found.pool, rest, inputs)


def seeded(seed: int, build: Callable[[], T], part: int = HEAD) -> T:
    """Build a part of a model with initial weights that come from (seed, part), whatever the other parts are."""
    stream = int(np.random.SeedSequence((seed, part)).generate_state(1, np.uint64)[0] >> np.uint64(1))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream)
        return build()


def fully_connected(*widths: int) -> nn.Sequential:
    """Linear layers with a ReLU between each two, rows [..., widths[0]] -> [..., widths[-1]]."""
    layers: list[nn.Module] = [nn.Linear(widths[0], widths[1])]
    for before, after in itertools.pairwise(widths[1:]):
        layers += [nn.ReLU(), nn.Linear(before, after)]
    return nn.Sequential(*layers)
