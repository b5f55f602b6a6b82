"""Set networks as plain torch modules, independent of datasets: rows in, rows out; masks are True at real rows."""

from pointset.nn.attention import Multihead, attend
from pointset.nn.blocks import ISAB, MAB, PMA, SAB, rff
from pointset.nn.encoders.deepsets import EquivariantLayer
from pointset.nn.norms import LayerNorm, SetNorm
from pointset.nn.parts import Encoder, Pooling
from pointset.nn.pooling.statistics import MaxPool, MeanPool, StatisticPool, SumPool
from pointset.nn.weights import Weights

__all__ = [
    "ISAB",
    "MAB",
    "PMA",
    "SAB",
    "Encoder",
    "EquivariantLayer",
    "LayerNorm",
    "MaxPool",
    "MeanPool",
    "Multihead",
    "Pooling",
    "SetNorm",
    "StatisticPool",
    "SumPool",
    "Weights",
    "attend",
    "rff",
]
