"""`pointset data`: list, inspect, check, download and verify datasets."""

import shlex
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import App

import pointset
from pointset import viz
from pointset.commands.flags import Flags, out_file
from pointset.commands.terminal import Result, Table
from pointset.configuration import COMMON, Seed
from pointset.data.axes import FileUp
from pointset.errors import PointsetError, counted, escaped
from pointset.runs.atomic import write_atomically
from pointset.runs.spreadsheets import as_csv

FINDINGS_SHOWN = 10
"""Maximum number of findings of each kind that are printed."""
app = App(
    name="data",
    help_format="markdown",
    group_parameters=Flags,
    help="List, inspect, check, download and verify datasets.",
    help_flags=["--help", "-h", "--help-all"],
)


@app.command(name="list")
def list_() -> Result:
    """List the datasets that the package describes by a card."""
    rows = []
    for card in map(pointset.data.load_card, pointset.data.list_cards()):
        about = {"name": card.name, "kind": card.kind, "classes": len(card.classes)}
        rows.append(about | card.splits | {"summary": card.summary})
    return Result(rows, rows)


@app.command
def show(
    data: str,
    /,
    *,
    output: Annotated[Path | None, out_file("a picture", ".png", ".svg")] = None,
    up: FileUp = "auto",
    labels: str | None = None,
    write_labels: Annotated[Path | None, out_file("a table", ".csv", names=None)] = None,
) -> Result:
    """Show the card of a dataset. For a folder, count the shapes of each class and draw a few of them.

    In the picture you can see a wrong upward axis before training: shapes then do not stand upright.

    Example: `pointset data show path/to/parts -o parts.png`

    Args:
        data: Name of a dataset (see `pointset data list`), or a folder.
        output: Picture to write (.png or .svg); default for a folder of shapes: a picture in the cache folder.
        up: The axis that points up in the files; auto uses the card's axis. In a folder, it is y for OBJ, GLB and glTF,
            and z for other files.
        labels: Table (*.csv) with the columns "file" and "label", and optionally "split" and "group".
        write_labels: Table (*.csv) to write, with files, labels, splits and groups. You can correct this table, and
            pass it as --labels.
    """
    if write_labels is not None:
        return _write_labels(data, write_labels, labels)
    if data not in pointset.data.list_cards():
        return _look(data, output, up, labels)
    if output is not None:
        picture = _look(data, output, up, labels).data["picture"]
        print(escaped(f"saved in {picture}"), file=sys.stderr)
    card = msgspec.to_builtins(pointset.data.load_card(data))
    download = {key: value for key, value in card["download"].items() if value is not None}
    return Result(card, {name: value for name, value in {**card, "download": download}.items() if value})


@app.command
def check(
    data: str,
    /,
    *,
    output: Annotated[Path | None, out_file("a table", ".csv")] = None,
    up: Annotated[FileUp, COMMON] = "auto",
    labels: str | None = None,
    seed: Seed = 0,
) -> Result:
    """Read every shape once and find causes of wrong results: duplicates, leakage, label errors, unreadable files.

    Exact duplicates have the same bytes, or the same points in another format or order. Near-duplicates are nearest
    neighbours in feature space: resampled, moved or rescaled copies. Possible label errors are found by cleanlab from
    out-of-fold probabilities.

    To exclude shapes from training, keep only their rows in the table, and pass it as `--without
    check.csv`.

    Example: `pointset data check path/to/parts -o check.csv`

    Args:
        data: Name of a dataset (see `pointset data list`), or a folder.
        output: Table (*.csv) of the findings.
        up: The axis that points up in the files; auto uses the card's axis. In a folder, it is y for OBJ, GLB and glTF,
            and z for other files.
        labels: Table (*.csv) with the columns "file" and "label", and optionally "split" and "group".
        seed: Seed of the cross-validation folds that the search for label errors uses.
    """
    from pointset.data_quality.report import TITLES, check_data, overview

    started = time.perf_counter()
    report = check_data(data, up=None if up == "auto" else up, labels=labels, seed=seed)
    if output is not None:
        report.save(output)
    rows: Table = [
        {"": title, "shape": finding.file, "kind": finding.kind, "note": finding.note, "other": finding.other}
        for place, title in TITLES.items()
        for finding in report.of(place)[:FINDINGS_SHOWN]
    ]
    total = len(report.findings)
    lines: list[str | Table] = [*overview(report.shapes), *([rows] if rows else []), report.labels.note]
    if report.leaks:
        tests = sum(split != "train" for split in report.shapes.splits)
        names = " and ".join(sorted({*report.shapes.splits} - {"train"}))
        lines.append(
            f"leakage: {report.leaks:,} of {tests:,} {names} shapes are duplicates or possible near-duplicates of "
            "training shapes: look at them, and leave duplicates out with --without of `train` and `compare`"
        )
    more = f"; the first {FINDINGS_SHOWN} of each kind are shown above" if total > len(rows) else ""
    saved = f"; saved in {output}" if output else ""
    lines.append(f"{counted(total, 'finding')} in {time.perf_counter() - started:.0f} s{more}{saved}")
    findings = [asdict(finding) for finding in report.findings]
    about = {"shapes": len(report.shapes.names), "leaks": report.leaks, "findings": findings}
    return Result(about | {"sentences": [line for line in lines if isinstance(line, str)]}, *lines)


def _look(data: str, output: Path | None, up: str, labels: str | None) -> Result:
    """Count the shapes and draw a few of them."""
    from pointset.data.cache.inspection import look_at
    from pointset.data.catalogue.locate import home, make_folder

    overview, samples = look_at(data, up=up, labels=labels)
    names, clouds = zip(*samples, strict=True)
    title = f"{overview['name']}: drawn with {overview['up'].upper()} up"
    camera = viz.Camera(up="y" if overview["up"] == "y" else "z")
    picture = viz.draw_clouds(clouds, names=names, camera=camera, title=title, columns=8)
    path = viz.save(picture, output or make_folder(home() / "cache") / f"{overview['name']}.png", dpi=100)
    overview |= {"picture": str(path)}
    return Result(overview, *_in_words(overview))


def _write_labels(data: str, path: Path, labels: str | None) -> Result:
    """Write the table of files, labels, splits and groups."""
    from pointset.data.catalogue.folders import label_rows
    from pointset.data.catalogue.locate import locate_data

    rows = label_rows(locate_data(data)[1], labels=labels)
    write_atomically(path, lambda temporary: temporary.write_text(as_csv(rows), encoding="utf-8"))
    columns = " and ".join(name for name in rows[0] if name != "file")
    return Result({"table": str(path), "files": len(rows)}, f"{columns} of {counted(len(rows), 'file')} in {path}")


def _in_words(overview: dict[str, Any]) -> Iterator[str]:
    sizes = list(overview["classes"].items())
    (most, largest), (least, smallest) = sizes[0], sizes[-1]
    extremes = f"es: {most} is the largest with {largest:,} shapes, {least} the smallest with {smallest:,}"
    equal = f"es of {counted(largest, 'shape')} each" if len(sizes) > 1 else f" of {counted(largest, 'shape')}"
    yield f"{len(sizes)} class{extremes if largest > smallest else equal}"
    splits = ", ".join(f"{count:,} {split}" for split, count in overview["splits"].items())
    yield f"splits: {splits}; {overview['split_rule']}"
    differ = "; the types differ: do all shapes of the picture stand upright?" if overview["up_differs"] else ""
    assumed = f" (assumed from the file type; or set --up{differ})" if overview["up_assumed"] else ""
    yield f"up: {overview['up']}{assumed}"
    yield f"picture of a few shapes of each class: {overview['picture']}"


@app.command
def fetch(name: str, /) -> Result:
    """Download and unpack a dataset. An interrupted download starts from the beginning.

    Args:
        name: Name of a dataset (see `pointset data list`).
    """
    from pointset.data.catalogue.download import fetch as fetch_data

    folder = fetch_data(name)
    return Result({"name": name, "folder": str(folder)}, f"{name} is in {folder}")


@app.command
def verify(data: str = "shapes10", /) -> Result:
    """Compare the point caches of a dataset with the dataset's files, or published files with their checksums.

    Args:
        data: Name of a dataset (see `pointset data list`), or a folder.
    """
    from pointset.data.cache.inspection import verify_dataset

    caches = verify_dataset(data)
    lines = []
    for cache in caches:
        left_out = f", {cache.skipped:,} left out" if cache.skipped else ""
        state = "; ".join(cache.problems) or "sound"
        lines.append(f"{cache.folder}: {cache.shapes:,} {cache.what}{left_out}: {state}")
    failure = None
    if damaged := [str(cache.folder) for cache in caches if cache.problems]:
        remedy = f"run rm -r {shlex.join(damaged)}, and fetch or load the data again, which builds the caches again"
        failure = PointsetError(f"{len(damaged)} of {len(caches)} caches are damaged: {remedy}")
    return Result([{**asdict(cache), "folder": str(cache.folder)} for cache in caches], *lines, failure=failure)
