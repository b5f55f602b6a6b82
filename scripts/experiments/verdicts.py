"""Give the verdicts of all saved results again, by the rule of the package, from their saved predictions.

python scripts/experiments/verdicts.py          # after the rule has changed; prints what changed, then run page.py

Results that are older than predictions.npz have only the accuracies of their runs. Their verdicts are cautious: the
mistakes of two models count as correlated by 0.4, the least of the 2,267 pairs of saved runs of models above 60 % on
ModelNet40 (median 0.7), so that fewer models differ.
"""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

import cyclopts
import numpy as np
from numpy import ndarray
from saved import PREDICTIONS, Saved, read_all
from tabulate import tabulate

from pointset.comparison.judge import give_verdict
from pointset.comparison.metric import Metric
from pointset.comparison.pairs import Pair
from pointset.comparison.tables import is_words
from pointset.comparison.verdict import ACCURACY, Verdict
from pointset.runs.records import write_json, write_text

CAUTIOUS = (
    "Predictions were not saved: the mistakes of two models count as correlated by 0.4, the least that other tables "
    "have, so that fewer models differ."
)
SHARED = 0.6
"""Correlation of the hardness of a shape for two models; at 80 % accuracy their mistakes are then correlated by 0.4."""
ALONE = {"MAE": Metric("MAE", higher_is_better=False), "LL0": Metric("LL0", higher_is_better=True)}
app = cyclopts.App(name="verdicts.py", help=__doc__, result_action="return_value")


@app.default
def verdicts() -> None:
    """Rewrite table.md and about.json of every result, and print the pairs whose verdict changed."""
    for one in read_all().values():
        lines = list(csv.DictReader((one.folder / "results.csv").open(encoding="utf-8", newline="")))
        if "model" not in lines[0]:
            continue
        found = {
            size: give(one.folder, lines, size) for size in dict.fromkeys(line.get("points", "") for line in lines)
        }
        for change in changes(one, found):
            print(f"{one.name}: {change}")
        rewrite(one, found)


def give(folder: Path, lines: list[dict[str, str]], size: str) -> Verdict:
    """The verdict on the runs of one size."""
    own = [place for place, line in enumerate(lines) if line.get("points", "") == size]
    metric = next((ALONE[name] for name in ALONE if name in lines[0]), ACCURACY)
    scores: dict[str, list[ndarray]] = {}
    right = saved_answers(folder)
    for place in own:
        line = lines[place]
        if metric is not ACCURACY:
            answers = np.array([float(line[metric.name])])
        elif right is not None:
            answers = right[place]
        else:
            answers = likely_answers(line["model"], float(line["accuracy"]), int(line["shapes"]))
        scores.setdefault(line["model"], []).append(answers)
    return give_verdict({model: np.stack(runs) for model, runs in scores.items()}, metric=metric)


def saved_answers(folder: Path) -> ndarray | None:
    """Which answers are right, bool [runs, shapes], in the order of results.csv; None if they were not saved."""
    file = folder / PREDICTIONS
    if not file.exists():
        return None
    with np.load(file) as arrays:
        return np.asarray(arrays["predicted"] == arrays["labels"])


def likely_answers(model: str, accuracy: float, shapes: int) -> ndarray:
    """Right answers of this accuracy: the same shapes are hard in all runs of a model, and partly for other models."""
    common = np.random.default_rng(shapes).standard_normal(shapes)
    own = np.random.default_rng(list(model.encode())).standard_normal(shapes)
    hardness = (SHARED**0.5 * common + (1 - SHARED) ** 0.5 * own).argsort().argsort()
    return hardness < round(accuracy * shapes)


def told(pair: Pair) -> bool:
    """True if two models, or with a single seed their only runs, differ by more than chance explains."""
    return pair.distinguishable or pair.runs_differ


def changes(one: Saved, found: Mapping[str, Verdict]) -> Iterator[str]:
    """The pairs of rows whose verdict is another than before."""
    for row in one.rows:
        verdict = found[str(row.points)]
        for other in one.rows:
            if other.points == row.points and row.label < other.label:
                pair, before = verdict.pair(row.label, other.label), other.label not in row.level
                if told(pair) != before:
                    now = "distinguishable" if told(pair) else "no longer distinguishable"
                    yield f"{row.label} and {other.label}, {row.points} points: {now} ({100 * pair.difference:+.1f})"


def rewrite(one: Saved, found: Mapping[str, Verdict]) -> None:
    """Write the new verdicts and intervals into about.json and table.md."""
    for row in one.about["rows"]:
        verdict = found[str(row["points"])]
        interval = next(each.interval for each in verdict.rows if each.model == row["label"])
        row["low"], row["high"] = (interval.low, interval.high) if interval else (row["mean"], row["mean"])
        row["level"] = [
            other.model
            for other in verdict.rows
            if other.model != row["label"] and not told(verdict.pair(row["label"], other.model))
        ]
    write_json(one.folder / "about.json", one.about)
    table, caption = (one.folder / "table.md").read_text(encoding="utf-8").split("\n\n")[:2]
    heads, _, *lines = ([cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines())
    rows = [dict(zip(heads, line, strict=True)) for line in lines]
    for row in rows:
        fill(row, found[row["points"].replace(",", "")] if len(found) > 1 else next(iter(found.values())))
    align = ["left" if is_words(name) else "right" for name in heads]
    text = tabulate([[*row.values()] for row in rows], heads, tablefmt="github", colalign=align, disable_numparse=True)
    cautious = saved_answers(one.folder) is None and "accuracy %" in heads and len(rows) > 1
    sentences = [
        f"At {int(size):,} points: {sentence}" if len(found) > 1 else sentence
        for size, verdict in found.items()
        if len(verdict.rows) > 1
        for sentence in verdict.sentences()
    ]
    below = "\n\n".join([caption.strip(), *sentences, *[CAUTIOUS] * cautious])
    write_text(one.folder / "table.md", f"{text}\n\n{below}\n")


def fill(row: dict[str, str], verdict: Verdict) -> None:
    """Replace the cells of a row that the verdict decides."""
    model = row["model"].replace("\\", "")
    own = next(each for each in verdict.rows if each.model == model)
    if "95 % interval" in row:
        row["95 % interval"] = verdict.metric.write_interval(own.interval)
    if "against the best" in row:
        row["against the best"] = next(line["against the best"] for line in verdict.table() if line["model"] == model)


if __name__ == "__main__":
    app()
