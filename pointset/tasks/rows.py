"""Models of set problems: any encoder and pooling of the zoo, with the head of the problem.

A row is the name of a model, as in the papers' tables, "ISAB16 + PMA", or as in the zoo, "isab16-pma".
"""

import itertools
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch
from torch import nn

from pointset.errors import PointsetError, quoted
from pointset.nn.dropout import Dropout
from pointset.zoo.classifiers import SetClassifier
from pointset.zoo.models import create_model
from pointset.zoo.names import zoo_name
from pointset.zoo.options import ModelOptions

T = TypeVar("T", bound=nn.Module)
HEAD, EMBEDDING, ENCODER = 0x4EAD, 0xE3BED, 0xE4C
"""Numbers of the parts of a model that are not built by the zoo; see `seeded`."""


def parts_of(row: str) -> tuple[str, str]:
    """The zoo's names of the encoder and the pooling of a row."""
    encoder, hyphen, pooling = zoo_name(row).partition("-")
    if not hyphen:
        raise PointsetError(
            f"{quoted(row)} does not name an encoder and a pooling: write for example 'SAB + PMA' or 'sab-pma'"
        )
    return encoder, pooling


def row_model(
    row: str,
    inputs: int,
    options: ModelOptions,
    seed: int,
    head: Callable[[int], nn.Module],
) -> SetClassifier:
    """The encoder and the pooling of a row with `head(width)`, given the total width of the pooled rows."""
    model = create_model("-".join(parts_of(row)), 1, options, inputs=inputs, seed=seed)
    assert isinstance(model, SetClassifier), "a row always has an encoder and a pooling"
    width = next(module.in_features for module in model.head.modules() if isinstance(module, nn.Linear))
    rest = seeded(seed, lambda: nn.Sequential(nn.Flatten(), Dropout(options.dropout), head(width)))
    return SetClassifier(list(model.encoder), model.pool, rest, inputs)


def seeded(seed: int, build: Callable[[], T], part: int = HEAD) -> T:
    """Build a part of a model whose initial weights depend only on (seed, part), not on the other parts."""
    stream = int(np.random.SeedSequence((seed, part)).generate_state(1, np.uint64)[0] >> np.uint64(1))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream)
        return build()


def fully_connected(*widths: int) -> nn.Sequential:
    """Linear layers with ReLUs between them, rows [..., widths[0]] -> [..., widths[-1]]."""
    layers: list[nn.Module] = [nn.Linear(widths[0], widths[1])]
    for before, after in itertools.pairwise(widths[1:]):
        layers += [nn.ReLU(), nn.Linear(before, after)]
    return nn.Sequential(*layers)
