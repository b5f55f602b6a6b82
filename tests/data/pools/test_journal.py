"""The journal of a build: a few append-only files for any number of shapes, of which only intact lines count."""

from pathlib import Path

import numpy as np
import pytest
from building import plan_of

from pointset.data.pools.journal import LINES, Finished, Journal
from pointset.data.pools.partial import PartialPool, partial_folder
from pointset.data.pools.shapes import make_shape
from pointset.data.pools.sources import Source
from pointset.errors import PointsetError

SIZES = [5, 3, 7, 2]


def arrays_of(size: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(size)
    return {"points": rng.random((size, 3), np.float32), "features": rng.random((size, 2), np.float32)}


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """Four shapes, the last one first."""
    found = Journal(tmp_path, ("points", "features"))
    for row, size in reversed(list(enumerate(SIZES))):
        found.add(row, Source(size, 10 * size, "digest"), arrays_of(size))
    return found


def rows(journal: Journal) -> list[int]:
    return [shape.row for shape in journal.read()]


def test_a_pool_in_the_making_has_a_handful_of_files(home: Path, meshes: Path) -> None:
    plan = plan_of(meshes)
    partial_folder(plan.folder).parent.mkdir(parents=True)
    partial = PartialPool(plan)
    for job in enumerate(plan.shapes):
        partial.write(make_shape(job, plan.sampling))
    assert {path.name for path in partial.folder.iterdir()} == {LINES, "points.f32", "normals.f32"}
    assert PartialPool(plan).finished == partial.finished


def test_shapes_come_back_in_any_order(journal: Journal) -> None:
    shapes = list(journal.read())
    assert [(shape.row, shape.source) for shape in shapes] == [
        (row, Source(SIZES[row], 10 * SIZES[row], "digest")) for row in (3, 2, 1, 0)
    ]
    for name in ("points", "features"):
        blocks = journal.blocks(name, sorted(shapes, key=lambda shape: shape.row))
        assert list(blocks) == [arrays_of(size)[name].tobytes() for size in SIZES]


@pytest.mark.parametrize("left", range(1, 60, 7))
def test_a_line_that_was_cut_off_does_not_count_and_spoils_no_other(
    journal: Journal, tmp_path: Path, left: int
) -> None:
    lines = (tmp_path / LINES).read_bytes()
    (tmp_path / LINES).write_bytes(lines[: lines.rindex(b"\n", 0, -1) + 1 + left])
    assert rows(journal) == [3, 2, 1]
    journal.add(0, Source(0, 0, None), arrays_of(4))
    assert rows(journal) == [3, 2, 1, 0]


def test_a_line_without_its_end_counts(journal: Journal, tmp_path: Path) -> None:
    (tmp_path / LINES).write_bytes((tmp_path / LINES).read_bytes()[:-1])
    assert rows(journal) == [3, 2, 1, 0]
    journal.add(4, Source(0, 0, None), arrays_of(4))
    assert rows(journal) == [3, 2, 1, 0, 4]


@pytest.mark.parametrize("name", ["points", "features"])
def test_damaged_points_do_not_count(journal: Journal, tmp_path: Path, name: str) -> None:
    shapes, path = list(journal.read()), tmp_path / f"{name}.f32"
    content = bytearray(path.read_bytes())
    content[shapes[1].blocks[name].start + 3] ^= 1
    path.write_bytes(content)
    assert rows(journal) == [3, 1, 0]
    with pytest.raises(PointsetError, match=rf"{name}\.f32 is damaged at byte .*run the command again"):
        list(journal.blocks(name, shapes))
    path.write_bytes(content[:-1])
    assert rows(journal) == [3, 1]
    path.unlink()
    assert rows(journal) == []


def test_every_damaged_byte_of_a_line_is_seen() -> None:
    line = Finished(1, Source(2, 3, "digest"), {}).line()
    for place in range(len(line) - 1):
        assert Finished.of(line[:place] + bytes([line[place] ^ 1]) + line[place + 1 :]) is None
