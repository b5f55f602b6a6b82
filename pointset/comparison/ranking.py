"""Models ranked by a metric, with the test of each pair of models and the minimum detectable difference.

`pointset.comparison.statistics` defines the test.
"""

import itertools
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from statistics import fmean, stdev
from typing import Any, Self

from numpy import ndarray

from pointset.comparison.metric import Metric
from pointset.comparison.statistics import (
    SIGNIFICANCE_LEVEL,
    Interval,
    check_level,
    critical_t,
    estimate_difference,
    estimate_mean,
    holm,
    mcnemar,
    measure_spreads,
    range_p_values,
)
from pointset.comparison.tables import Table, as_latex, format_table, in_table, without_empty
from pointset.errors import escaped

METHOD = (
    "Differences are tested for new seeds and new items together (crossed analysis of variance, {distribution}), at a "
    "significance level of {level:g} for all pairs together; see pointset.comparison.statistics."
)
NOT_SIGNIFICANT = "not significant"
SHOWN_PAIRS = 12
ACCURACY = Metric("accuracy", higher_is_better=True, digits=1, share=True, head="accuracy %")


@dataclass(frozen=True)
class Pair:
    """The comparison of two models on the same items. The difference is the mean of `first` minus that of `second`."""

    first: str
    second: str
    difference: float
    error: float | None
    """Standard error of the difference, over seeds and items. None if a model that depends on a seed has only one
    run."""
    interval: Interval | None
    """Confidence interval for new seeds and items. The intervals of all pairs hold simultaneously. None if `error` is
    None."""
    p: float | None
    """p-value, corrected for the number of models in the table; None if `error` is None."""
    p_runs: float | None
    """p-value of McNemar's exact test, with Holm's correction. None unless both models have one run and `p` is
    None."""
    level: float = SIGNIFICANCE_LEVEL

    @property
    def significant(self) -> bool:
        """True if the models differ significantly; False if `p` is None."""
        return self.p is not None and self.p < self.level

    @property
    def detectable(self) -> float | None:
        """Minimum detectable difference: half of the interval's width. Only larger differences are significant."""
        return (self.interval.high - self.interval.low) / 2 if self.interval else None

    @property
    def runs_differ(self) -> bool:
        """True if each model has one run and the two runs differ significantly; the models may be equally good."""
        return self.p_runs is not None and self.p_runs < self.level

    @property
    def conclusion(self) -> str:
        """Result of the test as text."""
        if self.p is None:
            return "the runs differ; one seed" if self.runs_differ else "one seed"
        return "significant" if self.significant else NOT_SIGNIFICANT

    def reversed(self) -> Self:
        """Return the same comparison with `first` and `second` exchanged."""
        turned = self.interval and Interval(-self.interval.high, -self.interval.low)
        return replace(self, first=self.second, second=self.first, difference=-self.difference, interval=turned)


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
    """Standard deviation over runs; None for one run or a fixed model."""
    interval: Interval | None
    """Confidence interval of the mean for new seeds and items. None if a model that depends on a seed has one run."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """Models ranked by their scores, with tests of all pairs. `str(ranking)` consists of tables and sentences."""

    rows: tuple[ModelRow, ...]
    """The models, best first."""
    pairs: tuple[Pair, ...]
    """All pairs of models."""
    items: int
    """Number of items; 1 if each run has a single score."""
    level: float = SIGNIFICANCE_LEVEL
    """Significance level of all tests together."""
    metric: Metric = ACCURACY
    """Metric of the scores."""
    of_tables: bool = False
    """True if the scores come from tables of predictions; messages then mention `--deterministic`."""

    @property
    def best(self) -> str:
        """The model with the best mean, or the first of several such models."""
        return self.rows[0].model

    def row(self, model: str) -> ModelRow:
        """Return the row of a model."""
        return next(row for row in self.rows if row.model == model)

    def pair(self, first: str, second: str) -> Pair:
        """Return the comparison of two models, in this order."""
        pair = next(pair for pair in self.pairs if {pair.first, pair.second} == {first, second})
        return pair if pair.first == first else pair.reversed()

    def table(self) -> Table:
        """Return a table of texts with one row for each model."""
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
        """Return the difference from the best model as text, or the reason why it is not shown."""
        if model == self.best:
            return "best" * bool(self.pairs)
        pair = self.pair(model, self.best)
        difference = self.metric.write(pair.difference, sign="+")
        if pair.significant:
            return difference
        return f"{difference}, one seed" if pair.runs_differ else pair.conclusion

    def pair_table(self, most: int | None = None) -> Table:
        """Return a table of texts with a row for each of at most `most` pairs. Pairs with the best model come first."""
        ordered = sorted(self.pairs, key=lambda pair: self.best not in (pair.first, pair.second))
        table = []
        for pair in ordered[:most]:
            interval, p = pair.interval, pair.p if pair.p is not None else pair.p_runs
            if interval and self.metric.share:  # a difference of shares is in [-1, 1]
                interval = Interval(max(-1.0, interval.low), min(1.0, interval.high))
            row = {
                "pair": f"{pair.first} - {pair.second}",
                "difference": self.metric.write(pair.difference, sign="+"),
                self._interval_title: self.metric.write_interval(interval, "+"),
                "p": "" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}",
                "conclusion": pair.conclusion,
            }
            table.append(row)
        return without_empty(table)

    def sentences(self) -> list[str]:
        """Return sentences about the best model, the minimum detectable difference, and models that were not tested."""
        return [text for text in (self.summary(), self.detectable(), self._untested()) if text]

    def _closing(self) -> list[str]:
        """Return the sentences and, if models were compared, the method."""
        return [*self.sentences(), *([self.method] if self.pairs else [])]

    def summary(self) -> str:
        """Return a sentence for a paper, about the best model and the significance of other models' differences."""
        best, pairs = self.rows[0], [self.pair(self.best, row.model) for row in self.rows[1:]]
        interval = self.metric.write_interval(best.interval)
        interval = f" ({100 * (1 - self.level):g} % confidence interval {interval})" if interval else ""
        where = f"On {self.items:,} test items, " if self.items > 1 else ""
        mean = f"{self.metric.write(best.mean)}{' %' * self.metric.share}{interval}"
        text = f"{where}{best.model} has the {'best ' * bool(pairs)}{self.metric.name}, {mean}."
        equal = [pair.second for pair in pairs if pair.p is not None and not pair.significant]
        if equal:
            subject, verb = ("difference", "is") if len(equal) == 1 else ("differences", "are")
            return f"{text} The {subject} from {', '.join(equal)} {verb} not significant."
        if pairs and all(pair.significant for pair in pairs):
            return f"{text} It is significantly better than {'the other' if len(pairs) == 1 else 'every other'} model."
        return text

    def detectable(self) -> str:
        """Return a sentence with the minimum detectable difference from the best model, or "" if it is unknown."""
        of_best = [pair.detectable for pair in self.pairs if self.best in (pair.first, pair.second)]
        if not (differences := [one for one in of_best if one]):  # 0 if two models never differ
            return ""
        seeds = min((row.runs for row in self.rows if not row.fixed and row.runs > 1), default=0)
        sizes = [f"{self.items:,} items"] * (self.items > 1) + [f"{seeds} seeds"] * (seeds > 0)
        most = 1.0 if self.metric.share else float("inf")  # the largest difference of two shares
        low, high = (self.metric.write(min(end(differences), most)) for end in (min, max))
        unit = " percentage points" * self.metric.share
        span = low if low == high else f"{low} to {high}"
        return f"Minimum detectable difference from {self.best}: {span}{unit} ({', '.join(sizes)})."

    def _untested(self) -> str:
        """Return which models have too few runs to be tested, and the remedy, or "" if all were tested."""
        single = [row.model for row in self.rows if row.runs < 2 and not row.fixed]
        if not single or len(self.rows) < 2:
            return ""
        which = "all" if len(single) == len(self.rows) else ", ".join(single)
        text = f"Models with a single run are not tested ({which}): another seed can give another result."
        if any(pair.p_runs is not None for pair in self.pairs):
            text += " McNemar's test compares their runs, not the models."
        remedy = ", or name models that have no seed with --deterministic (in Python deterministic=)" * self.of_tables
        return f"{text} Give at least 2 seeds{remedy}."

    @property
    def method(self) -> str:
        """The test and its level, in sentences."""
        known = [row for row in self.rows if row.fixed or row.runs > 1]
        distribution = "studentised range of all models" if len(known) > 2 else "Student's t"
        return METHOD.format(distribution=distribution, level=self.level)

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
        sentences = [in_table(text, "github") for text in self._closing()]
        tables = [f"## {title}\n\n{format_table(table, 'github')}" for title, table in self.tables().items()]
        return "\n\n".join([*sentences, *tables])

    def as_latex(self) -> str:
        """Return LaTeX: the sentences as comments, and the tables of models and pairs with caption and label."""
        method = f" {self.method}" * bool(self.pairs)
        return "".join(f"% {escaped(text)}\n" for text in self._closing()) + "\n".join(
            as_latex(table, f"{title} on {self.items:,} items.{method}", f"tab:{title.lower()}")
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
    pairs = compare_models({row.model: scores[row.model] for row in rows}, level, fixed)
    items = next(iter(scores.values())).shape[1]
    return Ranking(tuple(rows), tuple(pairs), items, level, metric)


def compare_models(
    scores: Mapping[str, ndarray], level: float = SIGNIFICANCE_LEVEL, fixed: Collection[str] = ()
) -> list[Pair]:
    """Compare all pairs of models, in the order of `scores`.

    Args:
        scores: for each model, its scores [seeds, items]; all models have the same items. Scores are bool, True if the
            prediction is correct, or numbers whose mean over items is the metric. Scores [seeds, 1] are the metric of
            each run.
        level: probability of at least one significant difference in a table of equally good models.
        fixed: names of models without a seed. These models may have a single run.
    """
    check_level(level)
    spreads = measure_spreads(scores, fixed)
    models = sum(spread.known for spread in spreads.values())
    every = list(itertools.combinations(scores, 2))
    known = [(a, b) for a, b in every if spreads[a].known and spreads[b].known]
    estimates = {(a, b): estimate_difference(spreads[a], spreads[b]) for a, b in known}
    p_values = dict(zip(estimates, range_p_values([*estimates.values()], models), strict=True))
    # McNemar's test of pairs of single runs with bool scores.
    runs = {model for model, own in scores.items() if len(own) == 1 and own.dtype == bool}
    single = [(a, b) for a, b in every if (a, b) not in estimates and {a, b} <= runs]
    p_runs = dict(zip(single, holm([mcnemar(scores[a][0], scores[b][0]) for a, b in single]), strict=True))
    pairs = []
    for a, b in every:
        if one := estimates.get((a, b)):
            interval = one.within(critical_t(one.freedom, level, models))
            pairs.append(Pair(a, b, one.value, one.error, interval, p_values[a, b], None, level))
        else:
            apart = float((spreads[a].item_means - spreads[b].item_means).mean())
            pairs.append(Pair(a, b, apart, None, None, None, p_runs.get((a, b)), level))
    return pairs
