"""Damage files of shapes at random, and compare the shapes that pointset, trimesh and Open3D read from them.

For a damaged file, pointset must raise an error of one sentence or read the same shape as trimesh or Open3D. Files that
only pointset reads are counted separately, because the other libraries may be stricter. From an undamaged file,
pointset must read the same shape as another library.

    python scripts/fuzz.py --files 1000 --seed 1
"""

import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import cyclopts
import numpy as np
import trimesh

from pointset import PointsetError
from pointset.data import read_cloud, read_mesh

app = cyclopts.App(name="fuzz.py", help=__doc__, result_action="return_value")
MESHES = ("off", "obj", "stl", "stl_ascii", "ply", "ply_ascii", "glb")
CLOUDS = ("npy", "xyz", "pcd", "pcd_ascii", "ply_points")
_process = ProcessPoolExecutor(1)
OUTCOMES = ("refused", "as others", "alone", "WRONG", "CRASH")


@app.default
def fuzz(*, files: int = 200, seed: int = 0, show: bool = False) -> int:
    """Print counts for each kind of file; exit code 1 for a crash, or if over 1 in 1,000 files of a kind is read wrong.

    Args:
        files: number of damaged files of each kind.
        seed: seed of the shapes and the damage.
        show: print a path to which each file is copied that crashes a reader or is read wrong.
    """
    bad = 0
    print("| kind |", " | ".join(OUTCOMES), "|")
    for kind in MESHES + CLOUDS:
        counts = check_kind(kind, files, seed, show)
        print(f"| {kind} |", " | ".join(str(counts[name]) for name in OUTCOMES), "|", flush=True)
        bad += counts["CRASH"] + (counts["WRONG"] > files / 1000)
    return int(bad > 0)


def check_kind(kind: str, files: int, seed: int, show: bool = False) -> Counter[str]:
    """Return how often each of `OUTCOMES` occurs for files of one kind.

    Raises:
        AssertionError: an undamaged file is not read, or is read differently from all other libraries.
    """
    rng, counts = np.random.default_rng((seed, (MESHES + CLOUDS).index(kind))), Counter[str]()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / f"a.{kind.partition('_')[0]}"
        for _ in range(files):
            write(kind, path, rng)
            content = path.read_bytes()
            assert outcome(kind, path) in ("as others", "alone"), f"an undamaged {kind} file is read wrong"
            path.write_bytes(damaged(content, rng))
            found = outcome(kind, path)
            counts[found] += 1
            if show and found in ("WRONG", "CRASH"):
                kept = Path(tempfile.gettempdir()) / f"fuzz-{kind}-{sum(counts.values())}{path.suffix}"
                kept.write_bytes(path.read_bytes())
                print(f"{found}: {kept}", file=sys.stderr)
    return counts


def write(kind: str, path: Path, rng: np.random.Generator) -> None:
    """Write a small random shape."""
    if kind in MESHES:
        mesh = trimesh.creation.box(rng.uniform(0.5, 2, 3)) if rng.random() < 0.5 else trimesh.creation.icosahedron()
        name, _, spelling = kind.partition("_")
        options = {"encoding": "ascii" if spelling else "binary"} if name == "ply" else {}
        mesh.export(path, file_type="stl_ascii" if kind == "stl_ascii" else name, **options)
        return
    points = rng.normal(size=(int(rng.integers(3, 20)), 3))
    if kind == "npy":
        np.save(path, points)
    elif kind == "xyz":
        np.savetxt(path, points)
    else:
        import open3d

        cloud = open3d.geometry.PointCloud(open3d.utility.Vector3dVector(points))
        open3d.io.write_point_cloud(path, cloud, write_ascii=kind.endswith("ascii"))


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Return the content cut off at a random place, or with a few bytes changed, deleted or repeated."""
    changed = bytearray(content)
    if rng.random() < 0.25:
        return bytes(changed[: rng.integers(len(changed))])
    for _ in range(rng.integers(1, 4)):
        place = int(rng.integers(len(changed)))
        match rng.integers(4):
            case 0:
                changed[place] = rng.integers(256)
            case 1:
                changed[place] = rng.choice(list(b"0123456789-. \n"))
            case 2:
                del changed[place : place + int(rng.integers(1, 9))]
            case _:
                changed[place:place] = changed[place : place + int(rng.integers(1, 30))]
        if not changed:
            break
    return bytes(changed)


def outcome(kind: str, path: Path) -> str:
    """Return the one of `OUTCOMES` that holds for a file."""
    try:
        own = corners(read_mesh(path)) if kind in MESHES else read_cloud(path).points.astype(np.float64)
    except PointsetError as error:
        return "refused" if str(path) in str(error) and "\n" not in str(error) else "CRASH"
    except Exception:
        return "CRASH"
    readers = (trimesh_mesh, open3d_mesh) if kind in MESHES else (open3d_cloud, numpy_cloud)
    others = [other for reader in readers if (other := tried(reader, path)) is not None]
    if any(other.shape == own.shape and np.allclose(other, own, rtol=1e-5, atol=1e-6) for other in others):
        return "as others"
    # A damaged polygon may cross itself and then has no unique triangulation: only the number of triangles is compared.
    polygons = kind in ("off", "obj") and any(len(other) == len(own) for other in others)
    return "WRONG" if others and not polygons else "alone"


def tried(read: Callable[[Path], np.ndarray], path: Path) -> np.ndarray | None:
    """Call another reader in a separate process; return None if it raises an error or reads an empty shape."""
    global _process
    try:
        found = _process.submit(read, path).result()
    except BrokenProcessPool:  # some damaged files crash the process in Open3D 0.19
        _process = ProcessPoolExecutor(1)
        return None
    except BaseException:
        return None
    return found if len(found) else None


def corners(mesh: Any) -> np.ndarray:
    """Return the triangles [F, 9] in an order that does not depend on their order in the file."""
    triangles = np.asarray(mesh.vertices)[np.asarray(mesh.faces)].astype(np.float64).reshape(-1, 9)
    return triangles[np.lexsort(triangles.round(4).T)]


def trimesh_mesh(path: Path) -> np.ndarray:
    """Return the triangles that trimesh reads."""
    return corners(trimesh.load_scene(path, process=False, skip_materials=True).to_mesh())


def open3d_mesh(path: Path) -> np.ndarray:
    """Return the triangles that Open3D reads."""
    import open3d

    open3d.utility.set_verbosity_level(open3d.utility.VerbosityLevel.Error)
    mesh = open3d.io.read_triangle_mesh(path)
    vertices, faces = np.asarray(mesh.vertices), np.asarray(mesh.triangles)
    return corners(trimesh.Trimesh(vertices, faces, process=False))


def open3d_cloud(path: Path) -> np.ndarray:
    """Return the points that Open3D reads, without those that are not finite."""
    import open3d

    open3d.utility.set_verbosity_level(open3d.utility.VerbosityLevel.Error)
    points = np.asarray(open3d.io.read_point_cloud(path).points)
    return points[np.isfinite(points).all(axis=1)]


def numpy_cloud(path: Path) -> np.ndarray:
    """Return the points that numpy reads, without those that are not finite."""
    points = np.load(path) if path.suffix == ".npy" else np.loadtxt(path)
    return points[np.isfinite(points[:, :3]).all(axis=1), :3]


if __name__ == "__main__":
    sys.exit(app())
