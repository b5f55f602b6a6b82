"""Rotate a batch of sets, together with the features of their points that have a direction."""

from typing import NamedTuple

import torch
from torch import Generator, Tensor

from pointset.configuration import LocalFeatures
from pointset.data.local_features import WIDTHS, rotate_local_features


class Columns(NamedTuple):
    """Features of a point that rotate with the shape."""

    normals: bool = False
    """Columns 3 to 5 are unit normals."""
    local_features: LocalFeatures = "none"
    """The last columns are local features of this kind; see `pointset.data.local_features`."""


NO_COLUMNS = Columns()


def rotate_by_one_of(
    matrices: Tensor, points: Tensor, generator: Generator, mask: Tensor | None = None, *, columns: Columns = NO_COLUMNS
) -> Tensor:
    """Return the sets [B, n, d], each rotated about the origin by one of the matrices [k, 3, 3], chosen at random."""
    chosen = torch.randint(len(matrices), (len(points),), generator=generator)
    return rotate(points, matrices[chosen].to(points), columns)


def rotate(points: Tensor, matrices: Tensor, columns: Columns = NO_COLUMNS) -> Tensor:
    """Return the sets [B, n, d], rotated about the origin by matrices [B, 3, 3], with the features of `columns`."""
    inverse = matrices.mT
    changed = with_coordinates(
        points, points[..., :3] @ inverse, points[..., 3:6] @ inverse if columns.normals else None
    )
    if width := WIDTHS[columns.local_features]:
        features = rotate_local_features(points[..., -width:], matrices, columns.local_features)
        changed = torch.cat([changed[..., :-width], features], dim=2)
    return changed


def with_coordinates(points: Tensor, coordinates: Tensor, normals: Tensor | None = None) -> Tensor:
    """Return the points [B, n, d] with new coordinates and, unless None, new normals."""
    if points.shape[2] == 3:
        return coordinates
    changed = [coordinates] if normals is None else [coordinates, normals]
    return torch.cat([*changed, points[..., 3 * len(changed) :]], dim=2)


def rotations_about(axis: int, angles: Tensor) -> Tensor:
    """Return the matrices [B, 3, 3] that rotate column vectors about one axis by angles [B]."""
    first, second = (axis + 1) % 3, (axis + 2) % 3
    matrices = torch.eye(3, dtype=angles.dtype, device=angles.device).repeat(len(angles), 1, 1)
    matrices[:, first, first] = matrices[:, second, second] = angles.cos()
    matrices[:, second, first] = angles.sin()
    matrices[:, first, second] = -angles.sin()
    return matrices


def rotation_matrices(quaternions: Tensor) -> Tensor:
    """Return the rotation matrices [B, 3, 3] of quaternions [B, 4] (w, x, y, z) of any norm except zero."""
    w, x, y, z = torch.nn.functional.normalize(quaternions, dim=1).unbind(1)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return torch.stack([torch.stack(row, dim=1) for row in rows], dim=1)
