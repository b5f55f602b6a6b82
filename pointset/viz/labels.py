"""Labels per point as files: a table, a coloured cloud, or a page coloured by label, truth, error and entropy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex, to_rgb
from numpy.typing import NDArray

from pointset.data.axes import turned_up
from pointset.data.targets import classes_of
from pointset.errors import PointsetError, escaped
from pointset.evaluation.files import LabelledPoints
from pointset.runs.atomic import check_writable, checked_suffix, write_for_user
from pointset.viz.camera import Camera
from pointset.viz.clouds import Line, Panel, draw_lines
from pointset.viz.color import COLORS, Scale, attention_ramp
from pointset.viz.html_page import Page, as_base64, cloud_page
from pointset.viz.rows import as_cloud

FIRST, MOST = 192, 60
"""The index of the first class in a palette, after the colours of shares; the number of classes with an own colour."""
Blocks = Iterable[LabelledPoints]
LabelWriter = Callable[[Path, Blocks, Sequence[str], Sequence[int]], None]
"""Writes points in pieces, labelled with the classes, whose labels in the file are these numbers."""
MOST_DRAWN = 20_000
"""Points of a page; of more, every so many are drawn."""
UNKNOWN = (0.72, 0.72, 0.72)
"""The colour of points without a label."""


def label_ramp(classes: int, dark: bool = False) -> NDArray[np.float64]:
    """256 colours [256, 3]: without label, shares, classes."""
    shares = attention_ramp(dark)[np.linspace(0, 255, FIRST - 1).astype(int)]
    return np.vstack([UNKNOWN, shares, np.resize(class_colors(classes), (256 - FIRST, 3))])


def class_colors(count: int) -> NDArray[np.float64]:
    """A colour for each class, [count, 3]: those of the package's charts except black, or those of a colour map."""
    colors = [to_rgb(color) for color in COLORS if color != "#000000"]
    if count <= len(colors):
        return np.array(colors[:count])
    # The map has pairs of a strong and a pale colour: the strong ones come first.
    return np.array([colormaps["tab20"](2 * index % 20 + index // 10 % 2)[:3] for index in range(count)])


def make_label_page(
    points: Any,
    probabilities: Any,
    classes: Sequence[str],
    *,
    truth: Any = None,
    title: str = "Labels",
    camera: Camera | None = None,
) -> Page:
    """Make a page of a cloud that turns, coloured by label, truth, error, entropy and probability of the label.

    Args:
        points: [n, 3].
        probabilities: [n, classes], as `Segmenter.predict_proba` gives them for the cloud.
        classes: names of the classes.
        truth: [n], indices of the true classes; negative where they are not known.
        title: title of the page.
        camera: the first view.

    Returns:
        The page, for saving or for showing in a notebook.

    Raises:
        PointsetError: the arrays do not fit each other, or the cloud is empty.

    Example:
        >>> page = pointset.viz.make_label_page(test.points[0], np.full((32, 2), 0.5), ["seat", "leg"])
        >>> page.save("labels.html").stat().st_size > 10_000
        True
    """
    cloud, camera, shares = as_cloud(points), camera or Camera(), np.asarray(probabilities, float)
    if shares.shape != (len(cloud), len(classes)):
        raise PointsetError(
            f"probabilities must be [{len(cloud)}, {len(classes)}] for these points and classes, "
            f"got {list(shares.shape)}"
        )
    true = np.full(len(cloud), -1) if truth is None else np.asarray(truth)
    if true.shape != (len(cloud),):
        raise PointsetError(f"truth must have an entry for each of the {len(cloud)} points, got {list(true.shape)}")
    labels, best = shares.argmax(axis=1), shares.max(axis=1)
    entropy = -(shares * np.log(shares.clip(min=1e-12))).sum(axis=1)
    scale = Scale(np.asarray, label_ramp(len(classes)), emphasis=np.asarray)  # values are positions
    views = [Panel(cloud, _of_classes(labels), scale, "label", f"{len(np.unique(labels))} classes")]
    if truth is not None:
        known = true >= 0
        wrong = known & (labels != true)
        errors = f"{wrong.sum() / known.sum():.1%} of {known.sum():,}" if known.any() else "no point has a label"
        views.append(Panel(cloud, _of_classes(true), scale, "truth", f"{known.sum():,} known"))
        views.append(Panel(cloud, np.where(known, _of_shares(wrong), 0), scale, "error", errors))
    most = float(np.log(max(2, len(classes))))
    views.append(Panel(cloud, _of_shares(entropy / most), scale, "entropy", f"mean {entropy.mean():.2f} nats"))
    views.append(Panel(cloud, _of_shares(best), scale, "probability", f"mean {best.mean():.0%}"))
    names, percent = [*classes, "not known"], [f"{share} %" for share in range(101)]
    tips = [("label", names, labels.tolist()), ("probability", percent, (100 * best).round().astype(int).tolist())]
    if truth is not None:
        tips.append(("truth", names, np.where(true < 0, len(classes), true).tolist()))
    on_bar = "probability" if truth is None else "error, probability"
    layer = {
        "name": title,
        "kind": "",
        "row_name": "",
        "meaning": f"Bar: {on_bar} and entropy as a share of its largest value, {most:.2f} nats",
        "views": [{"name": view.name, "note": view.note} for view in views],
        "tips": tips,
        "keys": 1,
        "heads": list(range(len(views))),
        "rows": [0],
        "marks": [-1],
        "spread": [0.0] * len(views),
        "differences": [],
        # A code is a position of the palette.
        "low": -1,
        "high": 1,
        "reach": 1,
        "ticks": [[0, "0 %"], [0.5, "50 %"], [1, "100 %"]],
        "values": as_base64(np.round(65535 * np.array([view.values for view in views])).astype("<u2")),
    }
    legend = []
    for index, (name, color) in enumerate(zip(classes, class_colors(len(classes)), strict=True)):
        counts = [int((labels == index).sum()), int((true == index).sum())]
        if any(counts):
            about = f"{counts[0]:,}" + (f", truth {counts[1]:,}" if truth is not None else "")
            legend.append({"name": name, "color": to_hex(color), "note": about})
    note = f"{len(cloud):,} points"
    return cloud_page(
        "labels",
        title,
        note,
        cloud,
        camera,
        [layer],
        ramp=partial(label_ramp, len(classes)),
        legend=legend,
        draw_still=lambda: draw_lines([Line("", views)], camera, title, note),
    )


def _of_classes(indices: NDArray[np.int64]) -> NDArray[np.float64]:
    """Positions of the colours of classes; 0 for negative indices."""
    return np.where(indices < 0, 0, FIRST + indices % MOST) / 255


def _of_shares(shares: Any) -> NDArray[np.float64]:
    """Positions of the colours of shares."""
    position: NDArray[np.float64] = (1 + (FIRST - 2) * np.clip(shares, 0, 1)) / 255
    return position


def check_label_file(path: Path) -> None:
    """Raise a PointsetError for a path that no labelled points can be written to."""
    check_writable(checked_suffix(path, [*LABEL_WRITERS], "labelled points"))


def write_labels(path: Path, blocks: Blocks, classes: Sequence[str], values: Sequence[int]) -> None:
    """Write labelled points as *.csv or *.ply, piece by piece, or *.html; `values` are the labels of the classes."""
    LABEL_WRITERS[path.suffix.lower()](path, blocks, classes, values)


def _write_csv(output: Path, blocks: Blocks, classes: Sequence[str], values: Sequence[int]) -> None:
    def write(path: Path) -> None:
        with path.open("w", encoding="utf-8") as file:
            file.write("x,y,z,label,probability\n")
            for block in blocks:
                np.savetxt(file, np.column_stack(_columns(block, values)), ["%.12g"] * 3 + ["%d", "%.4f"], ",")

    write_for_user(output, write)


def _write_ply(output: Path, blocks: Blocks, classes: Sequence[str], values: Sequence[int]) -> None:
    kinds = {"x": "<f8", "y": "<f8", "z": "<f8", "label": "<i4", "probability": "<f4"}
    kinds |= {"red": "u1", "green": "u1", "blue": "u1"}
    types = {"<f8": "double", "<i4": "int", "<f4": "float", "u1": "uchar"}
    colors = (255 * class_colors(len(classes))).round().astype(np.uint8)

    def head(count: int) -> bytes:
        """The header, of one length for all counts, as it is written again when the count is known."""
        names = [f"comment label {value} {escaped(name)}" for value, name in zip(values, classes, strict=True)]
        columns = [f"property {types[kind]} {name}" for name, kind in kinds.items()]
        start = ["ply", "format binary_little_endian 1.0", *names, f"comment {'.' * (20 - len(str(count)))}"]
        lines = [*start, f"element vertex {count}", *columns, "end_header"]
        return "".join(f"{line}\n" for line in lines).encode()

    def write(path: Path) -> None:
        count = 0
        with path.open("w+b") as file:
            file.write(head(0))
            for block in blocks:
                columns = [*_columns(block, values), *colors[block.labels].T]
                file.write(np.rec.fromarrays(columns, dtype=[*kinds.items()]).tobytes())
                count += len(block.labels)
            file.seek(0)
            file.write(head(count))

    write_for_user(output, write)


def _write_page(output: Path, blocks: Blocks, classes: Sequence[str], values: Sequence[int]) -> None:
    every = list(blocks)
    step = -(-sum(len(block.points) for block in every) // MOST_DRAWN) or 1
    points, probabilities = (
        np.concatenate([getattr(block, name) for block in every])[::step] for name in ("points", "probabilities")
    )
    truth = None
    if every and every[0].truth is not None:
        truth = classes_of(np.concatenate([block.truth for block in every]), dict(zip(values, classes, strict=True)))
        truth = truth[::step]
    title = output.stem + (f", one of every {step} points" if step > 1 else "")
    points = turned_up(points, every[0].up, "z")
    make_label_page(points, probabilities, classes, truth=truth, title=title).save(output)


LABEL_WRITERS: dict[str, LabelWriter] = {".ply": _write_ply, ".csv": _write_csv, ".html": _write_page}


def _columns(block: LabelledPoints, values: Sequence[int]) -> list[np.ndarray]:
    """The coordinates, labels and probabilities of points."""
    return [*block.points.T, np.asarray(values)[block.labels], block.probabilities.max(axis=1)]
