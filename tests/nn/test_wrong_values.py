"""The public blocks of `pointset.nn` check their arguments, and name the wrong one."""

import inspect
import math

import pytest
import torch

from pointset import nn
from pointset.configuration import AttentionOptions
from pointset.errors import PointsetError
from pointset.inputs import InputError
from pointset.nn.pooling.statistics import StatisticPool
from pointset.nn.scores import DotScore

pytestmark = pytest.mark.usefixtures("unchecked")

X = torch.zeros(2, 5, 8)
MASK = torch.ones(2, 5, dtype=torch.bool)
HEADS = torch.zeros(2, 4, 5, 3)
MADE = {
    "ISAB": (8, 8, 3),
    "MAB": (8, 8, 8),
    "PMA": (8, 2),
    "SAB": (8, 8),
    "EquivariantLayer": (8, 8),
    "MaxPool": (),
    "MeanPool": (),
    "Multihead": (8, 8, 8),
    "SumPool": (),
}
"""The modules, and the arguments that they are made with."""
WRONG = [None, "x", -1, 0, 1.5, math.nan, True, [], {}, object(), 2**70, torch.zeros(3), [1, "a"], [-1], [0.5]]


@pytest.mark.parametrize("name", MADE)
def test_a_message_names_the_wrong_input(name):
    module = getattr(nn, name)(*MADE[name])
    known = {"X": X, "Y": X, "Z": X, "mask": MASK, "query_mask": MASK}
    right = {argument: known[argument] for argument in inspect.signature(module.forward).parameters}
    module(**right)
    for argument in right:
        for value in WRONG[1:] if "mask" in argument else WRONG:
            with pytest.raises(InputError, match=rf"^{argument.removeprefix('query_')} must be .*, got "):
                module(**{**right, argument: value})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: nn.Multihead(3, 3, 10), "dim must be a multiple of heads, got dim=10 and heads=4"),
        (lambda: nn.MAB(3, 3, 12, AttentionOptions(form="paper")), "dim_query=3 must equal dim=12"),
        (lambda: nn.SAB(4, 8)(X), r"X must be \[B, n, 4\], got float32 \[2, 5, 8\]"),
        (lambda: nn.ISAB(8, 8)(X[0]), r"X must be \[B, n, 8\], got float32 \[5, 8\]"),
        (lambda: nn.PMA(8)(X.double()), r"Z is float64 \[2, 5, 8\] and the block computes in float32"),
        (lambda: nn.MAB(8, 4, 8)(X, X), r"Y must be \[B, n, 4\], got float32 \[2, 5, 8\]"),
        (
            lambda: nn.MAB(8, 8, 8)(X[:1].repeat(4, 1, 1), X),
            r"same number of sets.* \[4, 5, 8\] and float32 \[2, 5, 8\]",
        ),
        (lambda: nn.SetNorm(8, groups=3), "dim must be a multiple of groups, got dim=8 and groups=3"),
        (StatisticPool, "statistics of StatisticPool must be a list of max, .*, got "),
        (type("Middle", (StatisticPool,), {"statistics": ("median",)}), "statistics of Middle .*, got .*median"),
        (lambda: nn.MeanPool()(X, MASK[:, :4]), r"mask must be bool \[2, 5\].*, got bool \[2, 4\]"),
        (lambda: nn.MeanPool()(X, MASK.float()), r"mask must be bool \[2, 5\].*, got float32 \[2, 5\]"),
    ],
)
def test_arguments_that_contradict_each_other_are_an_error(make, words):
    with pytest.raises(PointsetError, match=words):
        make()


def test_queries_of_batch_size_one_are_shared_by_all_keys():
    assert nn.attend(HEADS[:1, :, :2], HEADS, HEADS[..., :1], DotScore(12), nn.Weights())[0].shape == (2, 4, 2, 1)


def test_mixed_precision_may_give_other_types():
    with torch.autocast("cpu", torch.bfloat16):
        assert nn.SAB(8, 8)(X.bfloat16()).shape == X.shape
