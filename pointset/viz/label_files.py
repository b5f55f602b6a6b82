"""Files of labelled points: a table, a coloured cloud, or a page."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from pointset.data.axes import turned_up
from pointset.data.targets import classes_of
from pointset.errors import escaped
from pointset.evaluation.files import LabelledPoints
from pointset.runs.atomic import check_writable, checked_suffix, write_for_user
from pointset.viz.labels import class_colors, make_label_page

Blocks = Iterable[LabelledPoints]
Writer = Callable[[Path, Blocks, Sequence[str], Sequence[int]], None]
"""Writes points in pieces, labelled with the classes, whose labels in the file are these numbers."""
MOST_DRAWN = 20_000
"""Points of a page; of more, every so many are drawn."""


def check_label_file(path: Path) -> None:
    """Raise a PointsetError for a path that no labelled points can be written to."""
    check_writable(checked_suffix(path, [*WRITERS], "labelled points"))


def write_labels(path: Path, blocks: Blocks, classes: Sequence[str], values: Sequence[int]) -> None:
    """Write labelled points, as the suffix says; .csv and .ply are written piece by piece.

    Args:
        path: *.csv, *.ply or *.html.
        blocks: the points in pieces.
        classes: names of the classes.
        values: the label of each class in files.
    """
    WRITERS[path.suffix.lower()](path, blocks, classes, values)


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


WRITERS: dict[str, Writer] = {".ply": _write_ply, ".csv": _write_csv, ".html": _write_page}


def _columns(block: LabelledPoints, values: Sequence[int]) -> list[np.ndarray]:
    """The coordinates, labels and probabilities of points."""
    return [*block.points.T, np.asarray(values)[block.labels], block.probabilities.max(axis=1)]
