"""`pointset segment`: label every point of clouds and meshes; and the printed metrics of such labels."""

from typing import TYPE_CHECKING

import numpy as np

from pointset.commands.terminal import print_json, print_rows

if TYPE_CHECKING:
    from pointset.evaluation.points import PointEvaluation


def print_points(model: str, result: "PointEvaluation", split: str, as_json: bool) -> None:
    """Print the metrics of labels per point: a line, and a row for each class with its IoU and commonest mistake."""
    summary = {"model": model, **result.summary()}
    if as_json:
        print_json(summary | {"confusion": result.confusion.tolist()})
        return
    print(f"{summary['points']:,} labelled points of {summary['shapes']:,} {split} shapes", end=": ")
    print(f"accuracy {result.accuracy:.2%}, mean IoU {result.mean_iou:.2%}, loss {result.loss:.3f}")
    confusion, iou, recall = result.confusion, result.iou, result.per_class
    rows = []
    for index, name in enumerate(result.classes):
        others = np.where(np.arange(len(confusion)) == index, 0, confusion[index])
        most = int(others.argmax())
        rows.append(
            {
                "class": name,
                "IoU %": f"{100 * iou[name]:.1f}" if name in iou else "",
                "recall %": f"{100 * recall[name]:.1f}" if name in recall else "",
                "points": f"{confusion[index].sum():,}",
                "most often taken for": f"{result.classes[most]} ({others[most]:,})" if others[most] else "",
            }
        )
    print_rows(rows)
