"""All that happens between a shape and a model: a `Preparation`, made in training and owned by the trained model.

`prepare` is the only way from a file, a mesh, a cloud or an array to the points that a model takes, so that one shape
has one set of points, and one prediction, wherever it is given.
"""

import dataclasses
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from pointset.configuration import Count, LocalFeatures, PointCount, PositiveShare
from pointset.data.axes import Axis, check_up, rotate_up, usual_up
from pointset.data.local_feature_cache import stored_local_features
from pointset.data.normalize import is_standardized, normalize_rows
from pointset.data.options import Normalize, Sampler, WithFeatures
from pointset.data.outliers import OutlierOptions, merge_duplicates, prepare_cloud
from pointset.data.readers.clouds import Cloud, require_cloud, table_of
from pointset.data.readers.formats import SHAPE_SUFFIXES, is_mesh_file, require_shape_file, suffix_of
from pointset.data.readers.meshes import Mesh
from pointset.data.readers.reading import read_cloud, read_mesh
from pointset.data.rotations import Columns
from pointset.data.sampling import downsample, sample_points
from pointset.errors import PointsetError, described
from pointset.inputs import InputError, as_points

CLOUD_POINTS = 1024
"""Points of the cloud whose neighbourhoods are described, where a shape has as many: they depend on the density."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A prepared shape."""

    points: Float[Tensor, "n d"]
    """float32: normalised coordinates, features, and the local features."""
    raw: Float[ndarray, "n 3"]
    """The same points in the units of the shape, with the upward axis of the model's shapes; see `Cloud.corner`."""
    mesh: Mesh | None = None
    """The mesh that the points were sampled from, turned likewise; None for points."""


@dataclass(frozen=True, kw_only=True)
class Preparation(OutlierOptions, WithFeatures):
    """How shapes become sets of points."""

    points: PointCount = 1024
    """Most points of a set: the number sampled on a mesh; of a larger cloud a random part is taken."""
    normalize: Normalize = "none"
    """Normalisation of each set; see `pointset.data.normalize`."""
    up: Axis = "z"
    """The upward axis of the sets."""
    kinds: tuple[str, ...] = ()
    """Suffixes of files whose upward axis is that of the sets; others have the usual axis of their format."""
    sampler: Sampler = "uniform"
    """How points are sampled on meshes; see `pointset.data.sampling`."""
    cache_points: PointCount = 2048
    """Points of the largest training shape: the number sampled on a mesh by a sampler other than "uniform", of which a
    random part is the set."""
    features: tuple[str, ...] = ()
    """Numbers beside the coordinates of each point; see `DataOptions.features`."""
    inputs: Count = 3
    """Numbers of each point that are given: coordinates and features."""
    local_features: LocalFeatures = "none"
    """Local features of each point; see `pointset.data.local_features`."""
    least: PositiveShare = 0.5
    """Share of the points of a training shape below which local features are too coarse for the model: it warns."""

    def __repr__(self) -> str:
        """One line with the settings that change the points."""
        beside = [f"with {', '.join(self.features)}"] * bool(self.features)
        beside += [f"local features {self.local_features}"] * (self.local_features != "none")
        beside += ["outliers removed"] * self.remove_outliers
        sizes = f"{self.points:,} points" if self.sampler == "uniform" else f"{self.points:,} points ({self.sampler})"
        return f"Preparation({', '.join([sizes, self.normalize, f'{self.up} up', *beside])})"

    @property
    def cloud_points(self) -> int:
        """Points among which neighbours are searched, and of which a set is a part."""
        return self.points if self.local_features == "none" else max(self.points, CLOUD_POINTS)

    def prepare(
        self,
        shape: Any,
        *,
        points: int | None = None,
        seed: int = 0,
        up: str | None = None,
        remove_outliers: bool | None = None,
        name: str = "",
    ) -> Prepared:
        """Prepare one shape.

        Args:
            shape: the path of a mesh or a point cloud; a `Mesh`, a `Cloud`, an array or tensor [n, 3 + features], or a
                DataFrame with columns of these names.
            points: most points of the set; None means `points`.
            seed: seed of the points.
            up: the shape's upward axis. "auto" or None means: that of the sets, if files of the same format have it;
                else that which a DAE file states, or the usual one of the format (y for OBJ,
                GLB and glTF, z for 3MF); else that of the sets.
            remove_outliers: remove outliers of a cloud that is not an array; None means as in training.
            name: of the shape, for warnings; None means its path.

        Returns:
            The prepared shape; the same shape and seed give the same points.

        Raises:
            PointsetError: a file cannot be read (it is named), a feature is lacking, or the points are not finite.
        """
        check_up(up)
        changes: dict[str, Any] = {"points": points, "remove_outliers": remove_outliers}
        changed = {field: value for field, value in changes.items() if value is not None}
        wanted = dataclasses.replace(self, **changed) if changed else self
        from_file = isinstance(shape, str | Path)
        if from_file:
            path = Path(shape)
            if suffix_of(path.name) not in SHAPE_SUFFIXES:
                require_shape_file(path)  # the readers check all others
            name = name or str(path)
            if is_mesh_file(path):
                shape = read_mesh(path)
            else:
                shape = read_cloud(path, normals=self.has_normals, features=self.further)
        stated = shape.up if isinstance(shape, Mesh) else ""
        now = (None if up == "auto" else up) or stated or (self._file_up(path) if from_file else self.up)
        given = isinstance(shape, Mesh | Cloud)
        shape = shape if given else wanted._as_cloud(shape)
        if isinstance(shape, Mesh):
            return wanted._prepare_mesh(shape, now, seed)
        shape = prepare_cloud(shape, name or "the cloud", wanted) if given else merge_duplicates(shape)
        if from_file and len(shape.points) > wanted.points:  # names no file: Python then shows it once for all
            warnings.warn(f"of clouds with more points a random {wanted.points:,} are used", UserWarning, stacklevel=3)
        return wanted._prepare_cloud(shape, now, seed, untouched=not given)

    def _prepare_mesh(self, mesh: Mesh, now: str, seed: int) -> Prepared:
        if lacking := ", ".join(self.further):
            raise PointsetError(f"a mesh has no {lacking}, which the model needs of its points: give a point cloud")
        mesh = Mesh(rotate_up(mesh.vertices, now, self.up), mesh.faces)
        # In training, a set is a random part of a cache whose points are spread evenly; it is not spread evenly itself.
        drawn = self.cloud_points if self.sampler == "uniform" else max(self.cloud_points, self.cache_points)
        cloud = Cloud(*sample_points(mesh, drawn, seed=seed, sampler=self.sampler, normals=True))
        if drawn > self.cloud_points:
            cloud = cloud[downsample(cloud.points, self.cloud_points, seed=seed)]
        return self._finished(cloud, mesh)

    def _prepare_cloud(self, cloud: Cloud, now: str, seed: int, *, untouched: bool = False) -> Prepared:
        fewest = int(self.least * min(self.cloud_points, self.cache_points))
        if self.local_features != "none" and len(cloud.points) < fewest:
            warnings.warn(
                f"clouds of fewer than {fewest:,} points say little of neighbourhoods, which the model "
                "needs: one of coordinates alone is more accurate on them (`pointset zoo --pretrained`)",
                UserWarning,
                stacklevel=4,
            )
        cloud = _part(cloud, self.cloud_points, seed)
        normals = None if cloud.normals is None else rotate_up(cloud.normals, now, self.up)
        cloud = dataclasses.replace(cloud, points=rotate_up(cloud.points, now, self.up), normals=normals)
        return self._finished(cloud, None, untouched=untouched)

    def _finished(self, cloud: Cloud, mesh: Mesh | None, *, untouched: bool = False) -> Prepared:
        """Return the first `points` of a cloud, with local features of the whole cloud."""
        if lacking := ", ".join(name for name in self.arrays if name not in cloud.arrays):
            raise PointsetError(f"the cloud has no {lacking}, which the model needs of its points: give them too")
        parts = [cloud.arrays[name] for name in self.arrays]
        if self.local_features != "none":
            parts.append(stored_local_features(cloud.points, self.local_features))
        rows = torch.from_numpy(np.hstack(parts)[: self.points].astype(np.float32))[None]
        raw = rows[..., :3]
        # Sets that `standardize` made are not changed: a random part of a centred shape is not quite centred.
        as_given = untouched and self.normalize == "center-standardize" and bool(is_standardized(raw))
        columns = Columns(self.has_normals, self.local_features)
        points = normalize_rows(rows, "none" if as_given else self.normalize, None, columns)[0]
        return Prepared(points, np.ascontiguousarray(raw[0]), mesh)

    def _as_cloud(self, shape: Any) -> Cloud:
        rows = as_points(table_of(shape, self.features), self.inputs, None, "[n, {}]").detach().cpu()
        if rows.dim() != 2:
            raise InputError(f"points must be [n, {self.inputs}], got {described(shape)}")
        table = (rows.float() if rows.dtype in (torch.float16, torch.bfloat16) else rows).numpy()
        first = 6 if self.has_normals else 3
        return require_cloud(table[:, :first], table[:, first:] if self.inputs > first else None)

    def _file_up(self, path: Path) -> Axis:
        """Return the assumed upward axis of a file, with a UserWarning if it differs from that of the sets."""
        usual = self.usual_up(str(path))
        if usual != self.up:
            warn_of_rotation(f"{path.suffix.lower()} files usually have", self.up)
        return usual

    def usual_up(self, name: str) -> Axis:
        """Return the assumed upward axis of a file that does not declare one."""
        return self.up if suffix_of(name) in self.kinds else usual_up([name]) or self.up


def _part(cloud: Cloud, most: int, seed: int) -> Cloud:
    """Return a random part of a cloud with more points than `most`."""
    return cloud if len(cloud.points) <= most else cloud[downsample(cloud.points, most, seed=seed)]


def warn_of_rotation(usually: str, wanted: Axis) -> None:
    """Warn that files are rotated because their format usually has another upward axis than the model's shapes.

    The message does not name the file: Python then shows it once for any number of files.
    """
    other = "Y" if wanted == "z" else "Z"
    warnings.warn(
        f"{usually} {other} up, and the model's shapes have {wanted.upper()} up: they are rotated; --up {wanted} "
        f"(in Python up={wanted!r}) does not rotate them",
        UserWarning,
        stacklevel=4,
    )
