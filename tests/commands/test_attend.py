"""`pointset attend`: from a mesh file to a picture in every format, the prediction, and one line for a mistake."""

import base64
import json
import re
from pathlib import Path

import numpy as np
import pytest
from command_line import fail, succeed
from toy import train_run

BOX = """OFF
8 6 12
0 0 0
2 0 0
2 1 0
0 1 0
0 0 1
2 0 1
2 1 1
0 1 1
4 0 1 2 3
4 4 5 6 7
4 0 1 5 4
4 1 2 6 5
4 2 3 7 6
4 3 0 4 7
"""


@pytest.fixture(scope="module")
def run(clouds_folder, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "isab"
    train_run(folder, clouds_folder, "isab4-pma", 24, dim=16, heads=2)
    return folder


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
        ("box.ply", b"ply\n"),
        ("box.glb", b"glTF"),
    ],
)
def test_every_format_is_written(name, begins, run, shape, tmp_path, capsys):
    output = tmp_path / name
    printed = succeed(capsys, "attend", shape, "--model", run, "-o", output, "--points", "60")
    assert output.read_bytes()[:20].lower().startswith(begins.lower())
    assert printed.startswith("box.off: ")
    assert "%)" in printed
    assert f"saved in {output}" in printed


def test_the_prediction_and_the_layers_are_there_for_programs(run, shape, tmp_path, capsys):
    output = tmp_path / "box.png"
    options = ("--layer", "encoder.0.reads", "--head", "1", "--query", "3", "--json")
    found = json.loads(succeed(capsys, "attend", shape, "--model", run, "-o", output, "--points", "60", *options))
    assert found["prediction"] in ("ball", "box", "rod")
    assert 1 / 3 <= found["confidence"] <= 1
    assert found["layers"][0] == {"layer": "encoder.0.reads", "kind": "reads", "shape": [2, 4, 60]}


def test_explanations_are_checked(run, shape, tmp_path, capsys):
    command = ("attend", shape, "--model", run, "-o", tmp_path / "box.html", "--points", "60", "--check")
    assert "occlusion" in succeed(capsys, *command)
    assert "occlusion (" in (tmp_path / "box.html").read_text()
    checks = json.loads(succeed(capsys, *command, "--json"))["checks"]
    assert {"attention", "occlusion", "random"} <= set(checks)
    assert all(0 <= area <= 1 for areas in checks.values() for area in areas.values())


@pytest.mark.slow
def test_one_map_is_another_picture_than_all(run, shape, tmp_path, capsys):
    pictures = []
    for options in ((), ("--head", "1"), ("--head", "1", "--query", "2"), ("--layer", "pool.pma.mab")):
        succeed(capsys, "attend", shape, "--model", run, "-o", tmp_path / "a.png", "--points", "60", *options)
        pictures.append((tmp_path / "a.png").read_bytes())
    assert len(set(pictures)) == 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "box.bmp"], "must end in .html or .png or .svg or .ply or .glb"),
        (["-o", "no/such/folder/box.png"], "the folder no/such/folder does not exist"),
        (
            ["-o", "box.png", "--layer", "encoder.7"],
            "no attention map has layer 'encoder.7': choose from encoder.0.reads",
        ),
        (["-o", "box.png", "--head", "2"], "has no head 2: give one from 0 to 1"),
        (["-o", "box.png", "--points", "0"], "points must be a whole number from 1 to 10,000,000, got 0"),
        (["-o", "box.html", "--live", "--head", "0"], "--head cannot be used with --live"),
        (["-o", "box.html", "--live", "--query", "0"], "--query cannot be used with --live"),
        (["-o", "box.html", "--live", "--points", "5000"], "--points must be at most 2,048 with --live, got 5,000"),
        (
            ["-o", "box.html", "--live", "--layer", "no", "--head", "99"],
            "--layer and --head cannot be used with --live",
        ),
        (["-o", "box.ply", "--query", "9"], "has no inducing point 9: give one from 0 to 3"),
    ],
)
def test_mistakes_are_one_line_and_write_nothing(arguments, words, run, shape, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    few = [] if "--points" in arguments else ["--points", "60"]
    assert words in fail(capsys, "attend", shape, "--model", run, *few, *arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["box.off"]


def test_a_living_page_has_the_model_in_it(run, shape, tmp_path, capsys):
    output = tmp_path / "live.html"
    found = json.loads(succeed(capsys, "attend", shape, "--model", run, "-o", output, "--live", "--json"))
    assert found["output"] == str(output)
    content = json.loads(re.search(r'<script id="data" type="application/json">(.*)</script>', output.read_text())[1])
    assert [model["classes"] for model in content["models"]] == [["ball", "box", "rod"]]
    assert content["shapes"][0]["name"] == "box.off"
    assert len(base64.b64decode(content["shapes"][0]["points"])) == 2048 * 3 * 2
    assert "must end in .html" in fail(capsys, "attend", shape, "--model", run, "-o", tmp_path / "a.png", "--live")


@pytest.mark.parametrize("name", ["box.png", "box.ply"])
def test_a_cloud_will_do_for_a_mesh(name, run, tmp_path, capsys):
    points = np.random.default_rng(0).normal(size=(90, 3))
    np.savetxt(tmp_path / "cloud.xyz", points)
    succeed(capsys, "attend", tmp_path / "cloud.xyz", "--model", run, "-o", tmp_path / name, "--points", "60")
    assert (tmp_path / name).stat().st_size > 500


def test_a_broken_mesh_and_a_model_without_attention_are_named(run, shape, clouds_folder, tmp_path, capsys):
    broken = tmp_path / "broken.off"
    broken.write_text("OFF\n3 1 0\n0 0 0\n")
    assert "broken.off" in fail(capsys, "attend", broken, "--model", run)
    assert f"{tmp_path}: is a folder, but a file is read" in fail(capsys, "attend", tmp_path, "--model", run)
    assert "gone: the file or folder does not exist" in fail(capsys, "attend", tmp_path / "gone", "--model", run)
    np.savetxt(tmp_path / "heap.xyz", np.ones((9, 3)))
    assert "heap.xyz: the cloud has no extent" in fail(capsys, "attend", tmp_path / "heap.xyz", "--model", run)
    train_run(tmp_path / "plain", clouds_folder, "rff-max", 24, dim=16)
    assert "rff-max has no attention maps" in fail(capsys, "attend", shape, "--model", tmp_path / "plain")
    assert "is not a run" in fail(capsys, "attend", shape, "--model", tmp_path)
    assert "is not a run" in fail(capsys, "attend", shape, "--model", "")
