"""Damaged files of every kind are refused or read as other libraries read them; `scripts/fuzz.py` tries many more."""

import logging

import fuzz
import pytest


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("trimesh"), "disabled", True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", fuzz.MESHES + fuzz.CLOUDS)
def test_damaged_files_are_refused_or_read_as_by_others(kind: str) -> None:
    counts = fuzz.judge_kind(kind, 40, seed=0)
    assert counts["WRONG"] == counts["CRASH"] == 0
    assert counts["refused"] > 10


def test_the_fuzzer_sees_a_reader_that_shortens_files(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    def shortened(path):
        mesh = read_mesh(path)
        return type(mesh)(mesh.vertices, mesh.faces[:-1])

    read_mesh = fuzz.read_mesh
    monkeypatch.setattr(fuzz, "read_mesh", shortened)
    with pytest.raises(AssertionError, match="undamaged"):
        fuzz.judge_kind("stl", 1, seed=0)
