"""Does `pointset data check` find what was planted: swapped labels, and twins of every kind? And how long does it take?

python scripts/experiments/planted.py path/to/labeled_db path/to/modelnet40_ply_hdf5    # writes results/planted/

5 % of the labels of labeled_db, and of 20 shapes of each class of ModelNet40, are swapped at random, fifteen times. In
labeled_db 20 twins of each kind are planted. A false alarm is a pair of different shapes of labeled_db, or of
ModelNet40 clouds, that is called the same; pairs that somebody may call the same (copies in the data) count as false
too.
"""

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import trimesh

import pointset
from pointset.checking.check import Check
from pointset.data import read_mesh
from pointset.runs.spreadsheets import as_csv

SWAPPED, PLANTED, OF_EACH, SEEDS = 0.05, 20, 20, 15
RESULTS = Path(__file__).parent / "results" / "planted"
FIRST = 0.1
"""Share of the shapes that a user looks at."""


def turn_of(seed: int) -> np.ndarray:
    """A random rotation."""
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    return turn * np.linalg.det(turn)


def refined(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same surface with other triangles: each is cut at its centre."""
    centres = vertices[faces].mean(axis=1)
    new = np.arange(len(vertices), len(vertices) + len(faces))
    parts = [np.stack([faces[:, one], faces[:, other], new], axis=1) for one, other in ((0, 1), (1, 2), (2, 0))]
    return np.concatenate([vertices, centres]), np.concatenate(parts)


TWINS: dict[str, Callable[[np.ndarray, np.ndarray, int], tuple[np.ndarray, np.ndarray]]] = {
    "another format": lambda v, f, seed: (v, f),
    "rescaled": lambda v, f, seed: (v * 25.4, f),
    "mirrored": lambda v, f, seed: (v * [-1, 1, 1], f[:, ::-1]),
    "turned": lambda v, f, seed: (v @ turn_of(seed), f),
    "other triangles": lambda v, f, seed: refined(v, f),
}


def swap_labels(folder: Path, generator: np.random.Generator) -> set[str]:
    """Move some files into the folder of another class; returns their new names."""
    files, classes = sorted(folder.glob("*/*")), sorted(path.name for path in folder.iterdir())
    moved = set()
    for place in generator.permutation(len(files))[: round(SWAPPED * len(files))]:
        file = files[place]
        other = str(generator.choice([name for name in classes if name != file.parent.name]))
        target = folder / other / f"{file.parent.name}_{file.name}"
        file.rename(target)
        moved.add(f"{other}/{target.name}")
    return moved


def swapped(name: str, folder: Path, seed: int) -> dict[str, Any]:
    """How many of the swapped are among the first suspects of labels."""
    moved = swap_labels(folder, np.random.default_rng(seed))
    began, cpu = time.perf_counter(), time.process_time()
    check = pointset.check_data(folder, progress=False)
    suspects, count = [each.file for each in check.of("label")], len(check.shapes.names)
    found = {share: len(moved & {*suspects[: round(share * count)]}) for share in (SWAPPED, FIRST)}
    return {
        "data": name,
        "seed": seed,
        "shapes": count,
        "swapped": len(moved),
        "suspects": len(suspects),
        "found in the first 5 %": found[SWAPPED],
        "found in the first 10 %": found[FIRST],
        "seconds": f"{time.perf_counter() - began:.0f}",
        "core-seconds": f"{time.process_time() - cpu:.0f}",
    }


def plant(folder: Path, generator: np.random.Generator) -> dict[str, tuple[str, str]]:
    """Add twins; returns for each file its kind and its original."""
    files = sorted(folder.glob("*/*.off"))
    planted = {}
    for kind in ("identical", *TWINS):
        for place in generator.permutation(len(files))[:PLANTED]:
            file = files[place]
            copy = file.with_name(f"planted_{kind.replace(' ', '_')}_{file.stem}.off")
            if kind == "identical":
                shutil.copy(file, copy)
            else:
                mesh = read_mesh(file)
                vertices, faces = TWINS[kind](mesh.vertices, mesh.faces, int(place))
                copy = copy.with_suffix(".obj") if kind == "another format" else copy
                trimesh.Trimesh(vertices, faces, process=False).export(copy)
            planted[f"{file.parent.name}/{copy.name}"] = (kind, f"{file.parent.name}/{file.name}")
    return planted


def twin_rows(check: Check, planted: dict[str, tuple[str, str]]) -> list[dict[str, Any]]:
    """How many of each kind were found, and called what."""
    rows = []
    pairs = {each.file for each in check.suspects if each.twin and each.kind != "label"}
    pairs |= {each.twin for each in check.suspects if each.twin and each.kind != "label"}
    for kind in ("identical", *TWINS):
        own = [name for name, (planted_kind, _) in planted.items() if planted_kind == kind]
        called = [each.kind for each in check.suspects if each.file in own and each.kind != "label" and each.twin]
        names = ", ".join(f"{called.count(name)} {name}" for name in dict.fromkeys(called))
        rows.append({"kind": kind, "planted": len(own), "found": len({*own} & pairs), "called": names})
    return rows


def false_alarms(name: str, check: Check) -> dict[str, Any]:
    """Pairs of different shapes that are called the same."""
    count = len(check.shapes.names)
    return {
        "data": name,
        "shapes": count,
        "pairs": count * (count - 1) // 2,
        "fitted": check.compared,
        "called the same": check.same,
        "of 1,000 pairs": f"{1000 * check.same / (count * (count - 1) / 2):.3f}",
    }


def modelnet_clouds(release: Path, folder: Path) -> Path:
    """Some training clouds of each class of ModelNet40, as files."""
    sets = pointset.load_dataset(release, normalize="none")
    for label, name in enumerate(sets.classes):
        (folder / name).mkdir(parents=True)
        for number in np.flatnonzero(sets.labels.numpy() == label)[:OF_EACH].tolist():
            np.save(folder / name / f"{number}.npy", sets.points[number].numpy())
    return folder


def save(name: str, rows: list[dict[str, Any]]) -> None:
    """Write a table, and print it."""
    (RESULTS / f"{name}.csv").write_text(as_csv(rows), encoding="utf-8")
    print(as_csv(rows), flush=True)


def main() -> None:
    """Write all tables."""
    labeled, release = map(Path, sys.argv[1:])
    RESULTS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        clouds = modelnet_clouds(release, home / "modelnet40")
        sources = {"labeled_db": labeled, f"ModelNet40, {OF_EACH} of a class": clouds}
        rows = []
        for name, source in sources.items():
            for seed in range(SEEDS):
                rows.append(swapped(name, shutil.copytree(source, home / f"{source.name}_{seed}"), seed))
                save("labels", rows)
        checks = {name: pointset.check_data(source, progress=False) for name, source in sources.items()}
        save("false_alarms", [false_alarms(name, check) for name, check in checks.items()])
        folder = shutil.copytree(labeled, home / "twins")
        planted = plant(folder, np.random.default_rng(0))
        save("twins", twin_rows(pointset.check_data(folder, progress=False), planted))


if __name__ == "__main__":
    main()
