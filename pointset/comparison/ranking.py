"""Models ranked by a metric, as text and tables, with a test of each difference and the minimum detectable one."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import Any

from numpy import ndarray

from pointset.comparison.metric import Metric
from pointset.comparison.pairs import Pair, compare_models, write_p
from pointset.comparison.statistics import SIGNIFICANCE_LEVEL, Interval, estimate_mean, measure_spreads
from pointset.comparison.tables import Table, as_latex, format_table, in_table, without_empty
from pointset.errors import escaped

METHOD = (
    "Crossed analysis of variance over seeds and items, with a variance over seeds for each model (at least half of "
    "the median) and the fewest degrees of freedom; p-values by {correction}; level {level:g}."
)
SHOWN_PAIRS = 12
ACCURACY = Metric("accuracy", higher_is_better=True, digits=1, share=True, head="accuracy %")


@dataclass(frozen=True)
class ModelRow:
    """One model of a ranking."""

    model: str
    runs: int
    fixed: bool
    """True if the model has no seed, or gives the same answers in all runs."""
    mean: float
    """Mean of the metric over runs and items."""
    deviation: float | None
    """Standard deviation over runs; None for one run, and without a seed."""
    interval: Interval | None
    """Interval for new seeds and items, of this model alone; None for one run of a model with a seed."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """Models ranked by their scores, with the tests of all pairs; `str` of it is its text."""

    rows: tuple[ModelRow, ...]
    """The models, best first."""
    pairs: tuple[Pair, ...]
    """All pairs of models."""
    items: int
    """Number of items; 1 for scores without items."""
    level: float = SIGNIFICANCE_LEVEL
    """Level of the tests."""
    metric: Metric = ACCURACY
    """What the scores measure."""
    of_tables: bool = False
    """True if the scores come from tables of predictions, which may not say that a model has no seed."""

    @property
    def best(self) -> str:
        """The model with the best mean; the first of equals."""
        return self.rows[0].model

    def row(self, model: str) -> ModelRow:
        """Return the row of a model."""
        return next(row for row in self.rows if row.model == model)

    def pair(self, first: str, second: str) -> Pair:
        """Return the comparison of two models, in this order."""
        pair = next(pair for pair in self.pairs if {pair.first, pair.second} == {first, second})
        return pair if pair.first == first else pair.reversed()

    def table(self) -> Table:
        """One row for each model, as text."""
        metric = self.metric
        table = [
            {
                "model": row.model,
                "seeds": "none" if row.fixed and row.runs == 1 else str(row.runs),
                metric.title: metric.write(row.mean, row.deviation),
                self._interval_title: metric.write_interval(row.interval),
                "against the best": self.against_best(row.model),
            }
            for row in self.rows
        ]
        return without_empty(table)

    @property
    def _interval_title(self) -> str:
        return f"{100 * (1 - self.level):g} % interval"

    def against_best(self, model: str) -> str:
        """Return the difference from the best model as text, or why it is not shown."""
        if model == self.best:
            return "best" * bool(self.pairs)
        pair = self.pair(model, self.best)
        return pair.in_table(self.metric.write(pair.difference, sign="+"))

    def pair_table(self, most: int | None = None) -> Table:
        """One row for each pair of models, as text; of many pairs, those with the best model come first."""
        ordered = sorted(self.pairs, key=lambda pair: self.best not in (pair.first, pair.second))
        table = [
            {
                "pair": f"{pair.first} - {pair.second}",
                "difference": self.metric.write(pair.difference, sign="+"),
                self._interval_title: self.metric.write_interval(pair.interval and self._inside(pair.interval), "+"),
                "p": write_p(pair.p if pair.p is not None else pair.p_runs),
                "conclusion": pair.conclusion,
            }
            for pair in ordered[:most]
        ]
        return without_empty(table)

    def sentences(self) -> list[str]:
        """Return sentences: the best model, the minimum detectable difference, and cautions."""
        return [text for text in (self.summary(), self.detectable(), self._caution()) if text]

    def _closing(self) -> list[str]:
        """Return the sentences and, if models were compared, the method."""
        return [*self.sentences(), *([self.method] if self.pairs else [])]

    def summary(self) -> str:
        """One sentence for a paper."""
        best, others, unit = self.rows[0], [row.model for row in self.rows[1:]], " %" * self.metric.share
        interval = f" ({self._interval_title} {self.metric.write_interval(best.interval)})" if best.interval else ""
        where = f"On {self.items:,} items, " if self.items > 1 else ""
        mean = f"{self.metric.write(best.mean)}{unit}{interval}"
        if not others:
            return f"{where}{best.model} has the {self.metric.name} {mean}."
        text = f"{where}{best.model} has the best {self.metric.name}, {mean}"
        level = [model for model in others if not self.pair(self.best, model).significant]
        if not level:
            return f"{text}, significantly better than {'the other' if len(others) == 1 else 'every other'} model."
        if all(self.pair(self.best, model).p is None for model in level):
            return f"{text}; with one seed this may be chance."
        return f"{text}; no significant difference from: {', '.join(level)}."

    def detectable(self) -> str:
        """Return the minimum detectable difference from the best model; empty if no model has several runs."""
        of_best = [pair.detectable for pair in self.pairs if self.best in (pair.first, pair.second)]
        if not (differences := [one for one in of_best if one]):  # 0 of models that never differ
            return ""
        seeds = min((row.runs for row in self.rows if not row.fixed and row.runs > 1), default=0)
        sizes = [f"{self.items:,} items"] * (self.items > 1) + [f"{seeds} seeds"] * (seeds > 0)
        most = 1.0 if self.metric.share else float("inf")  # of shares, no difference is larger
        low, high = (self.metric.write(min(end(differences), most)) for end in (min, max))
        unit = " percentage points" * self.metric.share
        span = low if low == high else f"{low} to {high}"
        return f"Minimum detectable difference from {self.best}: {span}{unit} ({', '.join(sizes)})."

    def _inside(self, interval: Interval) -> Interval:
        """Return the part of an interval of a difference that is possible."""
        return Interval(max(-1.0, interval.low), min(1.0, interval.high)) if self.metric.share else interval

    def _caution(self) -> str:
        single = [row.model for row in self.rows if row.runs < 2 and not row.fixed]
        if not single or len(self.rows) < 2:
            return ""
        which = "all" if len(single) == len(self.rows) else ", ".join(single)
        remedy = (
            ", or name the models that have no seed with --deterministic (in Python deterministic=)" * self.of_tables
        )
        return f"The test compares single runs, not models ({which}): give at least 2 seeds{remedy}."

    @property
    def method(self) -> str:
        """The test and its level, in one sentence."""
        known = [row for row in self.rows if row.fixed or row.runs > 1]
        correction = "the studentised range of all models" if len(known) > 2 else "Student's t"
        return METHOD.format(correction=correction, level=self.level)

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return {
            "items": self.items,
            "rows": [asdict(row) for row in self.rows],
            "pairs": [asdict(pair) | {"significant": pair.significant} for pair in self.pairs],
            "level": self.level,
            "sentences": self.sentences(),
            "method": self.method,
        }

    def __str__(self) -> str:
        tables = [format_table(table) for table in (self.table(), self.pair_table(SHOWN_PAIRS)) if table]
        left = len(self.pairs) - SHOWN_PAIRS
        more = [f"and {left:,} more pairs; -o ranking.md has all"] if left > 0 else []
        return "\n".join(["\n\n".join(tables), *more, "", *map(escaped, self._closing())])

    def as_markdown(self) -> str:
        """Return Markdown: sentences, and the tables of models and pairs."""
        sentences = "\n\n".join(in_table(text, "github") for text in self._closing())
        return f"{sentences}\n\n" + "\n\n".join(
            f"## {title}\n\n{format_table(table, 'github')}" for title, table in self.tables().items()
        )

    def as_latex(self) -> str:
        """Return LaTeX: the sentences as comments, and the tables of models and pairs with caption and label."""
        comments = "".join(f"% {escaped(text)}\n" for text in self._closing())
        return comments + "\n".join(
            as_latex(
                table,
                f"{title} on {self.items:,} items. {self.method if self.pairs else ''}".strip(),
                f"tab:{title.lower()}",
            )
            for title, table in self.tables().items()
        )

    def tables(self) -> dict[str, Table]:
        """Return the tables that are not empty, by title."""
        return {title: table for title, table in (("Models", self.table()), ("Pairs", self.pair_table())) if table}


def rank_models(
    scores: Mapping[str, ndarray],
    *,
    level: float = SIGNIFICANCE_LEVEL,
    fixed: Collection[str] = (),
    metric: Metric = ACCURACY,
) -> Ranking:
    """Rank models by their scores [seeds, items]; see `compare_models`."""
    spreads = measure_spreads(scores, fixed)
    rows = []
    for model, spread in spreads.items():
        runs = [float(mean) for mean in scores[model].mean(axis=1)]
        deviation = stdev(runs) if len(runs) > 1 and not spread.fixed else None
        interval = metric.inside(estimate_mean(spread).interval(level)) if spread.known else None
        rows.append(ModelRow(model, len(runs), spread.fixed, fmean(runs), deviation, interval))
    rows.sort(key=lambda row: -metric.merit(row.mean))
    ordered = {row.model: scores[row.model] for row in rows}
    items = next(iter(scores.values())).shape[1]
    pairs = compare_models(ordered, level, fixed)
    return Ranking(tuple(rows), tuple(pairs), items, level, metric)
