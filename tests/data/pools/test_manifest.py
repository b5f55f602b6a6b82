"""The time for reading the manifest of a pool is proportional to the number of shapes."""

from collections.abc import Iterator
from pathlib import Path

from pointset.data.pools.manifest import Entry, Manifest, Source
from pointset.data.pools.plan import Sampling

SHAPES = 200


class Counted(tuple[Entry, ...]):
    """Entries that count how often they are iterated."""

    passes = 0

    def __iter__(self) -> Iterator[Entry]:
        type(self).passes += 1
        return super().__iter__()


def test_the_work_for_many_shapes_grows_in_proportion(tmp_path: Path) -> None:
    points = {"points": "0" * 32}
    entries = [Entry(str(row), 0, f"/{row}", Source(1, 1, None), points, width=5) for row in range(SHAPES)]
    manifest = Manifest("/", ("a",), Sampling(4, features=("colors",)), Counted(entries))
    manifest.check_widths()
    for name in manifest.sampling.arrays:
        (tmp_path / f"{name}.npy").write_bytes(manifest.header(name) + bytes(SHAPES * 4 * 4 * manifest.width(name)))
    manifest.check_arrays(tmp_path)
    assert sum(map(manifest.width, ["features"] * SHAPES)) == 5 * SHAPES
    assert sum(manifest.sizes) == 4 * SHAPES
    assert Counted.passes < 5
