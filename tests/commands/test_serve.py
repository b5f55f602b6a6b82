"""`pointset serve`: the answers of the command line over HTTP, and uploads that mean harm."""

import io
import json
import re
import signal
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import requests
import trimesh
from command_line import fail, succeed
from fastapi.testclient import TestClient

from pointset.commands import serve
from pointset.runs.answering import Answering

pytestmark = pytest.mark.slow
LARGEST, SECONDS = 400_000, 30.0


@pytest.fixture(scope="module")
def processes(isab_run) -> Iterator[Answering]:
    processes = Answering(partial(serve.ServedModel, str(isab_run), 1), 1, SECONDS)
    yield processes
    processes.end()


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("uploads")


@pytest.fixture(scope="module")
def client(processes, folder) -> Iterator[TestClient]:
    with TestClient(serve.make_app(processes, folder, LARGEST, SECONDS)) as client:
        yield client


def obj(words: str = "") -> bytes:
    return (words + trimesh.creation.box((1, 2, 3)).export(file_type="obj")).encode()


def gltf(uri: str) -> bytes:
    files = trimesh.creation.box().export(file_type="gltf")
    document = json.loads(files["model.gltf"])
    document["buffers"] = [{"uri": uri, "byteLength": 10}]
    return json.dumps(document).encode()


def bomb() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("points.npy", bytes(20_000_000))
    return content.getvalue()


def post(client: Any, name: str, content: bytes, **query: Any) -> Any:
    return client.post("/classify", files={"file": (name, content)}, params=query)


def test_an_answer_is_that_of_the_command_line(client, isab_run, folder, tmp_path, capsys):
    scan = io.BytesIO()
    np.save(scan, np.random.default_rng(0).normal(size=(90, 3)))
    for name, content, query in (("a.npy", scan.getvalue(), {}), ("b.obj", obj(), {"up": "z"})):
        (tmp_path / name).write_bytes(content)
        flags = [word for key, value in query.items() for word in (f"--{key}", value)]
        printed = succeed(capsys, "classify", tmp_path / name, "--model", isab_run, "--json", *flags)
        (expected,) = json.loads(printed)["predictions"]
        answer = post(client, name, content, **query).json()
        assert answer.pop("page").startswith("http://testserver/pages/")
        assert answer.pop("warnings") == []
        assert answer == {key: value for key, value in expected.items() if key != "true_class"} | {"name": name}
    assert not list(folder.iterdir()), "uploads are deleted"


def test_the_page_of_a_shape_runs_the_model(client, monkeypatch):
    page = post(client, "<b>.obj", obj()).json()["page"]
    html = client.get(page).text
    assert "isab4-pma" in html
    assert "<b>.obj" not in html
    monkeypatch.setattr(serve, "MOST_PAGES", 1)
    later = post(client, "b.obj", obj()).json()["page"]
    assert client.get(later).status_code == 200
    post(client, "c.obj", obj())
    assert client.get(later).status_code == 404


def test_warnings_name_what_was_changed(client):
    far = io.BytesIO()
    np.save(far, np.concatenate([np.random.default_rng(0).normal(size=(900, 3)), np.full((1, 3), 1e4)]))
    (warning,) = post(client, "far.npy", far.getvalue()).json()["warnings"]
    assert re.match(r"far\.npy: 1 of 901 points", warning)
    assert post(client, "far.npy", far.getvalue(), keep_outliers=True).json()["warnings"] == []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("cut.off", b"OFF\n8 6 0\n0 0 0\n"),
        ("nan.npy", b"\x93NUMPY"),
        ("text.csv", b"x,y,z\n1,2,three\n"),
        ("objects.npz", zipfile.ZipFile.__doc__.encode()),  # type: ignore[union-attr]
        ("empty.ply", b""),
        ("house.step", b"ISO-10303-21;"),
    ],
)
def test_a_bad_upload_gets_the_sentence_of_the_command_line(
    name, content, client, isab_run, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(content)
    said = fail(capsys, "classify", name, "--model", isab_run).removeprefix("pointset: ").strip()
    response = post(client, name, content)
    assert response.status_code == (415 if name == "house.step" else 422)
    detail = response.json()["detail"]
    if name == "house.step":  # a server reads fewer formats
        said, detail = said.partition(" in one of ")[0], detail.partition(" in one of ")[0]
    assert detail == said


@pytest.mark.parametrize(
    ("name", "content", "status"),
    [
        ("a.gltf", gltf("../../../../../../etc/passwd"), 422),
        ("a.gltf", gltf("data:/../../../../../etc/passwd"), 422),
        ("a.npz", bomb(), 422),
        ("a.dae", b"<COLLADA/>", 415),
        ("passwd", b"root", 415),
        ("a.obj", bytes(LARGEST), 413),
        ("../../../etc/passwd.obj", obj("mtllib /etc/passwd\nmtllib ../../../etc/passwd\n"), 200),
        ("..\\..\\windows\\win.obj", obj(), 200),
        ("/etc/passwd.ply", trimesh.creation.box().export(file_type="ply", encoding="ascii"), 200),
    ],
)
def test_no_upload_reads_other_files_or_unpacks_without_end(name, content, status, client, folder):
    response = post(client, name, content)
    assert response.status_code == status
    assert "root:" not in response.text
    assert str(folder) not in response.text
    assert not list(folder.iterdir())
    if status == 200:
        assert response.json()["name"] in ("passwd.obj", "win.obj", "passwd.ply")


def test_a_request_without_a_file_is_told_what_lacks(client):
    assert client.post("/classify").json()["detail"].startswith("file: ")
    assert "'y'" in post(client, "a.obj", obj(), up="x").json()["detail"]


def test_a_process_that_takes_too_long_or_ends_is_replaced(client, processes):
    processes.seconds = 0.0
    response = post(client, "slow.obj", obj())
    assert (response.status_code, response.json()["detail"].startswith("slow.obj: took longer")) == (504, True)
    processes.seconds = SECONDS
    assert post(client, "a.obj", obj()).status_code == 200
    for child in psutil.Process().children():
        if "spawn_main" in " ".join(child.cmdline()):
            child.kill()
    assert post(client, "a.obj", obj()).status_code == 500
    assert post(client, "a.obj", obj()).status_code == 200


@pytest.fixture(scope="module")
def server(isab_run) -> Iterator[tuple[str, psutil.Process]]:
    limits = ["--port", "0", "--workers", "1", "--megabytes", "0.4", "--seconds", "2"]
    command = [sys.executable, "-m", "pointset.cli", "serve", "--model", str(isab_run), *limits]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = re.search(r"http://\S+", process.stdout.readline())
        assert address is not None
        yield address[0], psutil.Process(process.pid)
        children = psutil.Process(process.pid).children()
        process.send_signal(signal.SIGTERM)
        process.wait(20)
        assert not psutil.wait_procs(children, timeout=5)[1], "its processes end with it"


def test_many_requests_at_once_are_answered_and_keep_nothing(server):
    address, process = server

    def memory() -> float:
        return sum(each.memory_info().rss for each in [process, *process.children()])

    def ask(_: int) -> int:
        return requests.post(f"{address}/classify", files={"file": ("a.obj", obj())}, timeout=120).status_code

    with ThreadPoolExecutor(50) as threads:
        assert {*threads.map(ask, range(110))} == {200}  # so that the pages that are kept are there
        before = memory()
        assert {*threads.map(ask, range(110))} == {200}
    assert memory() - before < 20e6
    assert requests.get(f"{address}/health", timeout=20).json()["status"] == "ok"
    assert "/classify" in requests.get(f"{address}/openapi.json", timeout=20).json()["paths"]
    assert requests.get(f"{address}/docs", timeout=20).ok


def test_a_slow_upload_and_one_of_unknown_size_are_refused(server):
    address, _ = server
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(
            b"POST /classify HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=x\r\n"
            b"Content-Length: 1000\r\n\r\n--x\r\n"
        )
        start = time.monotonic()
        assert b" 408 " in connection.recv(100)
        assert time.monotonic() - start < 10
    head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.obj"\r\n\r\n'
    pieces = iter([head, *[b"v" * 100_000] * 5])
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    response = requests.post(f"{address}/classify", data=pieces, headers=headers, timeout=20)
    assert response.status_code == 413


def test_a_wrong_model_port_or_limit_is_one_line(capsys, server, tmp_path, monkeypatch):
    assert "no_such" in fail(capsys, "serve", "--model", tmp_path / "no_such", "--port", "0", "--workers", "1")
    assert "--port" in fail(capsys, "serve", "--port", server[0].rpartition(":")[2])
    assert "seconds" in fail(capsys, "serve", "--seconds", "0")
    monkeypatch.setitem(sys.modules, "fastapi", None)
    monkeypatch.delitem(sys.modules, "fastapi")
    monkeypatch.setattr("pointset.errors.find_spec", lambda name: None)
    assert "pip install 'pointset-learn[serve]'" in fail(capsys, "serve")


def test_the_form_shows_answers_and_refusals_in_the_page(server, tmp_path, browser):
    (tmp_path / "box.obj").write_bytes(obj())
    (tmp_path / "a.step").write_text("ISO-10303-21;")
    tab = browser.new_page()
    tab.goto(server[0])
    tab.set_input_files("#file", tmp_path / "box.obj")
    tab.focus("#send")
    tab.keyboard.press("Enter")
    tab.locator("#page").wait_for()
    assert tab.locator("#answer li").count() > 1
    assert tab.inner_text("#state").startswith("box.obj: ")
    tab.set_input_files("#file", tmp_path / "a.step")
    tab.click("#send")
    tab.locator("#fault:not(:empty)").wait_for()
    assert "a.step" in tab.inner_text("#fault")
    assert tab.locator("#answer li").count() == 0
    tab.close()
