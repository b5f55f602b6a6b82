"""The results page's picture of attention weights: softmax, sparse, and seeds that share what they give a point.

The runs are those of scripts/experiments/attention_weights.toml; the commands stand beside the picture.
"""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import cyclopts
from cyclopts import Parameter
from PIL import Image

import pointset
from pointset.explain.specialisation import specialisation
from pointset.viz import draw_maps

READS, POOLS = "encoder.1.reads", "pool.pma.mab"
SHOWN = (
    ("isab16-pma", READS, "softmax: what six inducing points read"),
    ("isab16-pma sparsemax", READS, "sparsemax: the same"),
    ("isab16-pma4", POOLS, "four seeds, softmax: what they read"),
    ("isab16-pma4 shared", POOLS, "four seeds that share an upper bound (constrained sparsemax)"),
)
"""Label of the run, layer, and title."""


def main(
    runs: Path,
    /,
    *,
    data: Path,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    kind: str = "chair",
    points: int = 1000,
    head: int = 0,
) -> None:
    """Draw the picture and print measures of the inducing points and seeds of each run.

    Args:
        runs: the folder of the comparison.
        data: ModelNet40 as points.
        output: the PNG to write.
        kind: the class whose first test shape is drawn.
        points: on the shape; the metrics are measured on sets of the size that the models were trained on.
        head: the one that is drawn.
    """
    pictures = []
    for label, layer, title in SHOWN:
        model, description = pointset.load_run(next(runs.glob(f"runs/{label.replace(' ', '_')}-n*-seed0")))
        options = description["data"]
        dense = pointset.load_dataset(data, "test", points, normalize=options["normalize"])
        cloud = dense.points[int((dense.labels == dense.classes.index(kind)).nonzero()[0])]
        found = pointset.find_map(pointset.attention_maps(model, cloud), layer=layer)
        queries = list(range(min(6, found.weights.shape[1])))
        drawn = draw_maps(found, cloud, heads=[head], queries=queries, title=title)
        pictures.append(Image.open(io.BytesIO(drawn._repr_png_())))

        sets = pointset.load_dataset(data, "test", options["points"], normalize=options["normalize"])
        print(f"\n{label}: {layer}\n{specialisation(model, sets, layer).table()}")
    stacked(pictures).save(output, optimize=True)


def stacked(pictures: Sequence[Image.Image]) -> Image.Image:
    """Pictures below each other."""
    whole = Image.new("RGB", (max(one.width for one in pictures), sum(one.height for one in pictures)), "white")
    top = 0
    for picture in pictures:
        whole.paste(picture, (0, top))
        top += picture.height
    return whole


if __name__ == "__main__":
    cyclopts.run(main)
