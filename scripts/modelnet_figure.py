"""The README's picture and metrics of attention on ModelNet40: what inducing points read, trained and untrained.

The command, and that of the two runs, stand under `modern` in scripts/experiments/README.md.
"""

import io
from pathlib import Path
from typing import Annotated

import cyclopts
import torch
from cyclopts import Parameter
from PIL import Image
from scipy.stats import spearmanr
from weights_figure import stacked

import pointset
from pointset.explain.importance import critical_points, occlusion_influence, rollout
from pointset.explain.specialisation import specialisation, untrained
from pointset.viz import draw_instances

KINDS = ("chair", "airplane", "lamp")
PER_KIND = 2


def figure(model: torch.nn.Module, sets: pointset.PointSets, layer: str, chosen: list[tuple[int, int]]) -> Image.Image:
    """A line for each (head, inducing point), on two shapes of three classes."""
    rows = [row for kind in KINDS for row in members(sets, kind)[:PER_KIND]]
    clouds = [sets.points[row] for row in rows]
    names = [sets.classes[int(sets.labels[row])] for row in rows]
    maps = [pointset.find_map(pointset.attention_maps(model, cloud), layer=layer) for cloud in clouds]
    lines = [draw_instances(maps, clouds, head, query, names=names) for head, query in chosen]
    return stacked([Image.open(io.BytesIO(line._repr_png_())) for line in lines])


def members(sets: pointset.PointSets, kind: str) -> list[int]:
    """The shapes of a class."""
    return (sets.labels == sets.classes.index(kind)).nonzero()[:, 0].tolist()


def report_agreement(model: torch.nn.Module, control: torch.nn.Module, sets: pointset.PointSets, shapes: int) -> None:
    """Rank correlation of attention with occlusion, over shapes spread evenly over the set."""
    found: dict[str, list[float]] = {"pools": [], "rollout": [], "rollout, untrained": []}
    for row in range(0, len(sets), len(sets) // shapes):
        influence = occlusion_influence(model, sets.points[row])
        maps = pointset.attention_maps(model, sets.points[row])
        pools = pointset.find_map(maps, kind="pools").heads("mean").weights[0, 0]
        found["pools"].append(spearmanr(pools, influence).statistic)
        found["rollout"].append(spearmanr(rollout(maps)[0], influence).statistic)
        influence = occlusion_influence(control, sets.points[row])
        fresh = pointset.attention_maps(control, sets.points[row])
        found["rollout, untrained"].append(spearmanr(rollout(fresh)[0], influence).statistic)
    for name, values in found.items():
        report(name, values)


def report(name: str, values: list[float]) -> None:
    """Mean and standard deviation in one line."""
    numbers = torch.tensor(values)
    print(
        f"{name:20} rank correlation with occlusion {numbers.mean():+.2f} ± {numbers.std():.2f}, {len(values)} shapes"
    )


def main(
    *,
    checkpoint: Path,
    data: Path,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    pooled_by_max: Path | None = None,
    layer: str = "encoder.1.reads",
    points: int = 1024,
    shapes: int = 60,
) -> None:
    """Draw the picture and print the metrics.

    Args:
        checkpoint: the run of a model with inducing points and PMA.
        data: ModelNet40 as points.
        output: the PNG to write.
        pooled_by_max: the run of a model that pools by max, for its critical points.
        layer: the attention to draw and to measure.
        points: on each shape of the picture; the metrics are measured on 256.
        shapes: for the correlations.
    """
    model, description = pointset.load_run(checkpoint)
    normalize = description["data"]["normalize"]
    dense = pointset.load_dataset(data, "test", points, normalize=normalize)
    maps = pointset.attention_maps(model, dense.points[members(dense, KINDS[0])[0]])
    entropy = pointset.find_map(maps, layer=layer).entropy()
    chosen = [(head, int(entropy[head].median(dim=0).indices)) for head in range(len(entropy))]
    figure(model, dense, layer, chosen).save(output, optimize=True)

    sets = pointset.load_dataset(data, "test", 256, normalize=normalize)
    control = untrained(model)
    print(specialisation(model, sets, layer).table(specialisation(control, sets, layer)))
    report_agreement(model, control, sets, shapes)
    if pooled_by_max is not None:
        other, _ = pointset.load_run(pooled_by_max)
        values = []
        for row in range(0, len(sets), len(sets) // shapes):
            counts = critical_points(other, sets.points[row]).float()
            values.append(spearmanr(counts, occlusion_influence(other, sets.points[row])).statistic)
        report("critical points", values)


if __name__ == "__main__":
    cyclopts.run(main)
