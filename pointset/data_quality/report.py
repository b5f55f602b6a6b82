"""Check a dataset before training: `pointset data check`."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pointset.data_quality.duplicates import find_duplicates
from pointset.data_quality.label_errors import LabelCheck, check_labels
from pointset.data_quality.reading import Shapes, read_shapes, shape_features
from pointset.errors import counted
from pointset.runs.atomic import write_atomically
from pointset.runs.spreadsheets import as_csv

TITLES = {
    "leakage": "In train and test",
    "classes": "In two classes",
    "label": "Possible label error",
    "class": "Twice in a class",
    "unreadable": "Unreadable",
}
"""Titles of the parts of the report, by `Finding.place`, the most serious first."""


@dataclass(frozen=True)
class Finding:
    """A file that cannot be used, that duplicates another file, or whose label may be wrong."""

    file: str
    """Path relative to the dataset."""
    true_class: str
    """The class of the label."""
    split: str
    """"train" or "test"."""
    place: str
    """The part of the report, a key of `TITLES`."""
    kind: str
    """"unreadable", "label", or a kind of `find_duplicates`."""
    note: str
    """One sentence for the table."""
    other: str = ""
    """The file that `file` duplicates."""


@dataclass(frozen=True)
class Check:
    """Findings about a dataset."""

    shapes: Shapes
    """The shapes that were read."""
    findings: tuple[Finding, ...]
    """The findings, the most serious first."""
    labels: LabelCheck
    """Possible label errors, and how reliable they are."""

    @property
    def leaks(self) -> int:
        """Number of shapes that are exact or near duplicates of a shape of another split."""
        return len({finding.file for finding in self.of("leakage")})

    def of(self, place: str) -> list[Finding]:
        """Return the findings in one part of the report, a key of `TITLES`."""
        return [finding for finding in self.findings if finding.place == place]

    def save(self, path: str | Path) -> Path:
        """Write the findings as a table (*.csv) for `without`. Delete the rows of files that you want to keep."""
        columns = ("file", "true_class", "split", "kind", "other", "note")
        rows = [{name: getattr(finding, name) for name in columns} for finding in self.findings]
        text = as_csv(rows) if rows else ",".join(columns) + "\n"
        return write_atomically(Path(path), lambda temporary: temporary.write_text(text, encoding="utf-8"))


def check_data(
    data: str | Path, *, up: str | None = None, labels: str | None = None, seed: int = 0, progress: bool = True
) -> Check:
    """Read every shape of a dataset card or a folder once, and find faults that make results wrong.

    Faults are unreadable files, exact and near duplicates, and possible label errors. Duplicates may be in one class,
    in two classes, or in training and test data (leakage). Label errors are found by confident learning from
    out-of-fold probabilities of a support vector machine.

    Args:
        data: name of a card, or a folder.
        up: the axis that points up in the files; None means the axis on the card, or the usual axis of the file format.
        labels: a table of files and labels, see `DataOptions`.
        seed: seed of the folds for label errors.
        progress: show progress bars.

    Returns:
        The findings, the most serious first; `save` writes a table for `without=`.

    Raises:
        PointsetError: the data is missing or in no known layout, or no file can be read.
    """
    shapes = read_shapes(data, up=up, labels=labels, progress=progress)
    features = shape_features(shapes, progress)
    duplicates = find_duplicates(shapes, features, progress)
    checked = check_labels(shapes, features, [(first, second) for first, second, _ in duplicates], seed)
    findings = [
        Finding(name, shapes.files[name].true_class if shapes.files else "", "", "unreadable", "unreadable", reason)
        for name, reason in shapes.failures.items()
    ]
    findings += [_duplicate(shapes, first, second, kind) for first, second, kind in duplicates]
    for row, other, probability in checked.errors:
        name, label = shapes.names[row], shapes.classes[shapes.labels[row]]
        note = f"{shapes.classes[other]} has probability {probability:.0%}"
        findings.append(Finding(name, label, shapes.splits[row], "label", "label", note))
    order = [*TITLES]
    return Check(shapes, tuple(sorted(findings, key=lambda finding: order.index(finding.place))), checked)


def _duplicate(shapes: Shapes, first: int, second: int, kind: str) -> Finding:
    """Return the finding that the second shape duplicates the first."""
    splits = shapes.splits[first], shapes.splits[second]
    classes = [shapes.classes[shapes.labels[row]] for row in (first, second)]
    place = "leakage" if splits[0] != splits[1] else "classes" if classes[0] != classes[1] else "class"
    notes = [f"in {splits[1]} and {splits[0]}"] * (place == "leakage")
    notes += [f"in classes {classes[1]} and {classes[0]}"] * (classes[0] != classes[1])
    return Finding(shapes.names[second], classes[1], splits[1], place, kind, ", ".join(notes), shapes.names[first])


def overview(shapes: Shapes) -> Iterator[str]:
    """Yield sentences about the folder: its classes and splits, and which files are skipped."""
    counts = Counter(shapes.classes[label] for label in shapes.labels)
    splits = ", ".join(f"{count:,} {split}" for split, count in Counter(shapes.splits).items())
    yield f"{counted(len(shapes.names), 'shape')} of {counted(len(shapes.classes), 'class')}; {splits}; {shapes.rule}"
    (_, most), (_, least) = (counts.most_common()[place] for place in (0, -1))
    yield f"shapes per class: {least:,} to {most:,}" if least < most else f"shapes per class: {most:,}"
    yield from shapes.warnings
    spellings = Counter(map(str.casefold, shapes.classes))
    if alike := [name for name in shapes.classes if spellings[name.casefold()] > 1]:
        yield f"classes that differ in case alone: {', '.join(alike)}"
    if empty := [name for name in shapes.classes if not counts[name]]:
        yield f"classes without a shape that can be read: {', '.join(empty)}"
    if single := [name for name, count in counts.items() if count == 1]:
        yield f"classes of one shape, which cannot be tested: {', '.join(single)}"
