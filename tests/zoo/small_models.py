"""Zoo models that are quick to build."""

from torch import nn
from toy import covering_models

import pointset

ALL = [*covering_models(), "isab5-pma4", "sab-pma2", "isab5-max+pma2", "rffp-aggr.set2set", "rff-aggr.settransformer"]

FEW = [name for name in ALL if not name.startswith("isab16-") or name.endswith("-max")]
"""Every pooling once."""
CLASSES = 7


def model_of(name: str, **options) -> nn.Module:
    return pointset.create_model(name, classes=CLASSES, **{"dim": 16, **options}).double().eval()
