"""Blocks of `pointset.nn` that cannot be built, and what they take besides the usual."""

import pytest
import torch

from pointset import nn
from pointset.configuration import AttentionOptions
from pointset.errors import PointsetError
from pointset.nn.pooling.statistics import StatisticPool
from pointset.nn.scores import DotScore

pytestmark = pytest.mark.usefixtures("unchecked")

X = torch.zeros(2, 5, 8)
HEADS = torch.zeros(2, 4, 5, 3)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: nn.Multihead(3, 3, 10), "dim must be a multiple of heads, got dim=10 and heads=4"),
        (lambda: nn.MAB(3, 3, 12, AttentionOptions(form="paper")), "dim_query=3 must equal dim=12"),
        (lambda: nn.SetNorm(8, groups=3), "dim must be a multiple of groups, got dim=8 and groups=3"),
        (StatisticPool, "statistics of StatisticPool must be a list of max, .*, got "),
        (type("Middle", (StatisticPool,), {"statistics": ("median",)}), "statistics of Middle .*, got .*median"),
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
