"""The sections of every report; a task adds its own sections."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from pointset.comparison.metric import Metric, Row, Size
from pointset.comparison.report import charts
from pointset.comparison.results import Comparison, Results
from pointset.comparison.statistics import NOT_DISTINGUISHABLE, Pair, write_p
from pointset.comparison.tables import Table, write_interval
from pointset.viz.writing import as_png, as_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PARETO_TEXT = (
    "Multiply-adds are counted; times were measured on the machine below. The grey line joins the rows that no other "
    "row beats on both axes"
)
PARETO_BARS = "; bars are 95 % intervals over seeds"
HOLM = "Holm's correction for the number of pairs"
SEEDS_DIFFER = "other seeds of the same models may differ as much"


@dataclass
class Tile:
    """A small picture in a grid, with a title and a text below it."""

    picture: Figure
    title: str
    text: str = ""


@dataclass
class Section:
    """A heading, a text, and a chart, tiles or a table."""

    title: str
    text: str
    chart: Figure | None = None
    name: str = ""
    """Stem of the file names of chart and tiles."""
    table: Table = field(default_factory=list)
    tiles: Sequence[Tile] = ()

    @cached_property
    def files(self) -> dict[str, bytes]:
        """Contents of its files in figures/, by name: the chart as SVG, and tiles as PNG."""
        files = {} if self.chart is None else {f"{self.name}.svg": as_svg(self.chart, self.name).encode()}
        return files | {name: as_png(tile.picture, dpi=140, colors=64) for name, tile in self.named_tiles}

    @property
    def named_tiles(self) -> list[tuple[str, Tile]]:
        """The tiles with the names of their files."""
        return [(f"{self.name}-{number}.png", tile) for number, tile in enumerate(self.tiles, start=1)]


def sections(comparison: Comparison) -> Iterator[Section]:
    """All sections of the report that have content."""
    task = comparison.experiment.task
    by_size = [results for size in task.sizes if len(results := comparison.results(size))]
    for results in by_size:
        for make in {**_makers(comparison, results), **task.sections(results)}.values():
            yield from _made(make, results.points, several=len(task.sizes) > 1)


def _made(make: Callable[[], Iterable[Section]], size: Size = None, several: bool = False) -> Iterator[Section]:
    """The sections of a maker, with the size in their names."""
    for section in make():
        section.title += f", {size:,} points" if several else ""
        section.name += f"-n{size}" if section.name and size is not None else ""
        yield section


def _makers(comparison: Comparison, results: Results) -> dict[str, Callable[[], Iterable[Section]]]:
    """The sections of one size that every task has."""
    metric = results.metric
    tested, cost = "Which models are distinguishable", f"{_heading(metric)} against cost"

    def pairs() -> Iterator[Section]:
        if compared := comparison.pairs.get(results.points):
            text = pairs_text(compared, metric, comparison.experiment.task.pooled)
            yield Section(tested, text, table=pair_table(compared, metric))

    def pareto() -> Iterator[Section]:
        if (drawn := charts.pareto(results)) is not None:
            text = PARETO_TEXT + PARETO_BARS * _has_intervals([*results.rows.values()])
            yield Section(cost, text + ".", drawn, "pareto")

    return {tested: pairs, cost: pareto}


def _heading(metric: Metric) -> str:
    return metric.name[:1].upper() + metric.name[1:]


def _has_intervals(rows: Iterable[Row]) -> bool:
    return any(summary.interval for row in rows for summary in row.metrics.values())


def costs_text(rows: Sequence[Row]) -> str:
    """The units of the cost columns, without those that were not measured."""
    counted = "Mult-adds and milliseconds of one set; memory of one training step; seconds of one training"
    which = " (processor time without a GPU)."
    return (counted if any(row.cost for row in rows) else "Seconds of one training") + which


def pairs_text(pairs: Sequence[Pair], metric: Metric, pooled: bool) -> str:
    """Explain the tests in the table of pairs, and the rule for distinguishable pairs."""
    unit = " in points of per cent" * metric.share
    lone = [pair.p_seeds is None for pair in pairs]
    shapes = pairs[0].over_shapes is not None
    text = f"Differences of {metric.name}{unit}. "
    if not all(lone):
        error = "one standard error for all models" if pooled else "a standard error for each pair"
        text += f"Over seeds: 95 % interval by Student's t, with seeds as blocks and {error}. "
        if pooled and len({pair.first for pair in pairs}) > 1:
            text += (
                "If one model varies three times as much as the others, that rule is wrong in 8 to 12 % of tables of "
            )
            text += "equal models, in place of 5: `pointset judge` tests without it. "
    if shapes:
        averaged, first = ("", "") if all(lone) else (" averaged over seeds", " of the first seed")
        text += f"Over test shapes: 95 % interval of a paired bootstrap of the difference{averaged}. "
        text += f"McNemar: exact test of the two runs{first}. "
    both = "larger of the p-values over seeds and over shapes" if shapes else "p-value over seeds"
    rules = [f"A pair is distinguishable when the {both} is below 0.05 after {HOLM}."] * (not all(lone))
    if any(lone) and shapes:
        rules += [f"With a single seed, McNemar's test, after {HOLM}, tells if the two runs differ; {SEEDS_DIFFER}."]
    elif any(lone):
        rules += ["With a single seed, no pair is distinguishable."]
    return text + " ".join(rules)


def verdicts(comparison: Comparison) -> list[str]:
    """One sentence per size: which row is best, and which rows are not distinguishable from it."""
    experiment, metric = comparison.experiment, comparison.metrics[0]
    baselines = {entry.label for entry in experiment.models if entry.name in experiment.task.baselines}
    sentences = []
    for points in dict.fromkeys(row.points for row in comparison.rows):
        rows = [row for row in comparison.rows if row.points == points]
        best = next(row for row in rows if row.best)
        pairs = [row.below_best for row in rows if row.below_best is not None]
        level = [row.model for row in rows if row.against_best(metric) == NOT_DISTINGUISHABLE]
        at = "" if points is None else f"At {points:,} points "
        mean = metric.write(best.metrics[metric.name].mean) + " %" * metric.share
        sentence = f"{at}{best.model} has the best {metric.name}, {mean}"
        if any(pair.p_seeds is None for pair in pairs):
            sentence += "; with a single seed this may be chance"
        elif len(rows) > 1 and sum(pair.distinguishable for pair in pairs) == len(rows) - 1:
            sentence += ", distinguishable from every other row"
        elif level:
            sentence += f"; not distinguishable from: {', '.join(level)}"
        sentences.append(sentence + ".")
        networks = {row.model for row in rows} - baselines
        beaten = {
            pair.second if (pair.difference > 0) == metric.higher_is_better else pair.first
            for pair in comparison.pairs.get(points, ())
            if pair.distinguishable and networks & {pair.first, pair.second}
        }
        if networks and (unbeaten := [row.model for row in rows if row.model in baselines - beaten]):
            start = f"{at}no" if at else "No"
            sentences.append(f"{start} network is distinguishably better than {', '.join(unbeaten)}.")
    return sentences


def without_a_model(comparison: Comparison) -> str:
    """The values of the metric without a model, as text; empty if the task has none."""
    metric = comparison.metrics[0]
    sizes = dict.fromkeys(row.points for row in comparison.rows)
    chances = [comparison.results(size).chance.items() for size in sizes]
    texts = [", ".join(f"{name} {metric.write(value)}" + " %" * metric.share for name, value in c) for c in chances]
    return "; ".join(dict.fromkeys(filter(None, texts)))


def pair_table(pairs: Sequence[Pair], metric: Metric) -> Table:
    """The table of all pairs with intervals and p-values; empty columns are left out."""
    table = [
        {
            "pair": f"{pair.first} - {pair.second}",
            "difference": metric.write(pair.difference, sign="+"),
            "over seeds": write_interval(pair.over_seeds, metric),
            "over shapes": write_interval(pair.over_shapes, metric),
            "p seeds": write_p(pair.p_seeds),
            "p shapes": write_p(pair.p_shapes),
            "McNemar": write_p(pair.p_mcnemar),
            "p Holm": write_p(pair.p_holm),
            "verdict": _verdict(pair),
        }
        for pair in pairs
    ]
    empty = {name for name in table[0] if not any(row[name] for row in table)}
    return [{name: text for name, text in row.items() if name not in empty} for row in table]


def _verdict(pair: Pair) -> str:
    if pair.p is None:
        return "one seed"
    if pair.runs_differ:
        return "the runs differ; one seed"
    return "distinguishable" if pair.distinguishable else NOT_DISTINGUISHABLE
