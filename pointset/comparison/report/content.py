"""The sections of every report, independent of HTML and Markdown; a task adds its own sections."""

from collections.abc import Iterable, Iterator, Sequence

from pointset.comparison.evidence import Evidence
from pointset.comparison.gathering import Comparison
from pointset.comparison.metric import Metric
from pointset.comparison.report import charts
from pointset.comparison.rows import NOT_DISTINGUISHABLE, Row
from pointset.comparison.section import Section, Table
from pointset.comparison.statistics import Pair
from pointset.comparison.tables import write_interval

PARETO_TEXT = (
    "Multiply-adds are counted; times were measured on the machine below. The grey line joins the rows that no other "
    "row beats on both axes"
)
PARETO_BARS = "; bars are 95 % intervals over seeds"
HOLM = "Holm's correction for the number of pairs"
SEEDS_DIFFER = "other seeds of the same models may differ as much"


def sections(comparison: Comparison) -> Iterator[Section]:
    """All sections of the report that have content."""
    task = comparison.experiment.task
    evidences = [evidence for size in task.sizes if len(evidence := comparison.evidence(size))]
    if len(evidences) > 1:
        title = f"{_heading(task.measured[0])} against the size of a set"
        drawn = charts.trained_sizes(evidences)
        text = "Bars: 95 % intervals over seeds." if _has_intervals(comparison.rows) else ""
        yield Section(title, text, drawn, "accuracy-by-trained-size")
    for evidence in evidences:
        several = len(task.sizes) > 1
        for section in _of_one_size(comparison, evidence):
            section.title += f", {evidence.points:,} points" if several else ""
            section.name += f"-n{evidence.points}" if section.name and evidence.points is not None else ""
            yield section


def _of_one_size(comparison: Comparison, evidence: Evidence) -> Iterator[Section]:
    metric = evidence.metric
    if pairs := comparison.pairs.get(evidence.points):
        text = pairs_text(pairs, metric, comparison.experiment.task.pooled)
        yield Section("Which models are distinguishable", text, table=pair_table(pairs, metric))
    if (drawn := charts.pareto(evidence)) is not None:
        text = PARETO_TEXT + PARETO_BARS * _has_intervals([*evidence.rows.values()])
        yield Section(f"{_heading(metric)} against cost", text + ".", drawn, "pareto")
    yield from comparison.experiment.task.sections(evidence)


def _heading(metric: Metric) -> str:
    return metric.name[:1].upper() + metric.name[1:]


def _has_intervals(rows: Iterable[Row]) -> bool:
    return any(one.interval for row in rows for one in row.metrics.values())


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
    metric = comparison.experiment.task.measured[0]
    sentences = []
    for points in dict.fromkeys(row.points for row in comparison.rows):
        rows = [row for row in comparison.rows if row.points == points]
        best = next(row for row in rows if row.best)
        others = [row for row in rows if not row.best]
        level = [row.model for row in others if row.against_best(metric) == NOT_DISTINGUISHABLE]
        at = "" if points is None else f"At {points:,} points "
        mean = metric.write(best.metrics[metric.name].mean) + " %" * metric.share
        sentence = f"{at}{best.model} has the best {metric.name}, {mean}"
        apart = [row.model for row in others if row.below_best is not None and row.below_best.distinguishable]
        if any(row.below_best is not None and row.below_best.p_seeds is None for row in others):
            sentence += "; with a single seed this may be chance"
        elif others and len(apart) == len(others):
            sentence += ", distinguishable from every other row"
        elif level:
            sentence += f"; not distinguishable from: {', '.join(level)}"
        sentences.append(sentence + ".")
    return sentences


def without_a_model(comparison: Comparison) -> str:
    """The values of the metric without a model, as text; empty if the task has no baselines."""
    metric = comparison.experiment.task.measured[0]
    sentences = []
    for size in dict.fromkeys(row.points for row in comparison.rows):
        found = comparison.evidence(size).baselines
        words = [f"{name} {metric.write(value)}" + " %" * metric.share for name, value in found.items()]
        sentences.append(", ".join(words))
    return "; ".join(dict.fromkeys(filter(None, sentences)))


def pair_table(pairs: Sequence[Pair], metric: Metric) -> Table:
    """The table of all pairs with intervals and p-values; empty columns are left out."""
    table = [
        {
            "pair": f"{pair.first} - {pair.second}",
            "difference": metric.write(pair.difference, sign="+"),
            "over seeds": write_interval(pair.over_seeds, metric),
            "over shapes": write_interval(pair.over_shapes, metric),
            "p seeds": _p(pair.p_seeds),
            "p shapes": _p(pair.p_shapes),
            "McNemar": _p(pair.p_mcnemar),
            "p Holm": _p(pair.p_holm),
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


def _p(value: float | None) -> str:
    if value is None:
        return ""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
