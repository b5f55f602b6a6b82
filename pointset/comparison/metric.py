"""A metric of a comparison, and values of it that others have published."""

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Metric:
    """One number of a finished run, and how it is written."""

    name: str
    higher_is_better: bool
    digits: int = 4
    """Behind the point, in tables."""
    share: bool = False
    """Whether it lies from 0 to 1 and is written in per cent."""
    head: str = ""
    """Of its column in a table; the name when not given."""
    shown: bool = True
    """Whether tables have it at all; results.csv has every metric."""
    brief: bool = True
    """Whether a terminal has room for it."""
    spread: bool = True
    """Whether the deviation over seeds stands beside the mean."""
    detailed: bool = True
    """Whether its interval and what others publish of it have columns."""

    @property
    def title(self) -> str:
        """As a table's head and the axis of a chart have it."""
        return self.head or self.name

    def write(self, value: float, deviation: float | None = None, sign: str = "") -> str:
        """A value, with its deviation where there is one; sign "+" writes that of a difference."""
        scale = 100 if self.share else 1
        text = f"{scale * value:{sign}.{self.digits}f}"
        return text if deviation is None else f"{text} ± {scale * deviation:.{self.digits}f}"


class Published(NamedTuple):
    """A published value of a metric.

    Example:
        >>> from pointset.comparison.metric import Published
        >>> Published(mean=0.8915, deviation=0.0144, runs=5).runs
        5
    """

    mean: float
    """Over the runs, in the unit of the metric: accuracies are shares from 0 to 1."""
    deviation: float
    """Standard deviation over the runs."""
    runs: int
    """How many there were."""
