"""`pointset export`: files, and one line for a mistake."""

import json
from pathlib import Path

import pytest
from command_line import fail, succeed
from toy import train_run


@pytest.fixture(scope="module")
def run(clouds_folder, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "rff"
    train_run(folder, clouds_folder, "rff-max", dim=16, layers=2)
    return folder


@pytest.mark.slow
def test_onnx_with_a_mask_for_programs(run, tmp_path, capsys):
    output = tmp_path / "model.onnx"
    facts = json.loads(succeed(capsys, "export", "--model", run, "-o", output, "--mask", "--json"))
    assert facts["output"] == str(output)
    assert facts["bytes"] == output.stat().st_size
    assert 0 < facts["difference"] <= facts["bound"] == 16 * facts["rounding"] < 1e-4
    assert facts["checked"] == [[1, 1], [3, 1], [1, 100], [3, 100], [1, 1500], [3, 1500]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "model.h5"], ".pt2 or .onnx, got model.h5"),
        (["-o", "no/such/folder/model.onnx"], "the folder no/such/folder does not exist"),
        ([], "--out"),
    ],
)
def test_mistakes_are_one_line_and_write_nothing(arguments, words, run, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert words in fail(capsys, "export", "--model", run, *arguments)
    assert list(tmp_path.iterdir()) == []
