"""`pointset embed` and `pointset find`: rows of numbers for shapes, and the shapes that are similar by them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from pointset.commands.flags import Reading, ReadingFlags, out_file
from pointset.commands.terminal import Result, Table
from pointset.commands.trained import Trained, left_out, load_model, require_network, run_over_files, settled_up
from pointset.configuration import Count
from pointset.data.readers.formats import require_shape_file
from pointset.errors import PointsetError, counted, escaped
from pointset.runs.progress import followed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pointset.evaluation.embedding import Embedded

EMBEDDER = "dumlp16-max+dumlp16.modelnet40-1024"
"""Of the trained models, its rows are the best single embedding of foreign shapes; see `Classifier.embed`."""
EMBEDDING_MODEL_HELP = f"Folder of a run, or a trained model from `pointset zoo --pretrained`; default: {EMBEDDER}."
EmbeddingModel = Annotated[str | None, Parameter(name="--model", help=EMBEDDING_MODEL_HELP)]


def embed(
    files: list[Path],
    /,
    *,
    model: EmbeddingModel = None,
    output: Annotated[Path, out_file("a file of embeddings", ".npz", ".csv")],
    reading: Annotated[Reading, ReadingFlags] = Reading(),
) -> Result:
    """Write one row of numbers for each shape, in which similar shapes are near each other.

    Use the rows for nearest neighbours, clusters or a classifier of your own. `pointset find SHAPE rows.npz` finds
    similar shapes in them.

    Example: `pointset embed path/to/meshes -o rows.npz`

    Args:
        files: Meshes, point clouds, and folders of them.
        output: File for the rows (*.npz or *.csv), with the names, classes and paths of the shapes.
    """
    start = perf_counter()
    embedded, failures = _embed(load_model(EMBEDDER if model is None else model), files, reading)
    embedded.save(output)
    (count, width), seconds = embedded.rows.shape, perf_counter() - start
    data = {"output": str(output), "model": embedded.model, "shapes": count, "width": width, "seconds": seconds}
    line = f"saved in {output}: {counted(count, 'shape')}, {width} numbers each, by {embedded.model} in {seconds:.1f} s"
    return Result(data | {"left_out": failures}, line, *left_out(failures))


def find(
    paths: list[Path],
    /,
    *,
    model: EmbeddingModel = None,
    output: Annotated[Path | None, out_file("a page", ".html", ".htm")] = None,
    count: Annotated[Count, Parameter(name=["--count", "-k"])] = 12,
    reading: Annotated[Reading, ReadingFlags] = Reading(),
) -> Result:
    """Find the shapes of a folder that are most similar to a shape.

    Example: `pointset find chair.off path/to/meshes -o found.html`; shapes that are there twice: `pointset data check`

    Args:
        paths: A shape, and a folder of shapes or an *.npz file that `pointset embed` wrote.
        output: A page (*.html) with pictures: the similar shapes with their distances and the points that make them
            similar.
        count: Number of similar shapes.
    """
    if len(paths) != 2:
        raise PointsetError(f"find needs a shape and a folder of shapes, got {counted(len(paths), 'path')}")
    shape, folder = paths
    require_shape_file(shape)
    if folder.suffix.lower() == ".csv":
        raise PointsetError(f"{folder} is a table: give a folder of shapes, or the *.npz of `pointset embed`")
    from pointset.evaluation.embedding import load_embedded, nearest_others
    from pointset.evaluation.shape_files import in_folders

    embedded = load_embedded(folder) if folder.suffix.lower() == ".npz" and folder.is_file() else None
    if embedded is not None and model not in (None, embedded.model):
        raise PointsetError(f"{folder} has the rows of {embedded.model}: leave out --model, or embed the shapes again")
    trained = load_model(embedded.model if embedded is not None else EMBEDDER if model is None else model)
    files = in_folders([folder] if embedded is None else map(Path, embedded.files))
    reading = replace(reading, up=settled_up(reading.up, trained, files))
    query = _embed(trained, [shape], reading)[0].rows  # before the folder, which may take minutes
    embedded, failures = (embedded, {}) if embedded else _embed(trained, [folder], reading)
    rows: Table = [
        {
            "shape": embedded.names[row],
            "class": embedded.classes[row],
            "distance": distance,
            "file": embedded.files[row],
        }
        for row, distance in nearest_others(embedded, query, shape, count)
    ]
    if output is not None:
        _draw(trained.network, shape, query[0], rows, reading, f"Embeddings of {embedded.model}.", output)
    data = {"model": embedded.model, "shape": str(shape), "similar": rows, "output": output and str(output)}
    shapes, where = counted(len(embedded.files), "shape"), f"; saved in {output}" if output else ""
    table = [{"shape": row["shape"], "class": row["class"], "distance": f"{row['distance']:.3g}"} for row in rows]
    return Result(data | {"left_out": failures}, table, f"of {shapes}, by {embedded.model}{where}", *left_out(failures))


def _embed(trained: Trained, paths: Sequence[Path], reading: Reading) -> "tuple[Embedded, dict[str, str]]":
    """The rows of files, and the reasons by name of those that are left out."""
    from pointset.evaluation.embedding import Embedded, embed_files
    from pointset.evaluation.shape_files import in_folders

    if trained.description["model"].get("members"):
        require_network(trained, "embedded")
    rows, failures = run_over_files(embed_files, trained, in_folders(paths), reading, "embedding")
    return Embedded.of(trained.name, rows), failures


def _draw(
    network: Any, shape: Path, query: "NDArray[np.float32]", rows: Table, reading: Reading, source: str, output: Path
) -> None:
    """Write a page with a shape and those that are similar to it, by rows [width] of numbers."""
    import torch

    from pointset.explain.importance import similarity_influence
    from pointset.viz.html_page import ShapePicture, make_similar_page

    def points(path: str | Path) -> Any:
        return network.prepare(path, up=reading.up, keep_outliers=reading.keep_outliers).points

    tiles = [ShapePicture([points(shape)[:, :3]], escaped(shape.name), "the shape")]
    for row in followed(rows, "what makes shapes similar", "shape", len(rows)):
        cloud = points(row["file"])
        influence = similarity_influence(network, cloud, torch.from_numpy(query))
        note = f"{row['class']}, distance {row['distance']:.3g}".lstrip(", ")
        tiles.append(ShapePicture([cloud[:, :3]], escaped(row["shape"]), note, influence))
    note = (
        f"{source} Right pictures: dark points are those that make the shape similar; without their patch, the "
        "distance would be larger."
    )
    title = escaped(f"The shapes most similar to {shape.name}")
    make_similar_page(tiles, title=title, note=note, up=network.preparation.up).save(output)
