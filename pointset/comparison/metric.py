"""A metric of a comparison, and its published values."""

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Metric:
    """A metric of finished runs, and its format in tables."""

    name: str
    higher_is_better: bool
    digits: int = 4
    """Decimals in tables."""
    share: bool = False
    """True for a share from 0 to 1, which is written in per cent."""
    head: str = ""
    """Header of its column in a table; default: the name."""
    shown: bool = True
    """Show it in tables; results.csv has every metric."""
    brief: bool = True
    """Show it on a terminal."""
    spread: bool = True
    """Show the deviation over seeds with the mean."""
    detailed: bool = True
    """Show columns for its interval and its published values."""

    @property
    def title(self) -> str:
        """Title in the header of a table and on the axis of a chart."""
        return self.head or self.name

    def write(self, value: float, deviation: float | None = None, sign: str = "") -> str:
        """Format a value, with its deviation if given; sign "+" always writes the sign, for differences."""
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
    """Mean over the runs, in the unit of the metric: accuracies are shares from 0 to 1."""
    deviation: float
    """Standard deviation over the runs."""
    runs: int
    """Number of runs."""
