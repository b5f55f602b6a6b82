"""A verdict on models as text, tables and a page: which differ, what the data can tell, what would settle the rest."""

from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from pointset.comparison.crossed import CrossedPair
from pointset.comparison.metric import Metric
from pointset.comparison.statistics import Interval, write_p
from pointset.comparison.tables import Table, format_table, in_table, templates
from pointset.errors import PointsetError, escaped, quoted

METHOD = (
    "Two-sided t-tests of a crossed analysis of variance over seeds and items together, a variance over seeds for each "
    "model, Satterthwaite's degrees of freedom (the fewest for the part of the seeds), Holm's correction for the "
    "number of pairs, level 0.05."
)
SHOWN_CLASSES = SHOWN_PAIRS = 12
JUDGED_ACCURACY = Metric("accuracy", higher_is_better=True, digits=1, share=True)


@dataclass(frozen=True)
class ModelRow:
    """One model of a verdict."""

    model: str
    seeds: int
    accuracy: float
    """Mean over seeds and items."""
    deviation: float | None
    """Standard deviation over seeds; None for one seed."""
    interval: Interval | None
    """95 % interval for new seeds and items; None for one seed."""


@dataclass(frozen=True)
class ClassDifference:
    """The best model against another one, on the items of one class."""

    label: str
    other: str
    items: int
    difference: float
    p_holm: float
    """After Holm's correction for all classes and models."""


@dataclass(frozen=True, eq=False)
class Verdict:
    """What predictions say about models; `str(verdict)` is its text.

    Example:
        >>> table = {"item": [0, 1, 0, 1], "label": [3, 5, 3, 5], "prediction": [3, 5, 3, 3],
        ...          "model": ["svm", "svm", "tree", "tree"]}
        >>> verdict = pointset.judge(table)
        >>> verdict.best, [row.accuracy for row in verdict.rows]
        ('svm', [1.0, 0.5])
    """

    rows: tuple[ModelRow, ...]
    """The models, best first."""
    pairs: tuple[CrossedPair, ...]
    """All pairs of models."""
    classes: tuple[ClassDifference, ...]
    """Differences of the best model from the others in each class, smallest p first."""
    items: int
    """Number of items."""

    @property
    def best(self) -> str:
        """The model with the largest accuracy; the first of equals."""
        return self.rows[0].model

    def pair(self, first: str, second: str) -> CrossedPair:
        """The comparison of two models, in any order."""
        return next(pair for pair in self.pairs if {pair.first, pair.second} == {first, second})

    def _is_level(self, model: str) -> bool:
        """True for the best model, and for models that are not distinguishable from it."""
        return model == self.best or not self.pair(self.best, model).distinguishable

    def worse_than(self, baseline: str) -> list[str]:
        """The models that are distinguishably worse than a model.

        Raises:
            PointsetError: no model has this name.
        """
        models = [row.model for row in self.rows]
        if baseline not in models:
            raise PointsetError(f"{quoted(baseline)} is not one of the models: {', '.join(models)}")
        lower = models[models.index(baseline) + 1 :]
        return [model for model in lower if self.pair(baseline, model).distinguishable]

    def table(self) -> Table:
        """One row for each model, as text."""
        return [
            {
                "model": row.model,
                "seeds": str(row.seeds),
                "accuracy %": JUDGED_ACCURACY.write(row.accuracy, row.deviation),
                "95 % interval": JUDGED_ACCURACY.write_interval(row.interval),
                "against the best": self._against_best(row.model),
            }
            for row in self.rows
        ]

    def _against_best(self, model: str) -> str:
        if model == self.best:
            return "best"
        pair = self.pair(self.best, model)
        return pair.in_table(JUDGED_ACCURACY.write(-abs(pair.difference), sign="+"))

    def pair_table(self, most: int | None = None) -> Table:
        """One row for each pair of models, as text; of many pairs, those with the best model come first."""
        ordered = sorted(self.pairs, key=lambda pair: self.best not in (pair.first, pair.second))
        return [
            {
                "pair": f"{pair.first} - {pair.second}",
                "difference": JUDGED_ACCURACY.write(pair.difference, sign="+"),
                "95 % interval": JUDGED_ACCURACY.write_interval(pair.interval, "+"),
                "p": write_p(pair.tested),
                "p Holm": write_p(pair.p_holm),
                "verdict": pair.verdict,
                "to settle": _to_settle(pair),
            }
            for pair in ordered[:most]
        ]

    def class_table(self) -> Table:
        """The classes with the clearest differences, as text."""
        return [
            {
                "class": row.label,
                "items": f"{row.items:,}",
                "pair": f"{self.best} - {row.other}",
                "difference": JUDGED_ACCURACY.write(row.difference, sign="+"),
                "p Holm": write_p(row.p_holm),
            }
            for row in self.classes[:SHOWN_CLASSES]
        ]

    def sentences(self) -> list[str]:
        """The verdict in words: who is best, what the data can tell, and what it lacks."""
        return [text for text in (self.summary(), self.resolution(), self._caution()) if text]

    def summary(self) -> str:
        """One sentence for a paper."""
        best, others = self.rows[0], [row.model for row in self.rows[1:]]
        interval = f" (95 % interval {JUDGED_ACCURACY.write_interval(best.interval)})" if best.interval else ""
        accuracy = JUDGED_ACCURACY.write(best.accuracy)
        text = f"On {self.items:,} items, {best.model} has the best accuracy, {accuracy} %{interval}"
        level = [model for model in others if self._is_level(model)]
        if not others:
            return text + "."
        if not level:
            return text + f", distinguishable from {'the other model' if len(others) == 1 else 'every other model'}."
        if all(self.pair(self.best, model).p is None for model in level):
            return text + "; with one seed this may be chance."
        return text + f"; not distinguishable from: {', '.join(level)}."

    def resolution(self) -> str:
        """The smallest difference that these seeds and items tell for a typical pair, and that more would tell.

        Empty if no two models have several seeds.
        """
        designs = [pair.design for pair in self.pairs if pair.design]
        if not designs:
            return ""
        seeds = min(design.seeds for design in designs)
        now, doubled = (median(design.resolution(seeds * times) for design in designs) for times in (1, 2))
        text = (
            f"{self.items:,} items and {seeds} seeds cannot tell differences below {JUDGED_ACCURACY.write(now)} points"
        )
        text += " (a typical pair)"
        if doubled < 0.9 * now:
            return f"{text}; {2 * seeds} seeds would tell {JUDGED_ACCURACY.write(doubled)}."
        items = 4 * self.items
        wider = median(design.resolution(seeds, items) for design in designs)
        return f"{text}; more seeds hardly help, {items:,} items would tell {JUDGED_ACCURACY.write(wider)}."

    def _caution(self) -> str:
        single = [row.model for row in self.rows if row.seeds < 2]
        if not single or len(self.rows) < 2:
            return ""
        which = "Every model has" if len(single) == len(self.rows) else f"{', '.join(single)} has"
        return f"{which} one seed, which shows how its runs differ and not how the models do: give at least 2 seeds."

    def as_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        content = asdict(self)
        for row, pair in zip(content["pairs"], self.pairs, strict=True):
            row |= {"distinguishable": pair.distinguishable, "to_settle": _to_settle(pair)}
        return {"items": content.pop("items"), **content, "sentences": self.sentences(), "method": METHOD}

    def __str__(self) -> str:
        drawn = [format_table(table) for table in (self.table(), self.pair_table(SHOWN_PAIRS)) if table]
        left = len(self.pairs) - SHOWN_PAIRS
        more = [f"and {left:,} more pairs; -o verdict.html has all"] if left > 0 else []
        return "\n".join([*"\n\n".join(drawn).splitlines(), *more, "", *map(escaped, self.sentences())])

    def as_markdown(self) -> str:
        """As Markdown: sentences, and the tables of models, pairs and classes."""
        sentences = "\n\n".join([*(in_table(text, "github") for text in self.sentences()), METHOD])
        return f"{sentences}\n\n{self._sections('github', '##')}"

    def as_latex(self) -> str:
        """As LaTeX (booktabs): the sentences as comments, and the tables of models, pairs and classes."""
        comments = "".join(f"% {escaped(text)}\n" for text in [*self.sentences(), METHOD])
        return comments + self._sections("latex_booktabs", "%")

    def _sections(self, style: str, heading: str) -> str:
        texts = [f"{heading} {title}\n\n{format_table(table, style)}" for title, table in self._tables().items()]
        return "\n\n".join(texts) + "\n"

    def _tables(self) -> dict[str, Table]:
        tables = {"Models": self.table(), "Pairs": self.pair_table(), "Classes": self.class_table()}
        return {title: table for title, table in tables.items() if table}

    def as_html(self) -> str:
        """As one page without outside files, with the intervals of the models drawn."""
        ends = [row.interval or Interval(row.accuracy, row.accuracy) for row in self.rows]
        low, high = min(end.low for end in ends), max(end.high for end in ends)
        margin = 0.05 * (high - low) or 0.01
        low, high = max(0.0, low - margin), min(1.0, high + margin)

        def place(share: float) -> float:
            """Where it is between the ends of the axis, in per cent."""
            return round(100 * (share - low) / (high - low), 2)

        bars = [
            {
                "model": row.model,
                "level": self._is_level(row.model),
                "mean": place(row.accuracy),
                "low": place(end.low),
                "high": place(end.high),
            }
            for row, end in zip(self.rows, ends, strict=True)
        ]
        axis = [JUDGED_ACCURACY.write(low), JUDGED_ACCURACY.write(high)]
        template = templates().get_template("verdict.html")
        return template.render(verdict=self, bars=bars, ends=axis, tables=self._tables(), method=METHOD)


def _to_settle(pair: CrossedPair) -> str:
    """How many seeds or items would find a difference as large as the one that was seen."""
    if pair.distinguishable or pair.design is None:
        return ""
    if pair.difference == 0.0:
        return "no difference to find"
    seeds, items = pair.design.seeds_for(pair.difference), pair.design.items_for(pair.difference)
    ways = [f"{number:,} {what}" for number, what in ((seeds, "seeds"), (items, "items")) if number is not None]
    if not ways and (both := pair.design.both_for(pair.difference)):
        return f"{both[0]:,} seeds and {both[1]:,} items"
    return " or ".join(ways) or "too small to find"
