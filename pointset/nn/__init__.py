"""Building blocks of set networks as torch modules: rows [B, n, d] and a mask [B, n] in, rows out.

A mask is True at real rows, None if all rows are real. Encoders and poolings are exported under their class names, with
the layers, scores, weights functions and norms that they consist of.
"""

from pointset.configuration import AttentionOptions
from pointset.nn.attention import Multihead, attend
from pointset.nn.blocks import ISAB, MAB, PMA, SAB, PooledSeeds, rff
from pointset.nn.context import DGCNN, PointNet
from pointset.nn.encoders.dumlp import DualMLPEncoder, InteractionLayer
from pointset.nn.encoders.isab import ISABEncoder
from pointset.nn.encoders.none import NoEncoder
from pointset.nn.encoders.rff import RFFEncoder
from pointset.nn.encoders.rffp import EquivariantEncoder, EquivariantLayer
from pointset.nn.encoders.sab import SABEncoder
from pointset.nn.layers import Dropout
from pointset.nn.modules import Encoder, Pooling
from pointset.nn.norms import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, NoNorm, SetNorm
from pointset.nn.pooling.aggregation import AggregationPool
from pointset.nn.pooling.asp import AttentiveStatisticsPool
from pointset.nn.pooling.cov import CovariancePool
from pointset.nn.pooling.dumlp import DualMLP, DualMLPPool
from pointset.nn.pooling.fspool import FSPool
from pointset.nn.pooling.gem import GeMPool
from pointset.nn.pooling.joined import JoinedPool
from pointset.nn.pooling.pma import AttentionPool
from pointset.nn.pooling.pswe import FPSWEPool, PSWEPool
from pointset.nn.pooling.repset import RepSetPool
from pointset.nn.pooling.statistics import MaxPool, MeanPool, StatisticPool, SumPool
from pointset.nn.pooling.topk import TopKPool
from pointset.nn.scores import AdditiveScore, BilinearScore, DotScore
from pointset.nn.simplex.bounded import constrained_softmax, constrained_sparsemax
from pointset.nn.simplex.unbounded import entmax15, softmax, sparsemax
from pointset.nn.weights import Weights

__all__ = [
    "DGCNN",
    "ISAB",
    "MAB",
    "PMA",
    "SAB",
    "AdditiveScore",
    "AggregationPool",
    "AttentionOptions",
    "AttentionPool",
    "AttentiveStatisticsPool",
    "BatchNorm",
    "BilinearScore",
    "CovariancePool",
    "DotScore",
    "Dropout",
    "DualMLP",
    "DualMLPEncoder",
    "DualMLPPool",
    "Encoder",
    "EquivariantEncoder",
    "EquivariantLayer",
    "FPSWEPool",
    "FSPool",
    "GeMPool",
    "GroupNorm",
    "ISABEncoder",
    "InstanceNorm",
    "InteractionLayer",
    "JoinedPool",
    "LayerNorm",
    "MaxPool",
    "MeanPool",
    "Multihead",
    "NoEncoder",
    "NoNorm",
    "PSWEPool",
    "PointNet",
    "PooledSeeds",
    "Pooling",
    "RFFEncoder",
    "RepSetPool",
    "SABEncoder",
    "SetNorm",
    "StatisticPool",
    "SumPool",
    "TopKPool",
    "Weights",
    "attend",
    "constrained_softmax",
    "constrained_sparsemax",
    "entmax15",
    "rff",
    "softmax",
    "sparsemax",
]
