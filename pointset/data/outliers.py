"""Merge repeated points of clouds, and remove outliers on request."""

import warnings
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from pointset.configuration import Checked, Count, Positive
from pointset.data.readers.clouds import Cloud
from pointset.errors import PointsetError, counted

MOST_REMOVED = 0.1
"""Maximum share of the points of a cloud that outlier removal may remove."""
ORIGIN_COPIES = 3
"""More points than this at the origin cause a warning: depth cameras and padding write zeros for missing points."""
OPTION = "--remove-outliers (in Python remove_outliers=True)"


@dataclass(frozen=True, kw_only=True)
class OutlierOptions(Checked):
    """Options of statistical outlier removal, as in the Point Cloud Library and Open3D."""

    remove_outliers: bool = False
    """Remove outliers (points far from all others) from point clouds in files, by statistical outlier removal. Arrays
    in memory keep all points."""
    outlier_neighbours: Count = 20
    """Number of nearest neighbours over which the distance of a point is averaged (MeanK in the Point Cloud Library,
    nb_neighbors in Open3D)."""
    outlier_ratio: Positive = 2.0
    """A point is an outlier if its average distance exceeds the mean of all points by more than this number of standard
    deviations (StddevMulThresh, std_ratio)."""


def prepare_cloud(cloud: Cloud, name: str, options: OutlierOptions) -> Cloud:
    """Return a cloud without repeated points and, if the options request it, without outliers.

    Args:
        cloud: the cloud.
        name: name of the file, for messages.
        options: whether outliers are removed, and how.

    Raises:
        PointsetError: outlier removal would remove more than 10 % of the points.
    """
    count = len(cloud.points)
    zeros = (cloud.points + np.array(cloud.corner) == 0).all(axis=1)
    missing = int(zeros.sum()) if ORIGIN_COPIES < zeros.sum() < count else 0
    if missing and options.remove_outliers:
        cloud = cloud[~zeros]
    elif missing:
        found = f"{name}: {missing:,} of {count:,} points are exactly at the origin (0, 0, 0), where they count as one"
        remedy = f"if they are missing measurements, {OPTION} removes them"
        warnings.warn(f"{found}; {remedy}", stacklevel=3)
    cloud = merge_duplicates(cloud)
    if not options.remove_outliers:
        return cloud
    outliers = find_outliers(cloud.points, options.outlier_neighbours, options.outlier_ratio)
    if (share := outliers.mean()) > MOST_REMOVED:
        found = f"outlier removal would remove {outliers.sum():,} of {len(outliers):,} points ({share:.0%}, but at most"
        remedy = f"leave --remove-outliers out, or raise outlier_ratio (now {options.outlier_ratio:g})"
        raise PointsetError(f"{name}: {found} {MOST_REMOVED:.0%} are allowed): {remedy}")
    if outliers.any() or missing:
        at_origin = f" and {missing:,} at the origin" if missing else ""
        removed = f"{counted(int(outliers.sum()), 'outlier')}{at_origin}"
        warnings.warn(f"{name}: {removed} of {count:,} points removed (--remove-outliers)", stacklevel=3)
    return cloud[~outliers]


def merge_duplicates(cloud: Cloud) -> Cloud:
    """Return the cloud without points that repeat the coordinates of an earlier point.

    Some clouds are padded with copies of their points. Without the copies, neighbours, normalisation and farthest
    points do not depend on the padding.
    """
    places = np.ascontiguousarray(cloud.points + 0.0)  # -0.0 is 0.0
    rows = places.view(np.dtype((np.void, places.dtype.itemsize * 3))).ravel()
    first = np.unique(rows, return_index=True)[1]
    return cloud if len(first) == len(places) else cloud[np.sort(first)]


def find_outliers(points: Float[ndarray, "n 3"], neighbours: int, ratio: float) -> Bool[ndarray, " n"]:
    """Return a mask, True for outliers: points whose mean distance to their nearest neighbours is unusually large.

    This is statistical outlier removal (Rusu et al., "Towards 3D point cloud based object maps for household
    environments", 2008, section 3.1). Let d be the mean distance of a point to its `neighbours` nearest neighbours. A
    point is an outlier if d > mean(d) + ratio * std(d).
    """
    if len(points) == 1:
        return np.zeros(1, bool)
    from scipy.spatial import cKDTree

    distances = cKDTree(points).query(points, min(neighbours + 1, len(points)))[0][:, 1:].mean(axis=1)
    return distances > distances.mean() + ratio * distances.std()
