"""`pointset classify`: what a trained model takes a scan for, however large the scan is."""

from collections.abc import Callable, Iterable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pointset.commands.models import Model, load_model, say_usual
from pointset.commands.options import Json
from pointset.commands.printing import print_json, print_rows
from pointset.errors import PointsetError, escaped

if TYPE_CHECKING:
    from torch import Tensor, nn

MOST_WHOLE = 100_000
"""Most points of a scan for a model that cannot stream."""
MOST_SQUARE = 10_000
"""The same for dgcnn, which keeps the distance of every two points: 0.4 GB."""
BEST = 5


def classify(files: list[Path], *, model: Model = None, as_json: Json = False) -> None:
    """Classify scans of any size with a trained model: they are read from the disk piece by piece.

    Args:
        files: scans (.npy, .ply, .pcd, .xyz, .txt), which are used with all their points; of a mesh, as many are
            sampled as the model was trained on.
        as_json: print JSON.
    """
    from pointset.training.devices import find_device

    for path in files:
        if (path / "run.json").exists():
            raise PointsetError(f"{path} is a run, not a shape: write --model {path}")
    trained = load_model(model)
    network = trained.network.to(find_device("auto"))
    if not as_json:
        say_usual(model)
    results = []
    for path in files:
        results.append(_classified(network, trained.description["data"], path) | {"model": trained.name})
        if not as_json:
            _print(results[-1])
    if as_json:
        print_json(results)


def _classified(model: "nn.Module", data: dict[str, Any], path: Path) -> dict[str, Any]:
    """The likeliest classes of one file, with what it took."""
    start = perf_counter()
    chunks, points = _points_of(path, data)
    logits, streamed = _logits(model, chunks, points, path)
    best = logits[0].softmax(dim=0).sort(descending=True)
    names = [data["classes"][index] for index in best.indices[:BEST].tolist()]
    return {
        "file": str(path),
        "classes": [
            {"class": name, "probability": probability}
            for name, probability in zip(names, best.values[:BEST].tolist(), strict=True)
        ],
        "points": points,
        "seconds": perf_counter() - start,
        "streamed": streamed,
    }


def _points_of(path: Path, data: dict[str, Any]) -> "tuple[Callable[[], Iterable[Tensor]], int]":
    """The file's points, normalised as those that the model was trained on, and their number."""
    from pointset.data import normalize_chunks, open_scan
    from pointset.data.files.clouds import extent_fault
    from pointset.data.files.file_kinds import MESH_SUFFIXES
    from pointset.data.loading import is_cloud_file, load_shape_like

    if path.suffix.lower() in MESH_SUFFIXES and not is_cloud_file(path):
        sampled = load_shape_like(data, path).points
        return lambda: (sampled,), len(sampled)
    scan = open_scan(path)
    if fault := extent_fault(scan()):
        raise PointsetError(f"{path}: the cloud {fault}")
    return normalize_chunks(scan, data["normalize"]), scan.count


def _logits(
    model: "nn.Module", chunks: "Callable[[], Iterable[Tensor]]", points: int, path: Path
) -> "tuple[Tensor, bool]":
    """Logits [1, classes], and whether the scan was streamed; else it is small, and the model got it as a whole."""
    import torch

    from pointset.streaming import StreamingError, check_streams, stream_logits

    try:
        check_streams(model)
    except StreamingError as error:
        most = MOST_SQUARE if model.spec.name == "dgcnn" else MOST_WHOLE  # type: ignore[union-attr]
        if points > most:
            raise PointsetError(f"{path} has {points:,} points, more than {most:,}, and {error}") from error
        like = next(model.parameters())
        cloud = torch.cat([piece.to(like, copy=True) for piece in chunks()])
        with torch.no_grad():
            return model(cloud[None]), False
    return stream_logits(model, chunks), True


def _print(result: dict[str, Any]) -> None:
    how = "" if result["streamed"] else ", as a whole"
    print(escaped(f"{result['file']}: {result['points']:,} points in {result['seconds']:.1f} s{how}"))
    print_rows([{"class": one["class"], "%": f"{100 * one['probability']:.1f}"} for one in result["classes"]])
