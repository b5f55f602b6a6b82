"""Measure level and power of rules for significant differences between models by simulation.

A simulated table has the predictions of several models, with several seeds each, for a number of items (test shapes).
There is a random effect for each item, for each pair of model and item, for each run, and for each prediction. A
prediction is correct if the sum of its effects and a constant is positive.

The level of a rule is the share of tables of equally accurate models in which it calls at least one pair significantly
different. For the power, the last model is more accurate, and the power is the share of its pairs that are called
significantly different. All rules are computed for many tables at once. `pointset.comparison.statistics` has the
selected rule, and a test compares both implementations.

python scripts/experiments/levels.py                    # takes 7 CPU minutes; writes results/levels/ and the figure
python scripts/experiments/levels.py --tables 100       # a quick simulation, which is only printed
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

import cyclopts
import matplotlib
import numpy as np
from cyclopts import Parameter
from matplotlib.figure import Figure
from numpy import ndarray
from saved import FOLDER, RESULTS, study_table, write_json, write_tables
from scipy import stats

LEVEL = 0.05
RESAMPLES = 1000
MEMORY = 8_000_000
"""Number of predictions that are simulated at a time."""


@dataclass(frozen=True)
class Case:
    """A kind of simulated table."""

    seeds: int
    items: int
    deviations: Sequence[float]
    """Standard deviation over seeds of each model, in units of the noise of one prediction."""
    gap: float = 0.4
    """Advantage of the last model in tables for the power; 0.4 is about three percentage points of accuracy."""
    fixed: int = 0
    """Number of models with equal predictions for all seeds: baselines without a seed."""
    ease: float = 2.0
    """The constant in the sum: 2 gives an accuracy of 79 %, and 5 of 98 %."""


CASES = {
    "2 models, 3 seeds": Case(3, 500, (0.1, 0.1)),
    "2 models, 3 seeds, one with 3x deviation": Case(3, 500, (0.3, 0.1)),
    "2 models, 5 seeds, one with 3x deviation": Case(5, 500, (0.3, 0.1)),
    "5 models, 2 seeds": Case(2, 500, (0.1,) * 5),
    "5 models, 3 seeds": Case(3, 500, (0.1,) * 5),
    "5 models, 5 seeds": Case(5, 500, (0.1,) * 5),
    "5 models, 3 seeds, one with 3x deviation": Case(3, 500, (0.3, *(0.1,) * 4)),
    "5 models, 5 seeds, one with 3x deviation": Case(5, 500, (0.3, *(0.1,) * 4)),
    "5 models, 3 seeds, seeds dominate, one with 3x deviation": Case(3, 2000, (1.2, *(0.4,) * 4), 1.2),
    "5 models, 5 seeds, seeds dominate, one with 3x deviation": Case(5, 2000, (1.2, *(0.4,) * 4), 1.2),
    "7 models, 3 seeds, 2,000 shapes, one with 3x deviation": Case(3, 2000, (0.3, *(0.1,) * 6), 0.3),
    "7 models, 3 seeds, 2,000 shapes, all deviations differ": Case(3, 2000, (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.1), 0.4),
    "5 models, 3 seeds, no deviation over seeds": Case(3, 500, (0.0,) * 5),
    "5 models, 3 seeds, one without seeds": Case(3, 500, (0.0, *(0.2,) * 4), 0.5, fixed=1),
    "2 models, 2 seeds, one without seeds": Case(2, 500, (0.0, 0.3), 1.5, fixed=1),
    "2 models, 3 seeds, 2,000 shapes, one without seeds": Case(3, 2000, (0.0, 0.3), 0.8, fixed=1),
    "5 models, 3 seeds, 20 shapes": Case(3, 20, (0.1,) * 5, 2.5),
    "5 models, 5 seeds, 20 shapes, one with 3x deviation": Case(5, 20, (0.3, *(0.1,) * 4), 2.5),
    "5 models, 3 seeds, 98 % accuracy": Case(3, 500, (0.1,) * 5, 1.0, ease=5.0),
    "20 models, 3 seeds, one with 3x deviation": Case(3, 500, (0.3, *(0.1,) * 19), 0.6),
    "20 models, 5 seeds, one with 3x deviation": Case(5, 500, (0.3, *(0.1,) * 19), 0.6),
}
app = cyclopts.App(name="levels.py", help=__doc__, result_action="return_value")


def simulate(rng: np.random.Generator, case: Case, tables: int, gap: float) -> ndarray:
    """Return float32 [tables, models, seeds, items], 1 for a correct prediction; the last model is better by `gap`."""
    models = len(case.deviations)

    def normal(*shape: int) -> ndarray:
        return rng.standard_normal((tables, *shape), dtype=np.float32)

    answers = case.ease + 2 * normal(1, 1, case.items) + normal(models, 1, case.items)
    answers = answers + normal(models, case.seeds, 1) * np.reshape(case.deviations, (-1, 1, 1)).astype(np.float32)
    noise = normal(models, case.seeds, case.items)
    noise[:, : case.fixed] = noise[:, : case.fixed, :1]
    answers = answers + noise
    answers[:, -1] += gap
    return (answers > 0).astype(np.float32)


@dataclass(frozen=True)
class Parts:
    """The inputs of the rules for many tables with P pairs of models, `first` and `second`."""

    right: ndarray
    first: ndarray
    second: ndarray
    difference: ndarray
    """[tables, P]"""
    over_seeds: ndarray
    """Variance of the means of the runs, [tables, models]."""
    over_items: ndarray
    """Variance over items of the difference of item means, divided by the number of items, [tables, P]."""
    doubled: ndarray
    """The residual variance, which is a part of both variances, [tables, P]."""

    @classmethod
    def of(cls, right: ndarray) -> "Parts":
        """The variance components of all tables."""
        _, models, seeds, items = right.shape
        first, second = np.array([*itertools.combinations(range(models), 2)]).T
        runs, means = right.mean(axis=3, dtype=np.float64), right.mean(axis=2, dtype=np.float64)
        whole = runs.mean(axis=2)
        over_seeds = runs.var(axis=2, ddof=1)
        centred = means - whole[:, :, None]
        covariance = centred @ centred.transpose(0, 2, 1) / (items - 1)
        variance = np.diagonal(covariance, axis1=1, axis2=2)
        apart = variance[:, first] + variance[:, second] - 2 * covariance[:, first, second]
        total = items * seeds * whole * (1 - whole)  # sum of squares of zeros and ones about their mean
        rest = total - items * (seeds - 1) * over_seeds - seeds * variance * (items - 1)
        residual = np.maximum(rest, 0) / ((seeds - 1) * (items - 1))
        doubled = (residual[:, first] + residual[:, second]) / (seeds * items)
        return cls(right, first, second, whole[:, first] - whole[:, second], over_seeds, apart / items, doubled)

    @property
    def fixed(self) -> ndarray:
        """True for models with equal predictions for all seeds, [tables, models]."""
        return (self.right == self.right[:, :, :1]).all(axis=(2, 3))

    def fewest(self, a: ndarray, b: ndarray) -> ndarray:
        """The minimum of the degrees of freedom of the variance over seeds, S - 1 for S seeds."""
        return np.full(np.shape(a + b), self.seeds - 1.0)

    @property
    def seeds(self) -> int:
        """Number of runs of each model."""
        return int(self.right.shape[2])

    @property
    def items(self) -> int:
        """Number of items of each run."""
        return int(self.right.shape[3])


Tested = tuple[ndarray, ndarray]
"""|t| and degrees of freedom of each pair of each table, [tables, P]."""


def crossed(parts: Parts, variances: ndarray, freedom: Callable[[ndarray, ndarray], ndarray], floor: float) -> Tested:
    """Student's t for the variances over seeds and items together.

    `freedom` returns the degrees of freedom of the variance over seeds from v / S of both models: the variance over
    seeds, divided by the number of seeds. `floor` is the minimum of the degrees of freedom of the test.
    """
    a, b = (variances[:, models] / parts.seeds for models in (parts.first, parts.second))
    seeds = a + b
    items = np.maximum(parts.over_items, ((1 + np.abs(parts.difference)) / parts.items) ** 2)
    variance = np.maximum(seeds + items - parts.doubled, np.maximum(seeds, items))
    squares = seeds**2 / freedom(a, b) + items**2 / (parts.items - 1)
    return np.abs(parts.difference) / np.sqrt(variance), np.maximum(variance**2 / squares, min(floor, parts.items - 1))


def fewest(parts: Parts) -> Tested:
    """Student's t with S - 1 degrees of freedom of the variance over seeds, the minimum."""
    return crossed(parts, parts.over_seeds, parts.fewest, parts.seeds - 1)


def welch(parts: Parts) -> Tested:
    """Student's t with Welch's estimate of the degrees of freedom of the variance over seeds, at least S - 1."""
    n = parts.seeds - 1

    def freedom(a: ndarray, b: ndarray) -> ndarray:
        return np.where(a + b > 0, n * (a + b) ** 2 / np.maximum(a**2 + b**2, 1e-300), n)

    return crossed(parts, parts.over_seeds, freedom, n)


def raised(parts: Parts) -> Tested:
    """As `fewest`, but with variances over seeds that are at least half of the median of all models that vary."""
    varying = np.where(parts.fixed, np.nan, parts.over_seeds)
    floor = np.nan_to_num(np.nanmedian(varying, axis=1, keepdims=True)) / 2
    variances = np.where(parts.fixed, 0.0, np.maximum(parts.over_seeds, floor))
    t, freedom = crossed(parts, variances, parts.fewest, parts.seeds - 1)
    alone = (~parts.fixed).sum(axis=1, keepdims=True) == 1
    return t, np.where(alone, np.minimum(freedom, cochran(parts, variances)), freedom)


def cochran(parts: Parts, variances: ndarray) -> ndarray:
    """Degrees of freedom whose critical value is the mean of those of seeds and items, weighted by both variances."""
    freedoms = np.geomspace(parts.seeds - 1, parts.items - 1, 400)
    critical = stats.t.ppf(1 - LEVEL / 2, freedoms)
    seeds = (variances[:, parts.first] + variances[:, parts.second]) / parts.seeds
    items = np.maximum(parts.over_items, ((1 + np.abs(parts.difference)) / parts.items) ** 2)
    return np.interp((seeds * critical[0] + items * critical[-1]) / (seeds + items), critical[::-1], freedoms[::-1])


def larger_pooled(parts: Parts) -> Tested:
    """Student's t with the larger of a model's variance over seeds and the mean of all models, by Welch's estimate."""
    mean = parts.over_seeds.mean(axis=1, keepdims=True)
    n, models = parts.seeds - 1, parts.over_seeds.shape[1]

    def freedom(a: ndarray, b: ndarray) -> ndarray:
        own_a, own_b = (np.where(v > mean / parts.seeds, n, models * n) for v in (a, b))
        return np.where(a + b > 0, (a + b) ** 2 / np.maximum(a**2 / own_a + b**2 / own_b, 1e-300), n)

    return crossed(parts, np.maximum(parts.over_seeds, mean), freedom, n)


def tail(tested: Tested) -> ndarray:
    """Two-sided p-values of Student's t."""
    return 2 * stats.t.sf(*tested)


def holm(p: ndarray) -> ndarray:
    """True for the pairs of each table that differ significantly after Holm's correction of the p-values."""
    order = p.argsort(axis=1)
    adjusted = np.maximum.accumulate(np.take_along_axis(p, order, axis=1) * np.arange(p.shape[1], 0, -1), axis=1)
    rejected = np.empty(p.shape, bool)
    np.put_along_axis(rejected, order, adjusted < LEVEL, axis=1)
    return rejected


def range_test(tested: Tested) -> ndarray:
    """True for the pairs that differ significantly by the studentised range of all models (Games and Howell 1976)."""
    t, freedom = tested
    models = round((1 + (1 + 8 * t.shape[1]) ** 0.5) / 2)
    grid, critical = _range_critical(models)
    return t * 2**0.5 > np.interp(1 / np.maximum(freedom, 1.0), grid, critical)


@cache
def _range_critical(models: int) -> tuple[ndarray, ndarray]:
    """Critical values of the studentised range at inverse degrees of freedom from 0 to 1."""
    freedoms = np.array([1e5, 200, 60, 30, 20, 14, 10, 8, 6, 5, 4, 3.5, 3, 2.5, 2, 1.75, 1.5, 1.25, 1])
    return 1 / freedoms, np.array([stats.studentized_range.ppf(1 - LEVEL, models, freedom) for freedom in freedoms])


def both_tests(parts: Parts) -> ndarray:
    """The larger of two p-values: over seeds (as blocks, one variance for all models), and over items (normal)."""
    runs = parts.right.mean(axis=3, dtype=np.float64)
    residuals = runs - runs.mean(axis=2, keepdims=True) - runs.mean(axis=1, keepdims=True)
    residuals = residuals + runs.mean(axis=(1, 2), keepdims=True)
    freedom = (runs.shape[1] - 1) * (runs.shape[2] - 1)
    error = np.sqrt((residuals**2).sum(axis=(1, 2)) / freedom * 2 / parts.seeds)[:, None]
    apart = np.abs(parts.difference)
    over_seeds = 2 * stats.t.sf(apart / np.maximum(error, 1e-12), freedom)
    return np.maximum(over_seeds, 2 * stats.norm.sf(apart / np.sqrt(np.maximum(parts.over_items, 1e-12))))


def permutation(parts: Parts) -> ndarray:
    """The larger of two p-values: for permutations of the runs of two models, and of their predictions by item."""
    runs = parts.right.mean(axis=3, dtype=np.float64)
    both = np.concatenate([runs[:, parts.first], runs[:, parts.second]], axis=2)  # [tables, P, 2 S]
    chosen = np.array([*itertools.combinations(range(2 * parts.seeds), parts.seeds)])
    apart = 2 * both[..., chosen].mean(axis=3) - both.sum(axis=2, keepdims=True) / parts.seeds
    over_seeds = (np.abs(apart) >= np.abs(parts.difference)[..., None] - 1e-9).mean(axis=2)
    squares = parts.over_items * (parts.items - 1) / parts.items + parts.difference**2 / parts.items  # of the signs
    return np.maximum(over_seeds, 2 * stats.norm.sf(np.abs(parts.difference) / np.sqrt(np.maximum(squares, 1e-12))))


def bootstrap(parts: Parts) -> ndarray:
    """The p-values of a normal test with the standard deviation of the difference over resamples of items and seeds."""
    rng = np.random.default_rng(1)
    tables, models, seeds, items = parts.right.shape
    drawn = rng.multinomial(items, np.full(items, 1 / items), RESAMPLES).astype(np.float32).T / items
    weights = rng.multinomial(seeds, np.full(seeds, 1 / seeds), (RESAMPLES, models)).astype(np.float32) / seeds
    means = np.empty((tables, RESAMPLES, models), np.float32)
    for table in range(tables):
        resampled = parts.right[table].reshape(-1, items) @ drawn  # [models x seeds, resamples]
        means[table] = np.einsum("msr,rms->rm", resampled.reshape(models, seeds, RESAMPLES), weights)
    spread = np.stack(
        [(means[..., a] - means[..., b]).std(axis=1) for a, b in zip(parts.first, parts.second, strict=True)]
    )
    return 2 * stats.norm.sf(np.abs(parts.difference) / np.maximum(spread.T, 1e-12))


CHOSEN = "crossed, fewest degrees of freedom, raised variances, range"
RULES: dict[str, Callable[[Parts], ndarray]] = {
    "two tests, one variance": lambda parts: holm(both_tests(parts)),
    "crossed, fewest degrees of freedom, Holm": lambda parts: holm(tail(fewest(parts))),
    "crossed, Satterthwaite with a floor, Holm": lambda parts: holm(tail(welch(parts))),
    "crossed, fewest degrees of freedom, range": lambda parts: range_test(fewest(parts)),
    "crossed, fewest degrees of freedom, raised variances, Holm": lambda parts: holm(tail(raised(parts))),
    CHOSEN: lambda parts: range_test(raised(parts)),
    "crossed, variance per model or mean, range": lambda parts: range_test(larger_pooled(parts)),
    "permutation of seeds and shapes, Holm": lambda parts: holm(permutation(parts)),
    "hierarchical bootstrap, Holm": lambda parts: holm(bootstrap(parts)),
}
"""The rules that are compared. "Range" is the studentised range of all models in place of Holm's correction."""


def measure(case: Case, tables: int, gap: float) -> dict[str, float]:
    """Return the level of each rule, or its power if `gap` is not 0."""
    rng, done = np.random.default_rng(0), 0
    found: dict[str, list[ndarray]] = {rule: [] for rule in RULES}
    while done < tables:
        size = max(1, MEMORY // (len(case.deviations) * case.seeds * case.items))
        parts = Parts.of(simulate(rng, case, min(size, tables - done), gap))
        done += len(parts.right)
        last = parts.second == len(case.deviations) - 1
        for rule, rejects in RULES.items():
            different = rejects(parts)
            if gap:
                found[rule].append((different & (parts.difference < 0))[:, last].mean(axis=1))
            else:
                found[rule].append(np.any(different, axis=1))
    return {rule: float(np.mean(np.concatenate(values))) for rule, values in found.items()}


def draw(results: Mapping[str, Mapping[str, Mapping[str, float]]], path: Path) -> None:
    """Draw a dot for the level in each case, and a bar for the mean power, for each rule."""
    matplotlib.rcParams["svg.hashsalt"] = "levels"  # makes the file reproducible
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    titles = {"level": "level %; a dot is a case", "power": "mean power %"}
    for axes, (what, title) in zip(panels, titles.items(), strict=True):
        for place, rule in enumerate(RULES):
            shares = 100 * np.array([case[what][rule] for case in results.values()])
            color = "#0072b2" if rule == CHOSEN else "#888888"
            if what == "level":
                axes.plot(shares, np.full(len(shares), place), "o", ms=4.5, color=color, alpha=0.6, mew=0)
            else:
                axes.barh(place, shares.mean(), 0.5, color=color)
        axes.set_yticks(range(len(RULES)), list(RULES), fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlabel(title, fontsize=8)
    panels[0].invert_yaxis()
    panels[0].axvline(100 * LEVEL, color="#1c1c1c", lw=0.8)
    figure.savefig(path, metadata={"Date": None})


@app.default
def levels(
    *, tables: Annotated[int, Parameter(help="Number of tables for a level; a quarter of them for the power.")] = 10_000
) -> None:
    """Simulate all cases and print level and power; write them and their figure for at least 10,000 tables."""
    results = {}
    for name, case in CASES.items():
        results[name] = {"level": measure(case, tables, 0.0), "power": measure(case, tables // 4, case.gap)}
        shown = (f"{100 * results[name]['level'][rule]:.1f}/{100 * results[name]['power'][rule]:.0f}" for rule in RULES)
        print(name, *shown, sep="  ", flush=True)
    if tables >= 10_000:
        write(results, tables)


def write(results: Mapping[str, Mapping[str, Mapping[str, float]]], tables: int) -> None:
    """Write levels and powers, their figure, and the tables of the results page."""
    write_json(RESULTS / "levels" / "levels.json", {"tables": tables, "cases": results})
    draw(results, FOLDER / "figures" / "levels.svg")
    write_tables("levels", [rule_table(results), case_table(results)])


def rule_table(results: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    """The table of the largest level, the number of cases above `LEVEL` and the mean power of each rule."""
    lines = []
    for rule in RULES:
        levels = [case["level"][rule] for case in results.values()]
        power = [case["power"][rule] for case in results.values()]
        lines.append(
            [rule, f"{100 * max(levels):.1f}", str(sum(one > LEVEL for one in levels)), f"{100 * np.mean(power):.1f}"]
        )
    return study_table(lines, ["rule", "largest level %", "cases above 5 %", "mean power %"])


def case_table(results: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    """The table of level and power of the first two rules and of the selected rule, in each case."""
    shown = [*list(RULES)[:2], CHOSEN]
    lines = [
        [name, *(f"{100 * case[what][rule]:.1f}" for what in ("level", "power") for rule in shown)]
        for name, case in results.items()
    ]
    heads = [f"{what} %, {rule}" for what in ("level", "power") for rule in ("two tests", "Holm", "selected")]
    return study_table(lines, ["case", *heads])


if __name__ == "__main__":
    app()
