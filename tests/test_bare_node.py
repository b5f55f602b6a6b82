"""A machine without mesh libraries and network, like most cluster nodes: everything from HDF5 to the report works."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BARE = """
import socket, sys

class Refuser:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("trimesh", "open3d", "plotly", "dash"):
            raise ModuleNotFoundError(f"{name} is not installed here", name=name)

sys.meta_path.insert(0, Refuser())

def offline(*arguments, **options):
    raise OSError("there is no network here")

socket.getaddrinfo = socket.create_connection = socket.socket.connect = offline
"""

COMPARE = """
import pointset
pointset.compare(
    ["isab4-pma", "rff-max"], sys.argv[1], seeds=[0], points=[24], out=sys.argv[2], workers=1, progress=False,
    model_options=pointset.ModelOptions(dim=16), recipe=pointset.Recipe(epochs=1, batch_size=16),
)
"""


def script(text: str, *arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", text, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
    )


@pytest.mark.slow
def test_a_node_without_mesh_libraries_pictures_of_them_or_a_network(clouds_folder, tmp_path):
    done = script(BARE + COMPARE, clouds_folder, tmp_path)
    assert done.returncode == 0, done.stderr
    saved = json.loads((tmp_path / "results.json").read_text())
    assert [cell["model"] for cell in saved["runs"]] == ["isab4-pma", "rff-max"]
    assert saved["versions"]["torch"].startswith("2.")
    assert (tmp_path / "report.html").stat().st_size > 10_000
