"""Local features: the geometry of each point's neighbours in a cloud, computed from coordinates alone.

The cloud is centred and scaled to a root mean square radius of 1. Repeated points count once. For a point x, C is the
covariance matrix of its k = 16 nearest points, including x, divided by its trace. Its eigenvalues are l1 >= l2 >= l3.
The normal n is the eigenvector of l3, the direction t that of l1, and s_i = sqrt(l_i + EPSILON). Both kinds of
features, "upright" and "invariant", begin with three numbers and end with six:

- linearity (s1 - s2) / s1, planarity (s2 - s3) / s1 (Demantke et al., *Dimensionality based scale selection in 3D lidar
  point clouds*, 2011; scattering s3 / s1 is one minus their sum), and log r, where the k-th point has distance r;
- the products n_i n_j of the components of the normal, which do not depend on its sign. They rotate with the shape.

Between these numbers, "upright" (21 features, for shapes in the pose of the training shapes) has mean shifts (Comaniciu
and Meer, *Mean shift*, 2002): the vectors from x to the mean of all points y with weights exp(-|y - x|^2 / 2 s^2),
divided by s, for each s of `SCALES`. They point towards the rest of the shape, at several scales, and rotate with the
shape.

"invariant" (30 features, for any pose) has numbers that no rotation changes. Let u be x / |x|, c the vector from x to
the mean of its neighbours, v each mean shift, u_j the unit vector to another neighbour j, and n_j its normal. The
numbers are |x|, |n.u|, |t.u|; the curvature sign(n.u) n.c / r, whose sign tells if the surface bends towards the
centre, |n.c| / r, |c| / r; |v|, v.u, |n.v| for each v; and the means of |n_j.n|, |u_j.n| and |u_j.n_j| over j, the
angles of Rusu et al., *Fast point feature histograms*, 2009.

n n^T = (C - l1) (C - l2) / ((l3 - l1) (l3 - l2)) needs no eigenvectors, so the same code runs in a data loader, in an
ONNX file (ONNX has no eigenvalue decomposition) and on a GPU. Neighbours at the same place, on a line or in a ball have
no normal: as l2 - l3 becomes small, n n^T goes to zero, as t t^T does if l1 - l2 becomes small. The features of every
cloud are finite. Two rules correct for the density: in a cloud of N < 1,024 points, k is 16 sqrt(N / 1024), but at
least 8; and r is scaled as if k were 16 and N were 1,024, for points on a surface.
"""

import math
from collections.abc import Iterable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from torch import Tensor

from pointset.configuration import LocalFeatures
from pointset.errors import PointsetError

SCALES = (0.8, 0.4, 0.2, 0.1)
"""Standard deviations s of mean shifts, in units of the root mean square radius. Each is half of the one before."""
WIDTHS: dict[LocalFeatures, int] = {"none": 0, "upright": 9 + 3 * len(SCALES), "invariant": 18 + 3 * len(SCALES)}
"""Number of local features of each point, by kind."""
SIZE, FEWEST, USUAL_POINTS = 16, 8, 1024
"""A point has SIZE neighbours, including itself, in clouds of at least USUAL_POINTS points, and at least FEWEST in
smaller clouds."""
EPSILON = 1e-4
"""Added to the eigenvalues, whose sum is 1, before the square root: smaller values are rounding errors of float32."""
GAP = 3e-3
"""Value of (l1 - l3) (l2 - l3) below which n n^T fades to zero, as rounding then determines n. The same holds for t."""
PART = 1e-3
"""Minimum of absolute products |v.w|: smaller values are rounding errors."""
EXPONENT = -0.5 / SCALES[0] ** 2
FAINT = 1e-8
"""Weights of a mean shift below this become 0 at the next scale, as products with denormal numbers are slow."""
NEAREST = 1e-4
"""Minimum distance, in units of the root mean square radius, so that the logarithm is finite for equal points."""
CONSTANTS: dict[str, float | tuple[float, ...]] = {
    "size": SIZE,
    "fewest": FEWEST,
    "usual": USUAL_POINTS,
    "epsilon": EPSILON,
    "gap": GAP,
    "smallest_part": PART,
    "nearest": NEAREST,
    "scales": SCALES,
}
PRODUCTS = torch.tensor([0, 4, 8, 1, 2, 5])
"""Places of the six distinct entries xx, yy, zz, xy, xz, yz of a symmetric matrix among its nine, row by row."""
_MATRIX = [0, 3, 4, 3, 1, 5, 4, 5, 2]
"""Places of the nine entries of a symmetric matrix among the six distinct ones."""
_ROWS = 128
"""Number of points whose mean shifts are computed at a time, so that the weights stay in the processor's cache."""


def cloud_local_features(points: Float[ndarray, "n 3"], kind: LocalFeatures) -> Float[ndarray, "n width"]:
    """Return the local features of all points of one cloud, float32. A k-d tree finds the neighbours.

    Args:
        points: [n, 3], finite, in any unit.
        kind: "upright" or "invariant".
    """
    from scipy.spatial import cKDTree

    if not len(points):
        return np.zeros((0, WIDTHS[kind]), np.float32)
    exact = np.asarray(points, np.float64)
    exact = exact - exact.mean(axis=0)
    exact = exact / (math.sqrt(np.square(exact).sum(axis=1).mean()) or 1.0)
    size = min(max(FEWEST, round(SIZE * min(1.0, len(exact) / USUAL_POINTS) ** 0.5)), len(exact))
    distances, indices = cKDTree(exact).query(exact, [*range(1, size + 1)])
    if size > 1 and not distances[:, 1].all():
        distinct, places = np.unique(points, axis=0, return_inverse=True)
        if len(distinct) < len(points):
            return cloud_local_features(distinct, kind)[places.ravel()]
    X, near, count = (torch.from_numpy(array)[None] for array in (exact, indices, np.full(1, float(len(exact)))))
    offsets = X[0, near] - X[:, :, None]
    reach, used = torch.from_numpy(distances[:, -1])[None], torch.ones(near.shape, dtype=torch.bool)
    features = _local_features(X, near, offsets, reach, used, count, _mean_shifts_by_blocks(X[0])[None], kind)
    return features[0].to(torch.float32).numpy()


def batch_local_features(
    points: Float[Tensor, "B n 3"], kind: LocalFeatures, mask: Bool[Tensor, "B n"] | None = None
) -> Float[Tensor, "B n width"]:
    """Return the local features of all points of a batch, in the dtype of the points, for models of coordinates.

    The features equal those of `cloud_local_features`, except for rounding and the choice among neighbours at equal
    distances. Padded rows, where the mask is False, are zero. With its k-d tree, `cloud_local_features` takes two
    thirds of the time.
    """
    real = torch.ones_like(points[:, :, :1]) if mask is None else mask[:, :, None].to(points.dtype)
    X, _ = _normalized(points, real)
    # SIZE unused points are appended, so that an exported model finds SIZE neighbours in sets of any size.
    others = torch.nn.functional.pad(X, (0, 0, 0, SIZE))
    squares = torch.zeros_like(X[:, :, :1])
    for axis in range(3):  # not by a matrix multiplication, whose rounding leads to other neighbours
        squares = squares + (X[:, :, None, axis] - others[:, None, :, axis]).square()
    again = ((squares[..., :-SIZE] == 0) & (real.mT > 0)).tril(-1).any(dim=2, keepdim=True)  # equals an earlier point
    distinct = real * ~again
    X, spread = _normalized(X, distinct)
    away = torch.nn.functional.pad(1 - distinct, (0, 0, 0, SIZE), value=1.0).mT
    squares = squares / spread + torch.finfo(X.dtype).max / 4 * away
    count = distinct.sum(dim=1).clamp(min=1)
    size = (SIZE * (count / USUAL_POINTS).clamp(max=1).sqrt()).round().clamp(min=FEWEST)
    indices = squares.topk(SIZE, dim=2, largest=False, sorted=True).indices
    used = away.expand_as(squares).gather(2, indices) == 0
    used = used & (torch.arange(SIZE, device=points.device) < size[:, :, None])
    near = indices.clamp(max=X.shape[1] - 1)
    offsets = (_rows_at(X, near) - X[:, :, None]) * used[..., None]
    smallest = torch.finfo(X.dtype).tiny  # a root of zero has no gradient
    reach = offsets.square().sum(dim=-1).amax(dim=-1).clamp(min=smallest).sqrt()
    columns = torch.nn.functional.pad(torch.cat([X, torch.ones_like(real)], dim=-1), (0, 0, 0, SIZE)).mT.contiguous()
    shifts = _mean_shifts(X, _weighted_sums(columns, squares * EXPONENT))
    return _local_features(X, near, offsets, reach, used, count, shifts, kind) * real


def _local_features(
    X: Float[Tensor, "B n 3"],
    near: Int[Tensor, "B n k"],
    offsets: Float[Tensor, "B n k 3"],
    reach: Float[Tensor, "B n"],
    used: Bool[Tensor, "B n k"],
    count: Float[Tensor, "B 1"],
    shifts: Float[Tensor, "B n s 3"],
    kind: LocalFeatures,
) -> Float[Tensor, "B n width"]:
    """Return the features in the order of the module's docstring.

    Args:
        X: normalised points.
        near: indices of the neighbours of each point, the first of which is the point itself.
        offsets: vectors from each point to its neighbours, zero where `used` is False.
        reach: distance r of the last neighbour.
        count: number of points of the cloud.
        shifts: mean shifts v, by scale.
    """
    size = used.sum(dim=-1, keepdim=True).clamp(min=1).to(X.dtype)
    mean = offsets.sum(dim=-2) / size
    C = offsets.mT @ offsets / size[..., None] - mean[..., :, None] * mean[..., None, :]
    trace = C.diagonal(dim1=-2, dim2=-1).sum(dim=-1)[..., None, None]
    C = C / torch.where(trace > 0, trace, 1.0)
    l1, l2, l3 = _eigenvalues(C)
    s1, s2, s3 = (value.clamp(min=0).add(EPSILON).sqrt() for value in (l1, l2, l3))
    reach = reach.clamp(min=NEAREST)
    density = (count / USUAL_POINTS * (SIZE / size[..., 0])).log() / 2
    N = _projection(C, l3, l1, l2)  # n n^T
    columns = [torch.stack([(s1 - s2) / s1, (s2 - s3) / s1, reach.log() + density], dim=-1)]
    if kind == "upright":
        columns.append(shifts.flatten(-2).to(X.dtype))
    else:
        distance = X.norm(dim=-1)
        u = X / distance.clamp(min=NEAREST)[..., None]
        v = torch.cat([u[..., None, :], (mean / reach[..., None])[..., None, :], shifts.to(X.dtype)], dim=-2)
        Nv = v @ N
        lengths = v.square().sum(dim=-1).clamp(min=torch.finfo(X.dtype).tiny).sqrt()  # a root of zero has no gradient
        along, across = (v @ u[..., None])[..., 0], _root((v * Nv).sum(dim=-1))
        facing = across[..., 0]
        # A smooth step instead of the sign, which rounding errors could flip.
        curvature = (u * Nv[..., 1, :]).sum(dim=-1) / (facing.square() + EPSILON).sqrt()
        direction = _root((u[..., None, :] @ _projection(C, l1, l2, l3) @ u[..., :, None])[..., 0, 0])
        columns.append(torch.stack([distance, facing, direction, curvature, across[..., 1], lengths[..., 1]], dim=-1))
        columns.append(torch.stack([lengths, along, across], dim=-1)[..., 2:, :].flatten(-2))
        columns.append(_agreement(N, near, offsets, used, size))
    columns.append(N.flatten(-2)[..., PRODUCTS.to(N.device)])
    return torch.cat(columns, dim=-1)


def _agreement(N: Tensor, near: Tensor, offsets: Tensor, used: Tensor, size: Tensor) -> Float[Tensor, "B n 3"]:
    """Return the means of |n_j.n|, |u_j.n| and |u_j.n_j| over the other neighbours j."""
    normal, normals = N.flatten(-2)[..., None, :], _rows_at(N.flatten(-2), near)  # n n^T, and n_j n_j^T
    squares = offsets.square().sum(dim=-1, keepdim=True).clamp(min=NEAREST**2)
    directions = (offsets[..., :, None] * offsets[..., None, :]).flatten(-2) / squares  # u_j u_j^T
    pairs = ((normal, normals), (normal, directions), (directions, normals))
    angles = torch.stack([_root((A * B).sum(dim=-1)) for A, B in pairs], dim=-1) * used[..., None]
    return angles[..., 1:, :].sum(dim=-2) / (size - 1).clamp(min=1)


def _normalized(points: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
    """Return points [B, n, 3] with mean 0 and root mean square radius 1, and their former mean square radius.

    `real` [B, n, 1] is 1 at points that count for both, and 0 at others.
    """
    count = real.sum(dim=1, keepdim=True).clamp(min=1)
    moved = points - (points * real).sum(dim=1, keepdim=True) / count
    square = (moved * real).square().sum(dim=(1, 2), keepdim=True) / count
    square = torch.where(square > 0, square, 1.0)  # a root of zero has no gradient
    return moved / square.sqrt(), square


def _rows_at(X: Float[Tensor, "B n d"], indices: Int[Tensor, "B n k"]) -> Float[Tensor, "B n k d"]:
    rows = X.gather(1, indices.flatten(1)[..., None].expand(-1, -1, X.shape[-1]))
    return rows.unflatten(1, indices.shape[1:])


def _mean_shifts_by_blocks(X: Float[Tensor, "n 3"]) -> Float[Tensor, "n s 3"]:
    """Return the mean shifts of one cloud, computed for some points at a time in float32, which halves the time."""
    squares, one = X.square().sum(dim=1, keepdim=True), torch.ones_like(X[:, :1])
    rows = torch.cat([-2 * X, squares, one], dim=1) * EXPONENT
    columns = torch.cat([X, one, squares], dim=1).T.contiguous()
    Y = columns[:4].float()
    sums = [_weighted_sums(Y, (row @ columns).float()) for row in rows.split(_ROWS)]
    return _mean_shifts(X.float(), torch.cat(sums, dim=-1))


def _weighted_sums(Y: Float[Tensor, "... 4 m"], exponents: Float[Tensor, "... n m"]) -> Float[Tensor, "... s 4 n"]:
    """Return sum_j K_j (y_j, 1) for each s of `SCALES`, with K_j = exp(-|y_j - x|^2 / 2 s^2).

    The `exponents` are those of the first s, and are overwritten if they need no gradient.
    """
    in_place = not exponents.requires_grad  # halves the time
    K = exponents.exp_() if in_place else exponents.exp()
    threshold, square = (torch.threshold_, Tensor.square_) if in_place else (torch.threshold, Tensor.square)
    sums = [Y @ K.mT]
    for _ in SCALES[1:]:
        K = square(square(threshold(K, FAINT, 0.0)))  # K for half of the standard deviation
        sums.append(Y @ K.mT)
    return torch.stack(sums, dim=-3)


def _mean_shifts(X: Float[Tensor, "... n 3"], sums: Float[Tensor, "... s 4 n"]) -> Float[Tensor, "... n s 3"]:
    """Return (sum_j K_j y_j / sum_j K_j - x) / s for each s of `SCALES`."""
    means = sums[..., :3, :] / sums[..., 3:, :].clamp(min=1)  # below 1 only in padded rows
    scales = torch.tensor(SCALES, dtype=X.dtype, device=X.device)[:, None, None]
    return ((means - X.mT[..., None, :, :]) / scales).movedim(-1, -3)


def _eigenvalues(C: Float[Tensor, "... 3 3"]) -> tuple[Tensor, Tensor, Tensor]:
    """Return the eigenvalues of symmetric matrices of trace 1 (or 0), the largest first.

    They are the trigonometric solution of the characteristic equation (Smith, *Eigenvalues of a symmetric 3 x 3
    matrix*, 1961).
    """
    a, xy, xz, _, b, yz, _, _, c = C.flatten(-2).unbind(dim=-1)
    mean = (a + b + c) / 3
    a, b, c = a - mean, b - mean, c - mean
    spread = ((a * a + b * b + c * c + 2 * (xy * xy + xz * xz + yz * yz)) / 6).clamp(min=1e-14).sqrt()
    determinant = a * (b * c - yz * yz) - xy * (xy * c - yz * xz) + xz * (xy * yz - b * xz)
    cosine = determinant / (2 * spread**3)
    angle = torch.where(cosine.abs() < 1, cosine, cosine.sign()).acos() / 3  # no gradient at 1, where it is infinite
    largest = mean + 2 * spread * angle.cos()
    smallest = mean + 2 * spread * (angle + 2 * math.pi / 3).cos()
    return largest, 3 * mean - largest - smallest, smallest


def _projection(C: Float[Tensor, "... 3 3"], value: Tensor, second: Tensor, third: Tensor) -> Float[Tensor, "... 3 3"]:
    """Return v v^T for the unit eigenvector v of each eigenvalue [...]; zero if another eigenvalue is close."""
    gap = (value - second) * (value - third)
    fading, total, product = ((gap / (gap.square() + GAP**2)), second + third, second * third)
    unit = torch.eye(3, dtype=C.dtype, device=C.device)
    return (C @ C - total[..., None, None] * C + product[..., None, None] * unit) * fading[..., None, None]


def _root(square: Tensor) -> Tensor:
    """Return |v.w| from (v.w)^2, which rounding can make negative."""
    return (square.clamp(min=0) + PART**2).sqrt()


def rotate_local_features(
    features: Float[Tensor, "B n width"], matrices: Float[Tensor, "B 3 3"], kind: LocalFeatures
) -> Float[Tensor, "B n width"]:
    """Return the features of clouds rotated by x -> R x: n n^T becomes R (n n^T) R^T, and mean shifts v become R v."""
    N = features[..., -len(PRODUCTS) :][..., _MATRIX].unflatten(-1, (3, 3))
    rotated = torch.einsum("bij,bnjk,blk->bnil", matrices, N, matrices).flatten(-2)[..., PRODUCTS.to(N.device)]
    others = features[..., : -len(PRODUCTS)]
    if kind == "upright":
        shape, shifts = others[..., :3], others[..., 3:].unflatten(-1, (len(SCALES), 3))
        others = torch.cat([shape, torch.einsum("bij,bnsj->bnsi", matrices, shifts).flatten(-2)], dim=-1)
    return torch.cat([others, rotated], dim=-1)


def common_kind(kinds: Iterable[LocalFeatures]) -> LocalFeatures:
    """Return the one kind of local features that the models of an ensemble use; some models may use none."""
    used = {*kinds} - {"none"}
    if len(used) > 1:
        raise PointsetError(f"the models use different local features ({', '.join(sorted(used))}): use one")
    return used.pop() if used else "none"
