"""Measure the attention of the inducing points of a pretrained Set Transformer, and draw the figure of the README.

python scripts/experiments/reading.py path/to/modelnet40_ply_hdf5    # writes results/reading/ and the figure
"""

import sys
from collections.abc import Iterator
from typing import Any

import cyclopts
import numpy as np
import torch
from matplotlib.figure import Figure
from saved import FOLDER, run, study_table, write_study
from torch import Tensor, nn

from pointset import load_model
from pointset.data import PointSets, load_dataset
from pointset.explain import AttentionMap, attention_maps, find_map, specialisation, untrained
from pointset.viz import draw_instances, save

MODEL, LAYERS, POINTS, PER_CLASS, SHAPES_AT_ONCE = "isab16-pma.modelnet40-1024", 2, 1024, 8, 32
PICTURE = FOLDER.parents[1] / "notebooks" / "modelnet40_attention.png"
DRAWN = ("chair", "airplane", "lamp")
LINES = ("planarity", "linearity", "scattering", "height")
"""Properties of the lines of the figure. A line has the inducing point with the largest preference for the property."""
PROPERTIES = {
    "linearity": "edges, rods",
    "planarity": "flat faces",
    "scattering": "corners, folds",
    "distance": "sparse parts",
    "height": "height",
    "from the centre": "distance from centre",
}
LARGE = 0.5
"""The table counts inducing points whose absolute preference, in standard deviations, is above this value."""
app = cyclopts.App(name="reading.py", help=__doc__, result_action="return_value")


@app.default
def reading(data: str) -> None:
    """Measure all inducing points of the trained and of an untrained network, and draw the maps of four of them."""
    model = load_model(MODEL)
    description = model.description
    sets = load_dataset(data, "test", POINTS, normalize=description["data"]["normalize"])
    networks = {"trained": model, "untrained": untrained(model)}
    rows, tables, found = list[dict[str, Any]](), list[str](), dict[str, Tensor]()
    for layer in (f"encoder.{number}.reads" for number in range(LAYERS)):
        first, control = (specialisation(network, sets, layer, per_class=PER_CLASS) for network in networks.values())
        tables.append(first.table(control, "github"))
        read = {name: preferences(network, sets, layer) for name, network in networks.items()}
        tables.append(study_table(lines(read), HEADS, left=2))
        found[layer] = read["trained"]
        for name, values in read.items():
            for place in torch.cartesian_prod(*map(torch.arange, values.shape[:2])).tolist():
                numbers = zip(PROPERTIES, values[tuple(place)].tolist(), strict=True)
                where = {"network": name, "layer": layer, "head": place[0], "inducing point": place[1]}
                rows.append(where | {key: round(value, 4) for key, value in numbers})
    write_study("reading", rows, tables)
    save(picture(model, sets, found), PICTURE)


def preferences(model: nn.Module, sets: PointSets, layer: str) -> Tensor:
    """Return preferences [heads, inducing points, properties], averaged over the shapes.

    A preference is the mean of a property over the points of a shape with attention weights, minus the mean without
    weights, in standard deviations over the points.
    """
    some = sets.subset(torch.cat([(sets.labels == label).nonzero()[:PER_CLASS, 0] for label in sets.labels.unique()]))
    points, numbers = some.points, some.with_local_features("upright").points[..., 3:6]
    linearity, planarity, distance = numbers.unbind(dim=2)
    height, centre = points[..., "xyz".index(sets.up)], points.norm(dim=2)
    table = torch.stack([linearity, planarity, 1 - linearity - planarity, distance, height, centre], dim=2)
    table = (table - table.mean(dim=1, keepdim=True)) / table.std(dim=1, keepdim=True).clamp(min=1e-6)
    batches = zip(points.split(SHAPES_AT_ONCE), table.split(SHAPES_AT_ONCE), strict=True)
    found = [find_map(attention_maps(model, X), layer=layer).weights @ standard[:, None] for X, standard in batches]
    return torch.cat(found).mean(dim=0)


HEADS = ["property", "points", "trained: median", "largest", f"beyond {LARGE}", "untrained: median", "largest"]


def lines(read: dict[str, Tensor]) -> Iterator[list[str]]:
    """Yield a line of the table for each property, from the preferences of all inducing points of a layer."""
    trained, control = (values.flatten(0, 1).abs() for values in read.values())
    for place, (name, words) in enumerate(PROPERTIES.items()):
        own, others = trained[:, place], control[:, place]
        beyond = f"{int((own > LARGE).sum())} of {len(own)}"
        cells = [f"{value:.2f}" for value in (own.median(), own.max(), others.median(), others.max())]
        yield [name, words, *cells[:2], beyond, *cells[2:]]


def picture(model: nn.Module, sets: PointSets, found: dict[str, Tensor]) -> Figure:
    """Draw, for each property in `LINES`, the maps of the inducing point with the largest preference."""
    shown = [row for kind in DRAWN for row in (sets.labels == sets.classes.index(kind)).nonzero()[:2, 0].tolist()]
    maps = [attention_maps(model, sets.points[row]) for row in shown]
    labels, chosen = list[str](), [list[Tensor]() for _ in shown]
    for name in LINES:
        values = torch.stack([*found.values()])[..., list(PROPERTIES).index(name)]
        place, head, query = (int(index) for index in np.unravel_index(int(values.argmax()), values.shape))
        labels.append(f"{PROPERTIES[name]}\nlayer {place + 1}, head {head}, no. {query}")
        for rows, of_shape in zip(chosen, maps, strict=True):
            rows.append(find_map(of_shape, layer=[*found][place]).weights[head, query])
    drawn = [AttentionMap("encoder", "reads", torch.stack(rows)[None], "keys") for rows in chosen]
    names, queries = [sets.classes[int(sets.labels[row])] for row in shown], range(len(labels))
    made = draw_instances(drawn, [*sets.points[shown]], query=queries, names=names, up=sets.up, width="page")
    for axes, label in zip(made.axes[:: len(shown)], labels, strict=False):
        axes.texts[0].set_text(label)
    return made


if __name__ == "__main__":
    sys.exit(run(app))
