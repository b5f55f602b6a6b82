"""Numbers that say what a point's neighbourhood looks like, computed from coordinates alone.

Of the k nearest points of a point in its cloud, itself included, k = 16: C is their covariance matrix divided by its
trace, with eigenvalues l1 >= l2 >= l3, and s_i = sqrt(l_i + EPSILON).

- linearity (s1 - s2) / s1 and planarity (s2 - s3) / s1 (Demantke et al., *Dimensionality based scale selection in 3D
  lidar point clouds*, 2011; scattering s3 / s1 is one minus both);
- the logarithm of the distance of the k-th point, relative to the cloud's root mean square radius;
- "oriented": the products n_i n_j of the components of the normal n, whose sign cancels; they turn with the shape;
- "invariant", which no rotation changes. Of the point x, seen from the centre of the cloud, with the direction t of the
  first eigenvector, the offset c of the neighbourhood's mean, the distance r of the k-th point, and the unit vectors
  u_j to the other points of the neighbourhood and their normals n_j: |x|, |n.x| / |x| and |t.x| / |x|; curvature
  towards the centre or away from it, sign(n.x) n.c / r, and |n.c| / r and |c| / r; of each mean shift v, |v|, v.x / |x|
  and |n.v|; and the agreement of normals, the means of |n_j.n|, |u_j.n| and |u_j.n_j| (the angles of Rusu et al.,
  *Fast point feature histograms*, 2009);
- "all": both, the products last;
- "shifts": those of "oriented" and, before the products, the mean shifts;
- "both": those of "shifts" and of "all".

The mean shifts of the point x (Comaniciu and Meer, *Mean shift*, 2002) are the vectors from x to the mean of all points
y with weights exp(-|y - x|^2 / 2 s^2), divided by s, for each s of `SCALES`. They say on which side of the point the
shape lies, near and far, and turn with the shape.

n n^T = (C - l1) (C - l2) / ((l3 - l1) (l3 - l2)) needs no eigenvectors, nor does t t^T, so the same lines run in a data
loader, in an exported model and on a GPU. A neighbourhood without a plane (one place, a line, a ball) has no normal:
where l2 - l3 is small, the products go to zero; those of t likewise. Every cloud with a point gives finite numbers: one
with fewer points than k has as many neighbours as there are points.

Numbers depend on the density of points, for which two rules correct: of n < 1,024 points, k is 16 sqrt(n / 1024), at
least 8; and the distance of the k-th point is as of 16 of 1,024, on a surface.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray
from torch import Tensor

from pointset.configuration import LocalFeatures
from pointset.data.local_feature_kinds import PAIRS, PARTS, SCALES, WIDTHS

SIZE, FEWEST, USUAL_POINTS = 16, 8, 1024
"""Points of a neighbourhood, itself included, in a cloud of usual size, and in a small one."""
EPSILON = 1e-4
"""Added to eigenvalues of trace 1: what float32 leaves of zero. Square roots of less are rounding."""
GAP = 3e-3
"""Of (l1 - l3) (l2 - l3), below which a normal fades: without a plane its direction is rounding; of t likewise."""
PART = 1e-3
"""Smallest |v.w|: less is rounding."""
EXPONENT = -0.5 / SCALES[0] ** 2
FAINT = 1e-8
"""Weight of a mean shift, below which the next scale counts none: products with denormal numbers are slow."""
NEAREST = 1e-4
"""Smallest distance, relative to the cloud: equal points have a finite logarithm."""
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
_ROWS = 128
"""Points whose mean shifts are computed at a time: what they need of all others stays in the processor's cache."""


def compute_local_features(points: Float[ndarray, "n 3"], kind: LocalFeatures) -> Float[ndarray, "n width"]:
    """The numbers of all points of one cloud, float32, from neighbours that a k-d tree finds; see the module.

    Args:
        points: [n, 3], finite, in any unit.
        kind: "oriented", "invariant", "all", "shifts" or "both".
    """
    from scipy.spatial import cKDTree

    if not len(points):
        return np.zeros((0, WIDTHS[kind]), np.float32)
    exact = np.asarray(points, np.float64)
    exact = exact - exact.mean(axis=0)
    radius = math.sqrt(np.square(exact).sum(axis=1).mean())
    exact = exact / (radius or 1.0)
    size = min(max(FEWEST, round(SIZE * min(1.0, len(exact) / USUAL_POINTS) ** 0.5)), len(exact))
    distances, indices = cKDTree(exact).query(exact, [*range(1, size + 1)])
    count = torch.tensor(float(len(exact)), dtype=torch.float64)
    X, near, reach = map(torch.from_numpy, (exact, indices.T.copy(), distances[:, -1]))
    around = torch.stack([axis[near] - axis for axis in X.T.contiguous()])
    shifts = None if kind == "oriented" else _mean_shifts_of_cloud(X)
    numbers: ndarray = _numbers(X, near, around, reach, None, count, kind, shifts).to(torch.float32).numpy()
    return numbers


def stored_local_features(points: Float[ndarray, "n 3"], kind: LocalFeatures) -> Float[ndarray, "n width"]:
    """`compute_local_features` as caches keep them and as single shapes get them too: float16, three digits."""
    return compute_local_features(points, kind).astype(np.float16)


def batch_local_features(
    points: Float[Tensor, "B n 3"], kind: LocalFeatures, mask: Bool[Tensor, "B n"] | None = None
) -> Float[Tensor, "B n width"]:
    """The numbers of all points of a batch, in its type: for a model that gets bare points; zeros in padded rows.

    Equal to `compute_local_features`, but for rounding and for the choice among neighbours at one distance.
    """
    real = torch.ones_like(points[:, :, :1]) if mask is None else mask[:, :, None].to(points.dtype)
    count = real.sum(dim=1, keepdim=True).clamp(min=1)
    moved = (points - (points * real).sum(dim=1, keepdim=True) / count) * real
    spread = moved.square().sum(dim=(1, 2), keepdim=True) / count
    moved = moved / torch.where(spread > 0, spread, 1.0).sqrt()  # a root of zero has no gradient
    # Points at no place make k neighbours of any set, so that an exported model takes sets of any size.
    others = torch.nn.functional.pad(moved, (0, 0, 0, SIZE))
    away = torch.nn.functional.pad(1 - real, (0, 0, 0, SIZE), value=1.0)[:, :, 0]
    squares = torch.finfo(moved.dtype).max / 4 * away[:, None]
    for axis in range(3):  # without the products of a matrix multiplication, whose rounding chooses other neighbours
        squares = squares + (moved[:, :, None, axis] - others[:, None, :, axis]).square()
    indices = squares.topk(SIZE, dim=2, largest=False, sorted=True).indices
    size = (SIZE * (count / USUAL_POINTS).clamp(max=1).sqrt()).round().clamp(min=FEWEST)  # [B, 1, 1]
    used = away[:, None].expand(-1, moved.shape[1], -1).gather(2, indices) == 0
    used = (used & (torch.arange(SIZE, device=points.device) < size)).mT
    chosen = others[:, None].expand(-1, moved.shape[1], -1, -1).gather(2, indices[..., None].expand(-1, -1, -1, 3))
    around = (chosen - moved[:, :, None]).permute(3, 0, 2, 1) * used
    reach = around.square().sum(dim=0).amax(dim=-2).clamp(min=torch.finfo(moved.dtype).tiny).sqrt()
    near = indices.clamp(max=moved.shape[1] - 1).mT
    shifts = None
    if kind != "oriented":
        columns = torch.cat([others, torch.ones_like(others[..., :1])], dim=-1).mT.contiguous()
        shifts = _mean_shifts(moved, _weighted_sums(columns, squares * EXPONENT))
    return _numbers(moved, near, around, reach, used, count[:, 0], kind, shifts) * real


def _mean_shifts_of_cloud(X: Float[Tensor, "n 3"]) -> Float[Tensor, "s 3 n"]:
    """The mean shifts of all points of one cloud, some rows at a time and in float32: in half of the time."""
    squares, one = X.square().sum(dim=1, keepdim=True), torch.ones_like(X[:, :1])
    rows = torch.cat([-2 * X, squares, one], dim=1) * EXPONENT
    columns = torch.cat([X, one, squares], dim=1).T.contiguous()
    Y = columns[:4].float()
    sums = [_weighted_sums(Y, (row @ columns).float()) for row in rows.split(_ROWS)]
    return _mean_shifts(X.float(), torch.cat(sums, dim=-1))


def _weighted_sums(Y: Float[Tensor, "... 4 m"], exponents: Float[Tensor, "... n m"]) -> Float[Tensor, "... s 4 n"]:
    """sum_j K_j (y_j, 1) for each s of `SCALES`, K_j = exp(-|y_j - x|^2 / 2 s^2).

    The `exponents` are those of the first s, and are overwritten, if they have no gradient.
    """
    in_place = not exponents.requires_grad  # in half of the time
    K = exponents.exp_() if in_place else exponents.exp()
    threshold, square = (torch.threshold_, Tensor.square_) if in_place else (torch.threshold, Tensor.square)
    sums = [Y @ K.mT]
    for _ in SCALES[1:]:
        K = square(square(threshold(K, FAINT, 0.0)))  # half of the standard deviation
        sums.append(Y @ K.mT)
    return torch.stack(sums, dim=-3)


def _mean_shifts(X: Float[Tensor, "... n 3"], sums: Float[Tensor, "... s 4 n"]) -> Float[Tensor, "... s 3 n"]:
    """(sum_j K_j y_j / sum_j K_j - x) / s, for each s of `SCALES`."""
    means = sums[..., :3, :] / sums[..., 3:, :].clamp(min=1)  # less than 1 in padded rows alone
    scales = torch.tensor(SCALES, dtype=X.dtype, device=X.device)[:, None, None]
    return (means - X.mT[..., None, :, :]) / scales


def _numbers(
    X: Tensor,
    near: Tensor,
    around: Tensor,
    reach: Tensor,
    used: Tensor | None,
    count: Tensor,
    kind: LocalFeatures,
    shifts: Tensor | None,
) -> Tensor:
    """The numbers of points [..., n, 3] in a cloud of `count` points.

    `near` [..., K, n] are the places of their neighbours, the point itself first, `around` the offsets [3, ..., K, n],
    of which those that are not `used` are zero, `reach` [..., n] is the distance of the last one, and `shifts`
    [..., s, 3, n] are the mean shifts, which "oriented" lacks. Points come last: sums over neighbours are then fast.
    """
    products = torch.stack([around[i] * around[j] for i, j in PAIRS])  # [6, ..., K, n]
    size = torch.full_like(reach, around.shape[-2]) if used is None else used.sum(dim=-2).clamp(min=1).to(reach)
    mean, squares = around.sum(dim=-2) / size, products.sum(dim=-2) / size
    C = squares - torch.stack([mean[i] * mean[j] for i, j in PAIRS])
    trace = C[:3].sum(dim=0)
    C = C / torch.where(trace > 0, trace, 1.0)
    values = _eigenvalues(C)
    s1, s2, s3 = (value.clamp(min=0).add(EPSILON).sqrt() for value in values)
    usual = (count / USUAL_POINTS * (SIZE / size)).log() / 2
    numbers = [(s1 - s2) / s1, (s2 - s3) / s1, reach.clamp(min=NEAREST).log() + usual]
    largest, middle, smallest = values
    N = _products(C, smallest, largest, middle)
    if "shifts" in PARTS[kind] and shifts is not None:
        numbers += shifts.flatten(-3, -2).unbind(dim=-2)
    if "invariant" in PARTS[kind] and shifts is not None:
        tangents, offset = _products(C, largest, middle, smallest), mean / reach.clamp(min=NEAREST)
        numbers += _invariant_numbers(X, N, tangents, offset, shifts)
        numbers += _agreement(N, near, products, used, size)
    if kind != "invariant":
        numbers += N.unbind()
    return torch.stack(numbers, dim=-1)


def _invariant_numbers(X: Tensor, N: Tensor, tangents: Tensor, offset: Tensor, shifts: Tensor) -> list[Tensor]:
    """Of points [..., n, 3], what no rotation changes, by the products [6, ..., n] of their normals and tangents.

    The offsets [3, ..., n] of the neighbourhoods' means are relative to the distances of the last neighbours.
    """
    distance = X.norm(dim=-1)
    place = (X / distance.clamp(min=NEAREST)[..., None]).mT  # [..., 3, n]
    vectors = torch.cat([place[..., None, :, :], offset.movedim(0, -2)[..., None, :, :], shifts.to(X)], dim=-3)
    v, p = vectors.unbind(dim=-2), place.unbind(dim=-2)  # of v [..., 2 + s, n]
    smallest = torch.finfo(X.dtype).tiny  # a root of zero has no gradient
    lengths = _dot(v, v).clamp(min=smallest).sqrt().unbind(dim=-2)
    along = _dot(v, [axis[..., None, :] for axis in p]).unbind(dim=-2)
    Nv = _applied(N[..., None, :], v)
    facing, *slopes = _length(_dot(v, Nv)).unbind(dim=-2)
    # The sign is a step that is not steep, so that rounding does not choose it.
    towards = _dot(p, [axis[..., 1, :] for axis in Nv]) / (facing.square() + EPSILON).sqrt()
    numbers = [distance, facing, _length(_dot(p, _applied(tangents, p))), towards, slopes[0], lengths[1]]
    for own in zip(lengths[2:], along[2:], slopes[1:], strict=True):
        numbers += own
    return numbers


def _agreement(N: Tensor, near: Tensor, products: Tensor, used: Tensor | None, size: Tensor) -> list[Tensor]:
    """Means over the neighbours of |n_j.n|, |u_j.n| and |u_j.n_j|, from `products` of the offsets' components."""
    others = N.gather(-1, near.flatten(-2).expand(len(N), *near.shape[:-2], -1)).reshape(len(N), *near.shape)
    directions = products / products[:3].sum(dim=0).clamp(min=NEAREST**2)
    pairs = ((N[..., None, :], others), (N[..., None, :], directions), (others, directions))
    numbers = []
    for one in (_length(_trace(A, B)) for A, B in pairs):
        kept = (one if used is None else one * used)[..., 1:, :]
        numbers.append(kept.sum(dim=-2) / (size - 1).clamp(min=1))
    return numbers


def _eigenvalues(C: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Eigenvalues of symmetric matrices of trace 1 (or 0), given by `PAIRS` [6, ...]; the largest first.

    The trigonometric solution of the characteristic equation (Smith, *Eigenvalues of a symmetric 3 x 3 matrix*, 1961).
    """
    mean = C[:3].sum(dim=0) / 3
    (a, b, c), (xy, xz, yz) = (C[:3] - mean).unbind(), C[3:].unbind()
    spread = ((a * a + b * b + c * c + 2 * (xy * xy + xz * xz + yz * yz)) / 6).clamp(min=1e-14).sqrt()
    determinant = a * (b * c - yz * yz) - xy * (xy * c - yz * xz) + xz * (xy * yz - b * xz)
    cosine = determinant / (2 * spread**3)
    angle = torch.where(cosine.abs() < 1, cosine, cosine.sign()).acos() / 3  # no gradient at 1: there it is infinite
    largest = mean + 2 * spread * angle.cos()
    smallest = mean + 2 * spread * (angle + 2 * math.pi / 3).cos()
    return largest, 3 * mean - largest - smallest, smallest


def _products(C: Tensor, own: Tensor, second: Tensor, third: Tensor) -> Tensor:
    """v_i v_j [6, ...] of the unit eigenvectors v of the `own` eigenvalues, in the order of `PAIRS`.

    They go to zero where another eigenvalue is near: of a normal, where there is no plane.
    """
    xx, yy, zz, xy, xz, yz = C.unbind()
    square = torch.stack(
        [
            xx * xx + xy * xy + xz * xz,
            xy * xy + yy * yy + yz * yz,
            xz * xz + yz * yz + zz * zz,
            xx * xy + xy * yy + xz * yz,
            xx * xz + xy * yz + xz * zz,
            xy * xz + yy * yz + yz * zz,
        ]
    )
    one = torch.tensor([1.0, 1, 1, 0, 0, 0], dtype=C.dtype, device=C.device).view(6, *[1] * (C.dim() - 1))
    gap = (own - second) * (own - third)
    return (square - (second + third) * C + second * third * one) * (gap / (gap.square() + GAP**2))


def _trace(A: Tensor, B: Tensor) -> Tensor:
    """The trace of A B, of symmetric matrices given by `PAIRS` [6, ...]."""
    xx, yy, zz, xy, xz, yz = (A * B).unbind()
    return xx + yy + zz + 2 * (xy + xz + yz)


def _applied(A: Tensor, v: Sequence[Tensor]) -> list[Tensor]:
    """A v, of symmetric matrices given by `PAIRS` [6, ...], by components."""
    xx, yy, zz, xy, xz, yz = A.unbind()
    x, y, z = v
    return [xx * x + xy * y + xz * z, xy * x + yy * y + yz * z, xz * x + yz * y + zz * z]


def _dot(v: Sequence[Tensor], w: Sequence[Tensor]) -> Tensor:
    return v[0] * w[0] + v[1] * w[1] + v[2] * w[2]


def _length(square: Tensor) -> Tensor:
    """The root of |v.w|^2, which rounding may make negative."""
    return (square.clamp(min=0) + PART**2).sqrt()
