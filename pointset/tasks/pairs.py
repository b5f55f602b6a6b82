"""What a difference between two rows is worth, over seeds."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from pointset.comparison.statistics import LEVEL, Interval, holm, seed_error


@dataclass(frozen=True)
class SeedPair:
    """Two rows under the same seeds, that is on the same sets; differences are first minus second."""

    first: str
    second: str
    difference: float
    """Of the means over the seeds that both have."""
    seed_differences: list[float]
    over_seeds: Interval | None
    """95 % interval of the difference for new seeds; None for a single seed."""
    p: float | None
    """Paired t-test over seeds; None for a single seed."""
    p_holm: float | None
    """p after Holm's correction for the number of pairs compared."""

    @property
    def distinguishable(self) -> bool:
        """Whether p_holm is below 0.05."""
        return self.p_holm is not None and self.p_holm < LEVEL

    def reversed(self) -> "SeedPair":
        """The same pair seen from the second row."""
        return replace(
            self,
            first=self.second,
            second=self.first,
            difference=-self.difference,
            seed_differences=[-difference for difference in self.seed_differences],
            over_seeds=self.over_seeds and self.over_seeds.negated(),
        )


def compare_rows(figures: Mapping[str, Mapping[int, float]]) -> list[SeedPair]:
    """Compare every two rows by the figure that ranks them.

    The error is that of the two rows themselves (`seed_error` of two models is the paired t-test), not one of the whole
    table: where a mean pooling is off by 2 and a max pooling by 0.1, their runs differ by other amounts too, and a
    common deviation would hide every difference between the good rows.

    Args:
        figures: for each row, and each of its seeds, the figure.

    Returns:
        One pair for every two rows that share a seed, the rows in the given order.
    """
    pairs = [
        _compare(first, second, figures[first], figures[second])
        for first, second in itertools.combinations(figures, 2)
        if figures[first].keys() & figures[second].keys()
    ]
    tested = [pair for pair in pairs if pair.p is not None]
    corrected = dict(zip(map(id, tested), holm([pair.p for pair in tested if pair.p is not None]), strict=True))
    return [replace(pair, p_holm=corrected.get(id(pair))) for pair in pairs]


def _compare(first: str, second: str, ours: Mapping[int, float], theirs: Mapping[int, float]) -> SeedPair:
    seeds = [seed for seed in ours if seed in theirs]
    values = np.array([[run[seed] for seed in seeds] for run in (ours, theirs)])
    apart = [float(difference) for difference in values[0] - values[1]]
    difference, error = fmean(apart), seed_error(values)
    return SeedPair(
        first=first,
        second=second,
        difference=difference,
        seed_differences=apart,
        over_seeds=error.interval(difference, len(seeds)) if error else None,
        p=error.p_value(difference, len(seeds)) if error else None,
        p_holm=None,
    )
