"""Samplers by property: on the surface, by area, repeatable, and at any scale that float32 can hold."""

import itertools

import numpy as np
import pytest

from pointset import PointsetError
from pointset.data import Mesh, MeshError, downsample, read_mesh, sample_points
from pointset.data.sampling import farthest_points, import_open3d, seed_for

TETRAHEDRON = Mesh(
    np.array([[0.0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3]]),
    np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]),  # each seen from outside turns left
)


@pytest.fixture(params=["uniform", "fps", "poisson"])
def sampler(request):
    if request.param == "poisson":
        try:
            import_open3d()
        except PointsetError as error:
            pytest.skip(str(error))
    return request.param


def least_distance(points: np.ndarray) -> float:
    return min(float(np.linalg.norm(p - q)) for p, q in itertools.combinations(points.astype(np.float64), 2))


def test_normals_are_unit_and_point_out_of_the_sampled_face(sampler):
    points, normals = sample_points(TETRAHEDRON, 400, seed=2, sampler=sampler, normals=True)
    assert (normals.shape, normals.dtype) == ((400, 3), np.float32)
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1, atol=1e-6)
    outward = {(0, 0, -1): 0.0, (0, -1, 0): 0.0, (-1, 0, 0): 0.0, (6 / 7, 3 / 7, 2 / 7): 6 / 7}  # plane: normal, offset
    fits = np.zeros(len(points), dtype=bool)
    for normal, offset in outward.items():
        same = np.abs(normals - np.array(normal)).max(axis=1) < 1e-6
        assert same.any()
        np.testing.assert_allclose(points[same] @ np.array(normal), offset, atol=1e-6)
        fits |= same
    assert fits.all()
    np.testing.assert_array_equal(points, sample_points(TETRAHEDRON, 400, seed=2, sampler=sampler))


def test_a_seed_gives_one_cloud_and_another_seed_another(sampler):
    clouds = []
    for seed in (7, 7, 8):
        if sampler == "poisson":
            import_open3d().utility.random.seed(len(clouds))  # Open3D's own seed has no effect
        clouds.append(sample_points(TETRAHEDRON, 64, seed=seed, sampler=sampler))
    np.testing.assert_array_equal(clouds[0], clouds[1])
    assert not np.isin(clouds[0], clouds[2]).all(axis=1).any()


def test_uniform_points_against_the_formula():
    """Faces are chosen by their area, and points within a face by two uniform numbers."""
    points = sample_points(TETRAHEDRON, 200, seed=21)
    for point, (r0, r1, r2) in zip(points, np.random.Generator(np.random.PCG64(21)).random((200, 3)), strict=True):
        face = sum(r0 * 9 > sum_of_areas for sum_of_areas in (1, 2.5, 5.5))  # areas 1, 1.5, 3 and 3.5
        a, b, c = TETRAHEDRON.vertices[TETRAHEDRON.faces[face]]
        expected = (1 - r1**0.5) * a + r1**0.5 * (1 - r2) * b + r1**0.5 * r2 * c
        np.testing.assert_allclose(point, expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(sample_points(TETRAHEDRON, 9, seed=21), points[:9])


@pytest.mark.parametrize("power", [-100, -37, 36, 100])
def test_scale_changes_nothing_but_the_scale(sampler, power):
    """Powers of two, so that every rounding is the same: 2^-37 is about 1e-11, 2^36 about 1e11."""
    scaled = Mesh(np.ldexp(TETRAHEDRON.vertices, power), TETRAHEDRON.faces)
    points, normals = sample_points(TETRAHEDRON, 50, seed=5, sampler=sampler, normals=True)
    scaled_points, scaled_normals = sample_points(scaled, 50, seed=5, sampler=sampler, normals=True)
    np.testing.assert_array_equal(scaled_points, np.ldexp(points, power))
    np.testing.assert_array_equal(scaled_normals, normals)


def test_faces_without_area_get_no_points(sampler):
    """A point, a segment and a flat triangle, before, between and after two faces of area; they alone reach x > 1."""
    vertices = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [5, 5, 5], [7, 7, 7], [1e20, 1e20, 1e20]], float)
    faces = np.array([[4, 4, 4], [4, 5, 6], [0, 1, 2], [4, 5, 5], [1, 3, 2], [6, 5, 4], [5, 5, 5]])
    points, normals = sample_points(Mesh(vertices, faces), 1000, seed=0, sampler=sampler, normals=True)
    assert points.max() <= 1
    np.testing.assert_array_equal(normals, np.tile(np.float32([0, 0, 1]), (1000, 1)))


def test_even_samplers_keep_points_apart(sampler):
    apart = least_distance(sample_points(TETRAHEDRON, 100, seed=0, sampler=sampler))
    assert sampler == "uniform" or apart > 5 * least_distance(sample_points(TETRAHEDRON, 100, seed=0))


@pytest.mark.parametrize("scale", [1, 1e-300, 1e-200, 1e200])
def test_farthest_points_are_those_of_the_definition_at_any_scale(scale):
    points = np.random.default_rng(0).normal(size=(60, 3))
    chosen = [11]
    while len(chosen) < 20:
        chosen.append(max(range(60), key=lambda i: min(np.linalg.norm(points[i] - points[j]) for j in chosen)))
    np.testing.assert_array_equal(farthest_points(points * scale, 20, start=11), chosen)


def test_farthest_points_of_copies_are_chosen_once_each():
    points = np.repeat(np.eye(3), 2, axis=0)
    assert sorted(farthest_points(points, 6, start=3).tolist()) == list(range(6))


TRIANGLE = np.eye(3)
BAD_MESHES: dict[str, tuple[np.ndarray, list[list[int]], str]] = {
    "all on a line": (np.outer([0, 1, 3], [1, 2, 3]), [[0, 1, 2], [0, 0, 1]], "no area .*degenerate, 2 in all"),
    "all one point": (np.ones((3, 3)), [[0, 1, 2]], "no area .*degenerate, 1 in all"),
    "too large": (TRIANGLE * 1e39, [[0, 1, 2]], r"1e\+39, too large for float32"),
    "too small": (TRIANGLE * 1e-200, [[0, 1, 2]], "no area .*degenerate, 1 in all"),
    "far too large": ((TRIANGLE - 0.5) * 1.5e308, [[0, 1, 2]], r"7.5e\+307, too large for float32"),
}


@pytest.mark.parametrize(("vertices", "faces", "words"), BAD_MESHES.values(), ids=BAD_MESHES)
def test_meshes_that_cannot_be_sampled_are_told_why(vertices, faces, words):
    with pytest.raises(MeshError, match=words):
        sample_points(Mesh(vertices, np.array(faces)), 5, seed=0)


def test_a_mesh_at_map_coordinates_is_moved_before_it_is_rounded(tmp_path):
    utm = np.array([694_381.2, 5_155_482.5, 378.5])
    near, far = Mesh(TRIANGLE * 10, np.array([[0, 1, 2]])), Mesh(TRIANGLE * 10 + utm, np.array([[0, 1, 2]]))
    expected = sample_points(near, 500, seed=0)
    np.testing.assert_allclose(sample_points(far, 500, seed=0), expected, atol=1e-5)
    lines = ["OFF", "3 1 0", *(" ".join(map(repr, row)) for row in far.vertices.tolist()), "3 0 1 2"]
    (tmp_path / "a.off").write_text("\n".join(lines))
    mesh = read_mesh(tmp_path / "a.off")
    assert mesh.corner == pytest.approx(tuple(utm))
    np.testing.assert_allclose(mesh.vertices + mesh.corner, far.vertices, atol=1e-6)
    np.testing.assert_allclose(sample_points(mesh, 500, seed=0), expected, atol=1e-5)


def test_a_shapes_seed_depends_on_its_name_and_never_changes():
    assert seed_for(0, "chair/train/chair_0001") == 4308994711990826577
    assert seed_for(1, "chair/train/chair_0001") == 5332006886341711187
    assert len({seed_for(seed, name) for seed in range(3) for name in "abc"}) == 9


@pytest.mark.parametrize("sampler", ["uniform", "fps"])
def test_a_cloud_is_thinned_by_its_own_points(sampler):
    cloud = np.random.default_rng(0).normal(size=(300, 3))
    chosen = downsample(cloud, 40, seed=5, sampler=sampler)
    assert len(set(chosen.tolist())) == 40
    assert chosen.tolist() == downsample(cloud.tolist(), 40, seed=5, sampler=sampler).tolist()
    assert chosen.tolist() != downsample(cloud, 40, seed=6, sampler=sampler).tolist()
    assert sorted(downsample(cloud, 300, seed=0, sampler=sampler).tolist()) == list(range(300))
