"""`pointset attend`: draw the attention of a trained model on a mesh or a point cloud."""

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from cyclopts import Parameter

import pointset
from pointset import viz
from pointset.commands.flags import Up, out_file
from pointset.commands.terminal import Result
from pointset.commands.trained import (
    LOW_CONFIDENCE,
    MODEL_HELP,
    Model,
    Trained,
    drawable,
    load_model,
    low_confidence_advice,
    require_network,
    usual,
)
from pointset.configuration import PointCount
from pointset.errors import PointsetError, escaped
from pointset.runs.atomic import checked_suffix
from pointset.viz.writing import STILL_SUFFIXES
from pointset.zoo.pretrained import USUAL

Models = Annotated[
    list[str] | None,
    Parameter(name="--model", help=f"{MODEL_HELP} Several models are shown side by side on one shape."),
]
SAME = 1e-4
"""Distance, in radii of the shape, up to which points that were prepared by two models count as equal."""
COMPANIONS = ("rff-pma4.modelnet40-1024", USUAL, "dumlp16-max+dumlp16.modelnet40-1024")
"""Pretrained models that a live page shows in addition to the chosen model."""


def attend(
    shape: Path,
    /,
    *,
    model: Models = None,
    output: Annotated[Path, out_file("a picture", ".html", *STILL_SUFFIXES, ".ply", ".glb")] = Path("attention.html"),
    layer: str | None = None,
    head: int | None = None,
    query: int | None = None,
    check_: Annotated[bool, Parameter(name="--check")] = False,
    live: bool = False,
    width: Literal["column", "page"] | None = None,
    points: PointCount | None = None,
    seed: int = 0,
    up: Up = "auto",
    remove_outliers: bool | None = None,
) -> Result:
    """Draw the attention of a trained model on one shape, and print its prediction.

    The suffix of the output file sets the format: .html is an interactive 3D page with every layer; .png, .svg and .pdf
    show one layer, with all heads and queries or the selected ones; .ply and .glb are coloured shapes for MeshLab or
    Blender.

    For a folder, the page is a gallery: the attention of one inducing point or seed on many shapes, one row per class.
    If you pass --model several times, the models are shown side by side on the same points.

    With --live, the page contains the model and runs it in the browser, without the internet. If you remove points,
    rotate the shape or open another file, the prediction is computed again.

    Example: `pointset attend chair.off --model isab16-pma.modelnet40-1024 -o chair.html`

    Args:
        shape: A mesh (OFF, OBJ, PLY, STL, GLB), a point cloud (.npy, .npz, .ply, .pcd, .las, .xyz, .csv, .pts), or a
            folder of such files. A gallery shows at most 48 shapes.
        output: The file to write.
        layer: Attention layer to show, such as encoder.0.reads; default: the last layer whose inducing points attend to
            the points, or else the pooling layer.
        head: Index of the head to show; default: all heads, or the first one for a .ply or .glb file.
        query: Index of the query to show (an inducing point, seed or point); default: all, or the first one for a .ply
            or .glb file.
        check_: Test how faithful explanations are: remove points in the order of attention, gradients, occlusion and
            others, and print the mean probability of the predicted class.
        live: Write a page that runs the model, and other trained models of the package with the same classes.
        width: Width of a still picture for a paper, without a title: one column (3.25 inches) or a page (6.75 inches).
        points: Number of points to sample from the mesh or the cloud; default: the number of points in training, which
            gives the prediction of `pointset classify`.
        seed: Seed for sampling points from the mesh.
        remove_outliers: Remove outliers of a point cloud; default: as in training.
    """
    reading: dict[str, Any] = {"points": points, "seed": seed, "up": up, "remove_outliers": remove_outliers}
    flags = {"--layer": layer, "--head": head, "--query": query, "--check": check_ or None}
    if shape.is_dir():
        _refuse(flags | {"--live": live or None}, "with a folder, which is drawn as a gallery")
        return _gallery(shape, _only(model), output, reading)
    if model is not None and len(model) > 1:
        _refuse(flags | {"--live": live or None}, "with several models")
        return _comparison(shape, model, output, reading)
    if live:
        from pointset.export.live.page import MOST_POINTS

        checked_suffix(output, (".html",), "a live page")
        _refuse(flags, "with --live, which shows all layers, heads and queries")
        if points is not None and points > MOST_POINTS:
            raise PointsetError(f"--points must be at most {MOST_POINTS:,} with --live, got {points:,}")
    from pointset.explain.inspection import inspect_shape
    from pointset.viz.camera import to_unit
    from pointset.viz.rows import first_shown

    trained = drawable(load_model(_only(model)), of_ensemble=not live)
    models = live_models(trained) if live else []
    network = trained.network
    seen = inspect_shape(network, shape, check=check_, **reading)
    loaded, maps, checks = seen.prepared, seen.maps, seen.checks
    best, prediction = _predicted(trained, shape, seen)

    title, note = escaped(shape.name), escaped(f"predicted: {prediction}")
    camera = viz.Camera(up=network.preparation.up)
    chosen: dict[str, Any] = {"heads": None if head is None else [head], "queries": None if query is None else [query]}
    if live:
        raw = to_unit(np.asarray(loaded.raw, dtype=np.float64), camera.up)
        heading = f"Ask the models: {shape.name}"
        pointset.export.make_live_page(models, {shape.name: raw}, title=heading, camera=camera).save(output)
    elif output.suffix.lower() == ".html":
        chosen |= {"layer": layer, "classes": list(best.likeliest)}
        viz.make_page(maps, title=title, prediction=note, camera=camera, **chosen).save(output)
    else:
        first = maps[first_shown([each.kind for each in maps])]
        shown = first if layer is None else pointset.find_map(maps, layer=layer)
        if output.suffix.lower() in STILL_SUFFIXES:
            named = f"{title}, {note}; {shown.layer}"
            viz.save(viz.draw_maps(shown, camera=camera, title=named, width=width, **chosen), output)
        else:
            viz.export_cloud(shown, loaded.raw, output, head or 0, query or 0, mesh=loaded.mesh)

    areas = {name: {what: float(area[0]) for what, area in curves.areas.items()} for name, curves in checks.items()}
    name, confidence = best.likeliest[0]
    result = {"model": trained.name, "prediction": name, "confidence": confidence}
    result["low_confidence"] = best.low_confidence
    result["layers"] = [{"layer": each.layer, "kind": each.kind, "shape": list(each.weights.shape)} for each in maps]
    result["support"] = None if seen.support is None else seen.support.as_dict()
    text: list[Any] = [*usual(_only(model)), f"{shape.name}: {prediction}"]
    if best.low_confidence:
        text[-1] += f": {low_confidence_advice(trained, _only(model), up)}"
    if trained.description["model"].get("members"):
        text.append("the maps show the attention of the ensemble's network; the whole ensemble predicts the class")
    if seen.support is not None:
        text.append(str(seen.support))
    if checks:
        text.append(
            [
                {"explanation": name} | {what: f"{100 * area:.0f} %" for what, area in own.items()}
                for name, own in areas.items()
            ]
        )
        text.append("mean probability; faithful explanations are below random in deletion and above it in insertion")
    return Result(result | {"checks": areas, "output": str(output)}, *text, f"saved in {output}")


def _predicted(trained: Trained, shape: Path, seen: Any) -> tuple[Any, str]:
    """Return the prediction for an inspected shape, and the predicted class and its probability as text."""
    from pointset.data.catalogue.folders import ShapeFile
    from pointset.evaluation.shape_files import guess

    (best,) = guess(
        [ShapeFile(shape, str(shape))], seen.prediction, trained.network.classes, [len(seen.prepared.points)]
    )
    name, confidence = best.likeliest[0]
    return best, f"{name} ({confidence:.0%})" + f", {LOW_CONFIDENCE}" * best.low_confidence


def _only(models: Models) -> Model:
    """Return the only --model, or None for the default model. PointsetError if there are several."""
    if models is not None and len(models) > 1:
        raise PointsetError(f"a gallery shows one model, got --model {' '.join(models)}")
    return None if models is None else models[0]


def _refuse(flags: dict[str, Any], where: str) -> None:
    """Raise a PointsetError if any of the flags has a value."""
    if names := [flag for flag, value in flags.items() if value is not None]:
        raise PointsetError(f"{' and '.join(names)} cannot be used {where}: leave out one of the two")


def _gallery(folder: Path, model: Model, output: Path, reading: dict[str, Any]) -> Result:
    """Draw the attention on the shapes of a folder."""
    from pointset.evaluation.shape_files import list_shapes
    from pointset.viz.gallery import MOST_SHAPES, choose_evenly

    checked_suffix(output, (".html",), "a gallery")
    trained = drawable(load_model(model), of_ensemble=True)
    files = list_shapes(folder)
    classes = [file.true_class or folder.name for file in files]
    chosen = choose_evenly(np.unique(classes, return_inverse=True)[1], MOST_SHAPES).tolist()
    network = trained.network
    clouds = [network.prepare(files[row].path, **reading).points[:, : network.inputs] for row in chosen]
    labels = [classes[row] for row in chosen]
    sets = pointset.from_arrays(
        clouds, labels, names=[files[row].name for row in chosen], normalize="none", up=network.preparation.up
    )
    viz.gallery(network, sets, title=f"{escaped(folder.name)}: {trained.name}").save(output)
    found = {"model": trained.name, "shapes": len(chosen), "output": str(output)}
    return Result(found, *usual(model), f"{len(chosen)} of {len(files)} shapes", f"saved in {output}")


def _comparison(shape: Path, models: list[str], output: Path, reading: dict[str, Any]) -> Result:
    """Draw the maps of several models on the same points of one shape, side by side."""
    from pointset.explain.inspection import inspect_shape
    from pointset.viz.camera import to_unit

    checked_suffix(output, (".html", *STILL_SUFFIXES), "a comparison of models")
    maps: dict[str, Any] = {}
    lines, clouds = [], []
    for model in models:
        trained = drawable(load_model(model), of_ensemble=True)
        reading["points"] = reading["points"] or trained.network.preparation.points
        seen = inspect_shape(trained.network, shape, **reading)
        clouds.append(to_unit(np.asarray(seen.prepared.raw, np.float64), trained.network.preparation.up))
        if clouds[0].shape != clouds[-1].shape or np.abs(clouds[0] - clouds[-1]).max() > SAME:
            raise PointsetError(f"{model} uses other points of the shape than {models[0]}: give --remove-outliers")
        best, prediction = _predicted(trained, shape, seen)
        name = f"{trained.name}: {prediction}"
        maps[f"{name} ({len(maps) + 1})" if name in maps else name] = seen.maps
        lines.append({"model": trained.name, "prediction": best.likeliest[0][0], "confidence": best.likeliest[0][1]})
    page = viz.make_page(maps, clouds[0], title=escaped(shape.name), up="z")
    if output.suffix.lower() == ".html":
        page.save(output)
    elif page.draw_still is not None:
        viz.save(page.draw_still(), output)
    text = [f"{shape.name}, by {name}" for name in maps]
    return Result({"models": lines, "points": len(clouds[0]), "output": str(output)}, *text, f"saved in {output}")


def live_models(trained: Trained) -> list[Any]:
    """Return the models for a live page: the trained model, and those of `COMPANIONS` with the same classes."""
    from pointset.export.live.page import MOST_MODELS

    require_network(trained, "shown in a page")
    others = [pointset.load_model(name) for name in COMPANIONS if name != trained.name]
    network = trained.network
    return [network, *(other for other in others if other.classes == network.classes)][:MOST_MODELS]
