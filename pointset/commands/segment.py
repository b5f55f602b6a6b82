"""`pointset segment`: label every point of a cloud or a mesh."""

from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pointset.commands.models import load_model
from pointset.commands.options import Out
from pointset.commands.terminal import Result
from pointset.data.axes import UsualUp
from pointset.data.targets import UNLABELLED, classes_of
from pointset.errors import PointsetError
from pointset.runs.progress import followed

if TYPE_CHECKING:
    from pointset.evaluation.files import LabelledPoints


def segment(
    file: Path,
    /,
    *,
    model: str,
    output: Out | None = None,
    labels: str | None = None,
    up: UsualUp = "auto",
) -> Result:
    """Label every point of a cloud, or points that are sampled on a mesh, with a model trained with --labels.

    The suffix of the output sets the format. .ply and .csv have each point in the units of the file with its label, its
    probability and, in a .ply, the colour of its class; a large scan is read and written in pieces. .html is a page
    on which the points turn, coloured by label, truth and error (with --labels), entropy and probability.

    Example: `pointset segment room.ply --model runs/rooms -o labelled.ply`

    Args:
        file: A point cloud (.npy, .npz, .ply, .pcd, .las, .xyz, .csv, .pts), a mesh (OFF, OBJ, PLY, STL, GLB), or a
            folder of them.
        model: Run of `pointset train --labels`: its folder, or a file of `pointset pack`.
        output: The file to write: *.ply, *.csv or *.html; for a folder, another folder, which gets a .ply for each
            file.
        labels: The column of the clouds with their true labels: prints the accuracy and the IoU.
        up: The axis that points up in the files; auto assumes y for OBJ, GLB and glTF, otherwise the axis of the
            model's shapes. Files with another axis are rotated for the model.
    """
    from pointset.evaluation.files import in_folders, label_points
    from pointset.evaluation.predictions import intersection_over_union
    from pointset.viz.labels import check_label_file, write_labels

    several = file.is_dir()
    if several and output is not None and output.suffix:
        raise PointsetError(f"{output}: {file} is a folder, so give the name of a folder, without a suffix")
    if output is not None and not several:
        check_label_file(output)
    trained = load_model(model, "points")
    network, classes, values = trained.on_device(), list(trained.network.classes), trained.data["point_labels"]
    counts, confusion = np.zeros(len(classes), np.int64), np.zeros((len(classes), len(classes)), np.int64)

    def counted(blocks: "Iterable[LabelledPoints]") -> "Iterator[LabelledPoints]":
        for block in blocks:
            counts[:] += np.bincount(block.labels, minlength=len(classes))
            if block.truth is not None:
                truth = classes_of(block.truth, dict(zip(values, classes, strict=True)))
                known = truth != UNLABELLED
                np.add.at(confusion, (truth[known], block.labels[known]), 1)
            yield block

    shapes = in_folders([file])
    for shape in followed(shapes, "labelling", "file", len(shapes), show=len(shapes) > 1):
        blocks = counted(label_points(network, trained.data, shape.path, up=up, column=labels))
        if output is None:
            deque(blocks, maxlen=0)
            continue
        path = output / f"{shape.name}.ply" if several else output
        path.parent.mkdir(parents=True, exist_ok=True)
        write_labels(path, blocks, classes, values)
    iou = intersection_over_union(confusion, classes)
    known = int(confusion.sum())
    metrics: dict[str, Any] = {"labelled": known}
    if known:
        metrics |= {"accuracy": confusion.trace() / known, "mean_iou": sum(iou.values()) / len(iou), "iou": iou}
    points = dict(zip(classes, counts.tolist(), strict=True))
    result = {"model": model, "output": output and str(output), "labels": values, "points": points}
    what = f"{len(shapes):,} files" if several else file.name
    text = [f"{what}: {counts.sum():,} points" + (f", saved in {output}" if output else "")]
    if labels is not None:
        result |= metrics
        rates = f": accuracy {metrics['accuracy']:.2%}, mean IoU {metrics['mean_iou']:.2%}" if known else ""
        text.append(f"{known:,} of them have a label in {labels} that the model knows{rates}")
    rows = []
    for name, value in zip(classes, values, strict=True):
        if points[name] or name in iou:
            row = {"label": str(value), "class": name, "points": f"{points[name]:,}"}
            rows.append(row | ({"IoU %": f"{100 * iou[name]:.1f}" if name in iou else ""} if known else {}))
    return Result(result, *text, rows)
