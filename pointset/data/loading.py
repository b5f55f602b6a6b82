"""Load datasets and single shapes in the same way as an earlier run did."""

import dataclasses
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray
from numpy.typing import NDArray
from torch import Tensor

from pointset.data.axes import TURNS, Axis, check_up, turned_up, usual_up
from pointset.data.catalogue.cards import list_cards, load_card
from pointset.data.dataset import PointSets, load_split
from pointset.data.normalize import normalize_points
from pointset.data.options import DataOptions
from pointset.data.readers.clouds import Cloud
from pointset.data.readers.formats import is_mesh_file, suffix_of
from pointset.data.readers.meshes import Mesh
from pointset.data.readers.reading import read_cloud, read_mesh
from pointset.data.sampling import downsample, sample_points
from pointset.data.unusable import OnError, UnreadableShapesError
from pointset.errors import REPEATED, PointsetError, one_line, quoted

NEIGHBOURS = 4
NEAR, FAR, STRAY, MANY = 1.8, 3.0, 10.0, 0.01
"""Distances relative to the median, and a share of the points."""
FEWEST = 100
"""Clouds with fewer points keep all."""


def load_like(
    description: Mapping[str, Any],
    split: str,
    data: str | Path | None = None,
    on_error: OnError | None = None,
    points: int | None = None,
    up: str | None = None,
) -> PointSets:
    """Load another split or another dataset with the options in a `PointSets.describe` description.

    Each shape of another dataset is turned (with a UserWarning) and normalised as `load_shape_like` does it with its
    file. A PointsetError if the data is missing, existed only in memory, or has other classes than the description.

    Args:
        description: from `PointSets.describe`.
        split: "train" or "test".
        data: a dataset's name or a folder; None uses the description's.
        on_error: see `DataOptions`; None means "skip" if shapes were left out of the description's data, else "raise".
        points: points per set; None uses the description's.
        up: the upward axis of the data, or one of `pointset.data.axes.TURNS`. "auto" and None use the description's for
            its own data, the card's for a known dataset, and for other files what `load_shape_like` uses.
    """
    if data is None and is_in_memory(description):
        raise PointsetError(
            f"the run was trained on data in memory ({quoted(description['source'])}) or elsewhere, which is not saved "
            "with it: give files with --data, or use pointset.evaluate in Python"
        )
    check_up(up)
    changes = {"on_error": on_error, "points": points}
    given = {name: value for name, value in changes.items() if value is not None}
    options = DataOptions.of(description).changed(given)
    try:
        sets = load_split(data or description["source"], split, options)
    except PointsetError as error:
        if data is None and points is None and not isinstance(error, UnreadableShapesError):
            raise PointsetError(f"{error}; if the data of the run has moved, give its folder with --data") from error
        raise
    if sets.classes != description["classes"]:
        differing = sorted(set(sets.classes) ^ set(description["classes"])) or ["their order"]
        odd = one_line(", ".join(differing), REPEATED)
        raise PointsetError(
            f"{data or description['source']} has other classes than the model was trained on ({odd}): "
            "give data with the same classes"
        )
    own, pool = sets.source == description["source"], sets.source_pool
    # A dataset whose shapes are centred already keeps its normalisation: their subsets are not centred again.
    if not (own or pool.is_centred(sets.rows.numpy())):
        sets = sets.normalized(normalization_elsewhere(description))
    of_card = load_card(sets.source).up if sets.source in list_cards() else None
    usual = [sets.up if own else of_card or _usual_like(description, name) for name in pool.names]
    turn = None if up == "auto" else up
    turned = np.array([(turn or axis) != sets.up for axis in usual])
    if not turned.any():
        return sets
    first = pool.names[int(turned.argmax())]
    _warn_of_turning(turn, f"{sets.source} has" if of_card else f"{suffix_of(first)} files usually have", sets.up)
    now, rows = turn or ("y" if sets.up == "z" else "z"), np.repeat(turned, pool.sizes)
    arrays = {"points": np.array(pool.points), **pool.arrays}
    for name in {"points", "normals"} & {*arrays}:
        flat = np.array(arrays[name]).reshape(-1, 3)
        flat[rows] = turned_up(flat[rows], now, sets.up)
        arrays[name] = flat.reshape(arrays[name].shape)
    return sets.of_pool(dataclasses.replace(pool, points=arrays.pop("points"), arrays=arrays, checksums=()))


def is_in_memory(description: Mapping[str, Any]) -> bool:
    """True if the sets were not made from files, so that they cannot be loaded again."""
    return description["source"] not in list_cards() and not Path(description["source"]).is_absolute()


@dataclass(frozen=True, eq=False)
class Shape:
    """A shape from a file, prepared like the sets that a model was trained on."""

    points: Tensor
    """float32 [n, d]: normalised coordinates, and the features that the sets have."""
    raw: NDArray[np.float32]
    """[n, 3], the same points in the file's units, rotated to the upward axis of the sets; see `Cloud.corner`."""
    mesh: Mesh | None
    """The mesh that the points were sampled from, rotated likewise; None for a file of points."""


def load_shape_like(
    description: Mapping[str, Any],
    path: str | Path,
    *,
    points: int | None = None,
    seed: int = 0,
    up: str | None = None,
    keep_outliers: bool = False,
) -> Shape:
    """Read one mesh or point cloud and prepare it like the sets in a `PointSets.describe` description.

    A UserWarning says that the shape is turned, or that points are left out. A PointsetError names the file, if it
    cannot be read or sampled, lacks a feature, or has all its points at one place.

    Args:
        description: from `PointSets.describe`.
        path: a mesh or cloud file; see `pointset.data.read_mesh` and `read_cloud`.
        points: number of points; None uses that of the sets. A larger cloud gives a random subset.
        seed: seed of the points.
        up: the file's upward axis. "auto" or None means: that of the sets, if they came from files of the same format;
            else the usual one of the format (y for OBJ, GLB and glTF); else that of the sets.
        keep_outliers: keep isolated points of a cloud; see `isolated`.
    """
    path, mesh = Path(path), None
    options = DataOptions.of(description).changed({} if points is None else {"points": points})
    wanted = options.points
    now, upward = file_up(description, path, up)
    if not is_mesh_file(path):
        cloud = read_cloud(path, normals=options.has_normals, features=options.further)
        if not keep_outliers:
            cloud = cloud[kept_points(cloud.points, str(path))]
        cloud = cloud[downsample(cloud.points, min(wanted, len(cloud.points)), seed=seed)]
        normals = None if cloud.normals is None else turned_up(cloud.normals, now, upward)
        cloud = dataclasses.replace(cloud, points=turned_up(cloud.points, now, upward), normals=normals)
    else:
        mesh = read_mesh(path)
        mesh = Mesh(turned_up(mesh.vertices, now, upward), mesh.faces)
        if options.further:
            lacking = ", ".join(options.further)
            raise PointsetError(f"{path} is a mesh, and the model needs {lacking} of its points: give a point cloud")
        # In training, a set is a random part of a pool whose points are spread evenly; it is not spread evenly itself.
        drawn = wanted if options.sampler == "uniform" else max(wanted, options.pool_points)
        cloud = Cloud(*sample_points(mesh, drawn, seed=seed, sampler=options.sampler, normals=True))
        cloud = cloud if drawn == wanted else cloud[downsample(cloud.points, wanted, seed=seed)]
    beside = [cloud.normals] * options.has_normals + [cloud.features] * bool(options.further)
    normalised = normalize_points(torch.from_numpy(cloud.points)[None], normalization_elsewhere(description))[0]
    rows = torch.cat([normalised, *(torch.from_numpy(array) for array in beside)], dim=1)
    return Shape(rows, cloud.points, mesh)


def normalization_elsewhere(description: Mapping[str, Any]) -> str:
    """The normalisation for a shape that is not from the described data: its own, but centred if all its shapes are.

    `standardize` subtracts one number from all coordinates, so an off-centre shape would stay off-centre.
    """
    how = str(description["normalize"])
    return "center-standardize" if how == "standardize" and description.get("centred") else how


def file_up(description: Mapping[str, Any], path: str | Path, up: str | None = None) -> tuple[str, Axis]:
    """The upward axes of a file and of the sets, with a UserWarning if they differ; see `load_shape_like`."""
    check_up(up)
    given, wanted = None if up == "auto" else up, own_up(description)
    now = given or _usual_like(description, str(path))
    if now != wanted:
        # The message does not name the file: Python then shows it once for any number of files.
        _warn_of_turning(given, f"{Path(path).suffix.lower()} files usually have", wanted)
    return now, wanted


def own_up(description: Mapping[str, Any]) -> Axis:
    """The upward axis of the sets."""
    return "y" if description.get("up") == "y" else "z"


def _usual_like(description: Mapping[str, Any], name: str) -> Axis:
    """The assumed upward axis of a file that does not declare one, beside sets of the description."""
    wanted = own_up(description)
    return wanted if suffix_of(name) in description.get("kinds", ()) else usual_up([name]) or wanted


def _warn_of_turning(given: str | None, usually: str, wanted: Axis) -> None:
    if given in TURNS:
        return
    which = "the files are declared to have" if given else usually
    leave = "" if given else f"; --up {wanted} (in Python up={wanted!r}) leaves them as they are"
    now = "Y" if wanted == "z" else "Z"
    warnings.warn(
        f"{which} {now} up, and the model's shapes have {wanted.upper()} up: they are turned{leave}",
        UserWarning,
        stacklevel=5,
    )


def isolated(points: Float[ndarray, "n 3"]) -> Bool[ndarray, " n"]:
    """True for points far from all others: a few of the background change the normalisation, and every prediction.

    Statistical outlier removal (Rusu et al., "Towards 3D point cloud based object maps for household environments",
    2008, section 3.1), with medians, because outliers enlarge mean and standard deviation:

    d is the mean distance of a point to its 4 nearest neighbours, m the median of d. Points with d > 10 m are isolated.
    If more than 1 % of the points have d > 3 m, and not much more have d between 1.8 m and 3 m, the cloud is a surface
    with a background: points with d > 3 m are isolated, too, and if fewer are between, those with d > 1.8 m. Of
    ModelNet40's test clouds with the background of ModelNet40-C (severity 3), dumlp16-max+dumlp16 is right on 89 %
    without their isolated points and on 4 % with them; of clean clouds no point is isolated.
    """
    if len(points) < FEWEST:
        return np.zeros(len(points), bool)
    from scipy.spatial import cKDTree

    distances = cKDTree(points).query(points, NEIGHBOURS + 1)[0][:, 1:].mean(axis=1)
    relative = distances / max(float(np.median(distances)), np.finfo(np.float64).tiny)
    far, between = (relative > FAR).mean(), ((relative > NEAR) & (relative <= FAR)).mean()
    if far <= MANY or between > 3 * far:
        return relative > STRAY
    return relative > (NEAR if between <= far else FAR)


def kept_points(points: Float[ndarray, "n 3"], name: str) -> Bool[ndarray, " n"]:
    """True for points that are not isolated, with a warning that names the cloud if there are others."""
    left_out = isolated(points)
    if left_out.any():
        warnings.warn(
            f"{name}: {left_out.sum():,} of {len(points):,} points left out as isolated (--keep-outliers, in Python "
            "keep_outliers=True, keeps them)",
            stacklevel=3,
        )
    return ~left_out
