"""`pointset embed` and `pointset find`: rows of numbers for shapes, and the shapes that are similar by them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from pointset.commands.models import Trained, load_model
from pointset.commands.options import Json
from pointset.commands.printing import print_json, print_rows
from pointset.data.axes import UsualUp
from pointset.errors import PointsetError, escaped

if TYPE_CHECKING:
    from pointset.evaluation.embedding import Embedded
    from pointset.evaluation.neighbours import Pair

EMBEDDER = "isab16-max.modelnet40-1024"
"""Of the trained models, its rows are the best single embedding of foreign shapes; see `Classifier.embed`."""
SHOWN = 20
"""Pairs of near-duplicates that are printed and drawn."""
RESAMPLED = 64
"""Shapes that are sampled twice, for the threshold of near-duplicates."""
HELP = f"Folder of a run, or a trained model from `pointset zoo --pretrained`; default: {EMBEDDER}."
Embedder = Annotated[str | None, Parameter(name="--model", help=HELP)]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How files are read."""

    on_error: Literal["raise", "skip"] = "raise"
    """How to handle files that cannot be used: "raise" reports them and writes nothing; "skip" continues without."""
    up: UsualUp = "auto"
    """The axis that points up in the files; auto assumes y for OBJ, GLB and glTF, otherwise the axis of the model's
    shapes."""
    keep_outliers: bool = False
    """Keep isolated points of point clouds, such as a background."""


ReadingFlags = Annotated[Reading, Parameter(name="*")]


def embed(
    files: list[Path],
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    model: Embedder = None,
    reading: ReadingFlags = Reading(),
    as_json: Json = False,
) -> None:
    """Write one row of numbers for each shape, in which similar shapes are near each other.

    Use the rows for nearest neighbours, clusters or a classifier of your own. `pointset find SHAPE rows.npz` finds
    similar shapes in them.

    Example: `pointset embed path/to/meshes -o rows.npz`

    Args:
        files: Meshes, point clouds, and folders of them.
        output: File for the rows (*.npz, *.parquet or *.csv), with the names, classes and paths of the shapes.
        as_json: Print JSON.
    """
    from pointset.evaluation.embedding import check_rows_file

    check_rows_file(output)
    start = perf_counter()
    embedded = _embed(load_model(model or EMBEDDER), files, reading)
    embedded.save(output)
    seconds = perf_counter() - start
    count, width = embedded.rows.shape
    if as_json:
        print_json(
            {"output": str(output), "model": embedded.model, "shapes": count, "width": width, "seconds": seconds}
        )
    else:
        print(f"saved in {output}: {count:,} shapes, {width} numbers each, by {embedded.model} in {seconds:.1f} s")


def find(
    paths: list[Path],
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    count: Annotated[int, Parameter(name=["--count", "-k"])] = 12,
    leaks: bool = False,
    model: Embedder = None,
    reading: ReadingFlags = Reading(),
    as_json: Json = False,
) -> None:
    """Find the shapes of a folder that are most similar to a shape; with --leaks, those that are there twice.

    Examples: `pointset find chair.off path/to/meshes -o found.html`; `pointset find --leaks path/to/meshes`

    Args:
        paths: A shape, and a folder of shapes or a file that `pointset embed` wrote; with --leaks only the latter.
        output: A page (*.html) with pictures: the similar shapes with their distances and the points that make them
            similar, or the first pairs of near-duplicates.
        count: Number of similar shapes.
        leaks: Find near-duplicates: pairs of shapes no farther apart than two samplings of one shape. Pairs of a
            training and a test shape come first.
        as_json: Print JSON.
    """
    from pointset.viz.writing import checked_suffix

    if output is not None:
        checked_suffix(output, (".html", ".htm"), "a page")
    if len(paths) != 2 - leaks:
        wanted = "a folder of shapes" if leaks else "a shape and a folder of shapes"
        raise PointsetError(f"find needs {wanted}, got {len(paths)} path{'s' * (len(paths) != 1)}")
    if count < 1:
        raise PointsetError(f"--count must be at least 1, got {count}")
    trained, embedded = _rows_in(paths[-1], model, reading)
    if leaks:
        _print_pairs(trained, embedded, paths[0], reading, output, as_json)
    else:
        _print_similar(trained, embedded, paths[0], count, reading, output, as_json)


def _rows_in(path: Path, model: str | None, reading: Reading) -> "tuple[Trained, Embedded]":
    from pointset.evaluation.embedding import SUFFIXES, load_embedded

    if path.is_file() and path.suffix.lower() in SUFFIXES:
        embedded = load_embedded(path)
        if model not in (None, embedded.model):
            raise PointsetError(
                f"{path} has the rows of {embedded.model}: leave out --model, or embed the shapes again"
            )
        return load_model(embedded.model), embedded
    trained = load_model(model or EMBEDDER)
    return trained, _embed(trained, [path], reading)


def _embed(trained: Trained, paths: Sequence[Path], reading: Reading) -> "Embedded":
    import numpy as np

    from pointset.data.unusable import refuse_or_leave_out
    from pointset.evaluation.embedding import Embedded, embed_files
    from pointset.evaluation.files import Failure, in_folders
    from pointset.runs.progress import followed
    from pointset.training.devices import find_device

    shapes = in_folders(paths)
    network = trained.network.to(find_device("auto"))
    results = embed_files(
        network, trained.description["data"], shapes, up=reading.up, keep_outliers=reading.keep_outliers
    )
    answers = list(followed(results, "embedding", "shape", len(shapes), show=len(shapes) > SHOWN))
    failures = [answer for answer in answers if isinstance(answer, Failure)]
    rows = [answer for answer in answers if not isinstance(answer, Failure)]
    if len(failures) == 1 and not rows:
        raise PointsetError(failures[0].reason)
    reasons = {failure.name: failure.reason for failure in failures}
    refuse_or_leave_out(reasons, len(rows), reading.on_error, "files", "repair them")
    return Embedded(
        trained.name,
        [shape.name for shape, _ in rows],
        [shape.true_class for shape, _ in rows],
        np.stack([row for _, row in rows]),
        [str(shape.path.resolve()) for shape, _ in rows],
    )


def _print_similar(
    trained: Trained,
    embedded: "Embedded",
    shape: Path,
    count: int,
    reading: Reading,
    output: Path | None,
    as_json: bool,
) -> None:
    import numpy as np

    from pointset.evaluation.neighbours import nearest

    query = _embed(trained, [shape], reading).rows
    if len(query) != 1:
        raise PointsetError(f"{shape} is a folder: give one shape first, then the folder to search")
    others = [row for row, file in enumerate(embedded.files) if file != str(shape.resolve())]
    if not others:
        raise PointsetError("the folder has no other shape than this one")
    distances, indices = nearest(embedded.rows[others], query, count)
    chosen = [others[index] for index in indices[0]]
    rows: list[dict[str, Any]] = [
        {"shape": embedded.names[row], "class": embedded.classes[row], "distance": float(distance)}
        for row, distance in zip(chosen, distances[0], strict=True)
    ]
    if output is not None:
        _draw_similar(trained, embedded, shape, chosen, np.concatenate([query, embedded.rows[chosen]]), reading, output)
    if as_json:
        print_json({"model": embedded.model, "shape": str(shape), "similar": rows, "output": output and str(output)})
        return
    print_rows([{**row, "distance": f"{row['distance']:.2f}"} for row in rows])
    print(f"of {len(others):,} shapes, by {embedded.model}" + (f"; saved in {output}" if output else ""))


def _draw_similar(
    trained: Trained, embedded: "Embedded", shape: Path, chosen: list[int], rows: Any, reading: Reading, output: Path
) -> None:
    import numpy as np
    import torch

    from pointset.explain.similarity import similarity_influence
    from pointset.viz.similar import Tile, make_similar_page

    network, query = trained.network, torch.from_numpy(rows[0])
    clouds = [_points(trained, path, reading) for path in (shape, *(Path(embedded.files[row]) for row in chosen))]
    influence = [similarity_influence(network, cloud, query) for cloud in clouds[1:]]
    tiles = [Tile([clouds[0]], escaped(shape.name), "the shape")]
    for row, cloud, values, own in zip(chosen, clouds[1:], influence, rows[1:], strict=True):
        note = f"{embedded.classes[row]}, distance {np.linalg.norm(own - rows[0]):.2f}".lstrip(", ")
        tiles.append(Tile([cloud], escaped(embedded.names[row]), note, values))
    note = (
        f"Embeddings of {embedded.model}. Right pictures: dark points are those that make the shape similar; without "
        "their patch, the distance would be larger."
    )
    title = escaped(f"The shapes most similar to {shape.name}")
    make_similar_page(tiles, title=title, note=note, up=trained.description["data"]["up"]).save(output)


def _points(trained: Trained, path: Path, reading: Reading) -> Any:
    from pointset.data.loading import load_shape_like

    return load_shape_like(trained.description["data"], path, up=reading.up, keep_outliers=reading.keep_outliers).points


def _print_pairs(
    trained: Trained, embedded: "Embedded", folder: Path, reading: Reading, output: Path | None, as_json: bool
) -> None:
    from pointset.evaluation.neighbours import near_duplicates, splits_of

    threshold = _same_shape_distance(trained, embedded, reading)
    pairs = near_duplicates(embedded.rows, threshold, splits_of(folder, embedded.names))
    rows = [_described(embedded, pair) for pair in pairs]
    if output is not None:
        _draw_pairs(trained, embedded, pairs[:SHOWN], reading, output)
    leaked = sum(pair.leak for pair in pairs)
    if as_json:
        print_json({"model": embedded.model, "threshold": threshold, "leaks": leaked, "pairs": rows})
        return
    if pairs:
        print_rows([{**row, "distance": f"{row['distance']:.2f}"} for row in rows[:SHOWN]])
    more = f", the first {SHOWN} of them above" if len(pairs) > SHOWN else ""
    print(
        f"{len(pairs):,} pairs of {len(embedded.names):,} shapes are no farther apart than two samplings of one shape "
        f"({threshold:.2f}){more}; {leaked:,} of them are a training and a test shape"
        + (f"; saved in {output}" if output else "")
    )


def _described(embedded: "Embedded", pair: "Pair") -> dict[str, Any]:
    first, second = pair.first, pair.second
    names = {"first": embedded.names[first], "second": embedded.names[second]}
    return {**names, "distance": pair.distance, "leak": "train and test" if pair.leak else ""}


def _same_shape_distance(trained: Trained, embedded: "Embedded", reading: Reading) -> float:
    import numpy as np

    from pointset.data.loading import load_shape_like
    from pointset.evaluation.embedding import embed as embed_clouds
    from pointset.evaluation.neighbours import same_shape_distance

    step = max(1, len(embedded.files) // RESAMPLED)
    chosen = range(0, len(embedded.files), step)
    data = trained.description["data"]
    clouds = [
        load_shape_like(data, embedded.files[row], seed=1, up=reading.up, keep_outliers=reading.keep_outliers).points
        for row in chosen
    ]
    return same_shape_distance(np.asarray(embedded.rows[list(chosen)]), embed_clouds(trained.network, clouds))


def _draw_pairs(
    trained: Trained, embedded: "Embedded", pairs: "Sequence[Pair]", reading: Reading, output: Path
) -> None:
    from pointset.viz.similar import Tile, make_similar_page

    def tile(pair: "Pair") -> Any:
        clouds = [_points(trained, Path(embedded.files[row]), reading) for row in (pair.first, pair.second)]
        names = f"{embedded.names[pair.first]} and {embedded.names[pair.second]}"
        return Tile(clouds, escaped(names), f"distance {pair.distance:.2f}" + ", train and test" * pair.leak)

    up_axis = trained.description["data"]["up"]
    note = f"Pairs of shapes no farther apart than two samplings of one shape, by the embeddings of {embedded.model}."
    make_similar_page([tile(pair) for pair in pairs], title="Near-duplicates", note=note, up=up_axis).save(output)
