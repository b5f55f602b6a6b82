"""Set networks as plain torch modules that know nothing of data: rows in, rows out, masks True at real rows.

Sets of several sizes may also lie end to end, with a `Packed` in place of the mask.

Imports: no other room. Imported by: `evaluation`, `explain`, `export`, `streaming`, `tasks`, `zoo`.
"""

from pointset.nn.attention import Multihead, attend
from pointset.nn.blocks import ISAB, MAB, PMA, SAB, rff
from pointset.nn.encoders.rffp import EquivariantLayer
from pointset.nn.fast.packing import Packed
from pointset.nn.norms import GroupNorm, InstanceNorm, LayerNorm, SetNorm
from pointset.nn.pooling.max import MaxPool
from pointset.nn.pooling.mean import MeanPool
from pointset.nn.pooling.statistics import StatisticPool
from pointset.nn.pooling.sum import SumPool
from pointset.nn.weights import Weights

__all__ = [
    "ISAB",
    "MAB",
    "PMA",
    "SAB",
    "EquivariantLayer",
    "GroupNorm",
    "InstanceNorm",
    "LayerNorm",
    "MaxPool",
    "MeanPool",
    "Multihead",
    "Packed",
    "SetNorm",
    "StatisticPool",
    "SumPool",
    "Weights",
    "attend",
    "rff",
]
