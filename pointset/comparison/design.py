"""What a comparison of two models can tell with more seeds or items."""

from dataclasses import dataclass
from typing import Self

from pointset.comparison.statistics import Spread, critical_t


@dataclass(frozen=True)
class Design:
    """What a comparison of two models can tell, as a function of the numbers of seeds and items."""

    seeds: int
    """Runs of each model that varies; the smaller number, if they differ; 0 if none varies."""
    items: int
    models: int
    """Models whose pairs are compared in the table."""
    level: float
    over_seeds: float
    """Sum over both models of the variance of a run's mean that its seed alone explains."""
    over_items: float
    """Variance over items of the difference that does not change with the seeds."""
    residual: float
    """Sum over both models of the residual mean square."""

    @classmethod
    def of(cls, a: Spread, b: Spread, models: int, level: float) -> Self:
        """The design of a comparison of two models of which both are `known`."""
        seeds = min((one.seeds for one in (a, b) if not one.fixed), default=0)
        items, residual = a.items, a.residual + b.residual
        apart = float((a.item_means - b.item_means).var(ddof=1)) if items > 1 else 0.0
        repeated = a.residual / a.seeds + b.residual / b.seeds
        return cls(
            seeds=seeds,
            items=items,
            models=models,
            level=level,
            over_seeds=max(0.0, a.over_seeds + b.over_seeds - residual / items),
            over_items=max(0.0, apart - repeated),
            residual=residual,
        )

    def resolution(self, seeds: int | None = None, items: int | None = None) -> float:
        """The smallest difference that so many seeds and items call distinguishable; default: those of the design.

        More items alone may leave fewer degrees of freedom; they never tell less than those of the design.
        """
        own = self._reach(self.seeds, self.items)
        found = self._reach(seeds or self.seeds, items or self.items)
        return min(own, found) if (seeds or 0) >= self.seeds or (items or 0) >= self.items else found

    def _reach(self, seeds: int, items: int) -> float:
        """The critical value, as a difference."""
        runs, fewest = max(1, seeds), max(1, seeds - 1)
        of_seeds, of_items, crossed = self.over_seeds / runs, self.over_items / items, self.residual / (runs * items)
        variance = of_seeds + of_items + crossed
        squares = (of_seeds + crossed) ** 2 / fewest + (of_items + crossed) ** 2 / max(1, items - 1)
        freedom = max(variance**2 / squares if squares else items - 1.0, float(fewest))
        return critical_t(freedom, self.level, self.models) * float(variance**0.5)
