"""A home and a folder of meshes of its own for each test of the data layer that asks for them."""

import shutil
from pathlib import Path

import pytest
from building import COUNT, TETRAHEDRON, build, contents


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("POINTSET_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def meshes(tmp_path: Path) -> Path:
    folder = tmp_path / "my parts"
    for number in range(COUNT):
        split = "test" if number % 5 == 4 else "train"
        path = folder / f"class{number % 3}" / split / f"shape{number}.off"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TETRAHEDRON.format(size=number + 1))
    return folder


@pytest.fixture
def undisturbed(home: Path, meshes: Path) -> dict[str, bytes]:
    """What a build in this process writes; taken away again."""
    report = build(meshes, workers=1)
    assert (report.shapes, report.sampled, report.failures) == (COUNT, COUNT, {})
    whole = contents(home)
    assert len(whole) == 6
    shutil.rmtree(home)
    return whole
