"""Seeds of PMA that are computed from statistics of the set, instead of trained vectors."""

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pointset.configuration import SeedSource
from pointset.nn.fast.packing import Layout
from pointset.nn.masks import STATISTICS, StatisticName

SOURCES: dict[SeedSource, tuple[StatisticName, ...]] = {
    "pooled": ("mean",),
    "mean": ("mean",),
    "max": ("max",),
    "statistics": ("mean", "max", "min", "deviation"),
}


class PooledSeeds(nn.Module):
    """S_t = statistic_t(Z) W_t + b_t for k seeds, which use the statistics of the source in turn.

    Args:
        dim: width d of Z and of the seeds.
        seeds: number k of seeds.
        source: "mean" (or "pooled"), "max" or "statistics".
    """

    def __init__(self, dim: int, seeds: int, source: SeedSource = "mean") -> None:
        super().__init__()
        cycle = SOURCES[source]
        self.statistics = tuple(cycle[seed % len(cycle)] for seed in range(seeds))
        """The statistic of each seed."""
        self.maps = nn.Linear(dim, seeds * dim)

    def forward(self, Z: Float[Tensor, "*rows d"], mask: Layout | None = None) -> Float[Tensor, "B k d"]:
        """Return the seeds of each set; the mask is True at real rows."""
        return self.of_statistics({name: STATISTICS[name](Z, mask) for name in set(self.statistics)})

    def of_statistics(self, pooled: Mapping[StatisticName, Float[Tensor, "B 1 d"]]) -> Float[Tensor, "B k d"]:
        """The seeds, from the statistics of each set by name."""
        rows = torch.cat([pooled[name] for name in self.statistics], dim=1)
        maps, bias = self.maps.weight.unflatten(0, (rows.shape[1], -1)), self.maps.bias.unflatten(0, rows.shape[1:])
        return torch.einsum("bkd,ked->bke", rows, maps) + bias
