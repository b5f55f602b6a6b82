"""`pointset attend`: from a mesh file to a picture in every format, the prediction, and one line for a mistake."""

import base64
import json
import re
from pathlib import Path

import pytest
from command_line import asked, succeed

BOX = "OFF\n4 4 0\n0 0 0\n2 0 0\n0 1 0\n0 0 1\n3 0 2 1\n3 0 1 3\n3 1 2 3\n3 0 3 2\n"


@pytest.fixture
def shape(tmp_path) -> Path:
    (tmp_path / "box.off").write_text(BOX)
    return tmp_path / "box.off"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("box.html", b"<!doctype html>"),
        ("box.png", b"\x89PNG"),
        ("box.svg", b"<?xml"),
        ("box.pdf", b"%pdf"),
        ("box.ply", b"ply\n"),
        ("box.glb", b"glTF"),
    ],
)
def test_every_format_is_written(name, begins, isab_run, shape, tmp_path, capsys):
    output = tmp_path / name
    printed = succeed(capsys, "attend", shape, "--model", isab_run, "-o", output, "--points", "60")
    assert output.read_bytes()[:20].lower().startswith(begins.lower())
    assert printed.startswith("box.off: ")
    assert "%)" in printed
    assert f"saved in {output}" in printed


def test_the_prediction_and_the_layers_are_there_for_programs(isab_run, shape, tmp_path, capsys):
    output = tmp_path / "box.png"
    options = ("--layer", "encoder.0.reads", "--head", "1", "--query", "3", "--json")
    found = json.loads(succeed(capsys, "attend", shape, "--model", isab_run, "-o", output, "--points", "60", *options))
    assert found["prediction"] in ("ball", "box", "rod")
    assert 1 / 3 <= found["confidence"] <= 1
    assert found["layers"][0] == {"layer": "encoder.0.reads", "kind": "reads", "shape": [2, 4, 60]}


def test_explanations_are_checked(isab_run, shape, tmp_path, capsys):
    command = ("attend", shape, "--model", isab_run, "-o", tmp_path / "box.html", "--points", "60", "--check")
    assert "occlusion" in succeed(capsys, *command)
    assert "occlusion (" in (tmp_path / "box.html").read_text()
    checks = asked(capsys, *command)["checks"]
    assert {"attention", "occlusion", "random"} <= set(checks)
    assert all(0 <= area <= 1 for areas in checks.values() for area in areas.values())


def test_a_living_page_has_the_model_in_it(isab_run, shape, tmp_path, capsys):
    output = tmp_path / "live.html"
    found = asked(capsys, "attend", shape, "--model", isab_run, "-o", output, "--live")
    assert found["output"] == str(output)
    content = json.loads(re.search(r'<script id="data" type="application/json">(.*)</script>', output.read_text())[1])
    assert [model["classes"] for model in content["models"]] == [["ball", "box", "rod"]]
    assert content["shapes"][0]["name"] == "box.off"
    assert len(base64.b64decode(content["shapes"][0]["points"])) == 24 * 3 * 2
