"""`pointset push` and `--model hub:...`, by the real client and command line, against a server of this process."""

import base64
import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pointset
from pointset.training.recipe import Recipe

pytest.importorskip("huggingface_hub")
pytestmark = pytest.mark.slow
COMMIT = "c" * 40


class Hub(BaseHTTPRequestHandler):
    """The endpoints of the hub that a small commit and a download need."""

    files: dict[str, bytes]
    created: dict[str, Any]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Authorization") != "Bearer secret":
            return self.answer(401, {"error": "Invalid credentials"})
        if self.path == "/api/repos/create":
            type(self).created = json.loads(body)
            return self.answer(200, {"url": f"http://{self.headers['Host']}/user/parts"})
        if self.path.endswith("/preupload/main"):
            names = [file["path"] for file in json.loads(body)["files"]]
            modes = [{"path": name, "uploadMode": "regular", "shouldIgnore": False} for name in names]
            return self.answer(200, {"files": modes})
        if self.path.startswith("/api/models/user/parts/commit/main"):
            for entry in map(json.loads, body.splitlines()):
                if entry["key"] == "file":
                    self.files[entry["value"]["path"]] = base64.b64decode(entry["value"]["content"])
            return self.answer(
                200, {"commitUrl": f"http://{self.headers['Host']}/user/parts/commit/{COMMIT}", "commitOid": COMMIT}
            )
        return self.answer(200, {"errors": [], "warnings": []})  # of the README's header

    def do_GET(self) -> None:
        kind, _, name = self.path.partition("/resolve/main/")
        if kind != "/user/parts":
            return self.answer(404, {}, {"X-Error-Code": "RepoNotFound"})
        if name not in self.files:
            return self.answer(404, {}, {"X-Error-Code": "EntryNotFound"})
        content = self.files[name]
        return self.answer(200, content, {"ETag": f'"{hashlib.sha256(content).hexdigest()}"', "X-Repo-Commit": COMMIT})

    do_HEAD = do_GET  # noqa: N815

    def answer(self, code: int, content: Any, headers: dict[str, str] | None = None) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(code)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Print nothing."""


@pytest.fixture
def hub() -> Iterator[tuple[type[Hub], str]]:
    handler = type("OneHub", (Hub,), {"files": {}, "created": {}})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield handler, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


PROGRAM = """
import json, sys
from pointset.cli import main
for arguments in json.loads(sys.argv[1]):
    try:
        main(arguments)
    except SystemExit as error:
        assert error.code == 2
    print(end="---")
"""


def run(folder: Path, endpoint: str, *commands: str, token: str = "secret") -> tuple[list[str], list[str]]:
    """What each of some commands prints, and the lines of their errors."""
    settings = {"HF_ENDPOINT": endpoint, "HF_TOKEN": token, "HF_HOME": str(folder / "home"), "NO_PROXY": "127.0.0.1"}
    program = [sys.executable, "-c", PROGRAM, json.dumps([command.split(" ") for command in commands])]
    done = subprocess.run(program, env=os.environ | settings, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("---"), done.stderr.splitlines()


def test_a_run_goes_to_the_hub_and_comes_back(tmp_path: Path, hub: tuple[type[Hub], str]) -> None:
    server, endpoint = hub
    X = np.random.default_rng(0).normal(size=(8, 20, 3))
    sets = pointset.from_arrays(X, [0, 1] * 4)
    model = pointset.create_model("rff-max", classes=2, dim=8)
    pointset.fit(model, sets, Recipe(epochs=1), run=tmp_path / "run", progress=False)
    np.save(tmp_path / "a.npy", X[0])
    classify = "classify a.npy --json --model "
    (pushed, here, there, _), _ = run(
        tmp_path, endpoint, "push run user/parts --private", f"{classify}run", f"{classify}hub:user/parts"
    )
    assert "hub:user/parts" in pushed
    assert {*server.files} == {"model.pointset", "README.md"}
    assert server.created["name"] == "parts"
    assert "private" in str(server.created)
    assert b"rff-max" in server.files["README.md"]
    (cached, _), _ = run(tmp_path, "http://127.0.0.1:9", f"{classify}hub:user/parts")  # without a hub
    assert json.loads(here)["predictions"] == json.loads(there)["predictions"] == json.loads(cached)["predictions"]
    del server.files["model.pointset"]
    wrong = (f"{classify}hub:user/other", f"{classify}hub:not/a/name", "push absent user/parts", "push run user/parts")
    _, errors = run(tmp_path, endpoint, *wrong, token="wrong")
    for error, words in zip(errors, ("user/other", "not/a/name", "run.json", "401"), strict=True):
        assert words in error
