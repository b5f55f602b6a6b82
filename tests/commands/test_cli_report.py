"""`pointset compare --report`: a report of the finished runs, made from the folders alone."""

import shutil
from pathlib import Path

import pytest
from command_line import succeed

from pointset.cli import main
from pointset.runs import digests

pytestmark = pytest.mark.slow

TINY = [
    "--models", "rff-max", "rff-mean", "--seeds", "0", "--points", "8", "--pool-points", "16", "--dim", "4",
    "--epochs", "1", "--batch-size", "64", "--workers", "1",
]  # fmt: skip


@pytest.fixture(scope="module")
def compared(clouds_folder, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("compared") / "runs"
    main(["compare", "--data", str(clouds_folder), *TINY, "--out", str(folder), "--json"])
    return folder


@pytest.fixture
def flags(compared, clouds_folder, tmp_path) -> list[object]:
    """The flags for a copy of the folder, `tmp_path / "copy"`."""
    shutil.copytree(compared, tmp_path / "copy")
    return ["--data", clouds_folder, *TINY, "--out", tmp_path / "copy"]


def test_the_report_is_made_anew_and_nothing_is_run(capsys, compared, flags, tmp_path):
    copy = tmp_path / "copy"
    written = {path: path.stat().st_mtime_ns for path in (copy / "runs").rglob("*") if path.is_file()}
    (copy / "report.html").unlink()
    digests.write(copy / "figures" / "learning-curves-n8.png", b"of a report by an earlier version")
    said = succeed(capsys, "compare", *flags, "--report")
    assert {path: path.stat().st_mtime_ns for path in written} == written
    page = (copy / "report.html").read_text(encoding="utf-8")
    assert "<h1>2 models on " in page, "the file's title speaks of other models and data"
    assert " --report" not in page, "the command repeats the runs"
    assert "seeds as blocks" not in page, "there is one seed"
    assert f"saved in {copy}: report.html" in said
    assert not (copy / "figures" / "learning-curves-n8.png").exists()
    assert (copy / "results.csv").read_bytes() == (compared / "results.csv").read_bytes()
