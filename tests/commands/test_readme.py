"""The commands of the README in its order, as it writes them, on small folders that have its names."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from command_line import succeed

from pointset.data.shapes10.build import build_shapes10
from pointset.training import automatic, fine_tuning
from pointset.training.fine_tuning import Plan

README = (Path(__file__).parent.parent.parent / "README.md").read_text(encoding="utf-8")
KINDS = ("chair", "lamp", "table")
SHORTER = {
    "train": ("--budget", "1s"),
    "compare": ("--seeds", "0", "--steps", "2", "--least-steps", "2", "--workers", "1"),
}
"""What is added to a command so that it takes seconds."""


def commands(section: str) -> list[str]:
    """The commands of a section: a line of a block each, or in backticks."""
    text = README.split(f"\n## {section}\n")[1].split("\n## ")[0]
    return [line or quoted for line, quoted in re.findall(r"^pointset (.*)$|`pointset ([^`]+)`", text, re.MULTILINE)]


@pytest.fixture
def small(tmp_path, monkeypatch) -> None:
    """A folder with the files that the README speaks of, and a network that is trained for a moment."""
    monkeypatch.chdir(tmp_path)
    build_shapes10(Path("all"), train=6, test=2, progress=False)
    for kind in KINDS:
        shutil.copytree(Path("all") / kind, Path("parts") / kind)
    for copy in ("chair.off", "new/chair.off", "path/to/new/chair.off"):
        Path(copy).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy("all/chair/test/chair_0007.off", copy)
    monkeypatch.setattr(automatic._Choice, "_plan", lambda _: Plan(steps=8, folds=1))
    monkeypatch.setattr(fine_tuning, "FEWEST_STEPS", 8)


@pytest.mark.slow
@pytest.mark.parametrize(("section", "fewest"), [("Classify one file", 5), ("Your own shapes", 8)])
def test_the_commands_of_the_readme(section, fewest, small, capsys):
    pytest.importorskip("onnx", reason="onnx: pip install 'pointset-learn[export]'")
    lines = commands(section)
    assert len(lines) >= fewest, "none of them is overlooked"
    for line in lines:
        words = shlex.split(line, comments=True)
        added = SHORTER.get(words[0], ())
        assert succeed(capsys, *words, *added), line
        written = [Path(words[place + 1]) for place, word in enumerate(words) if word in ("-o", "--run", "--out")]
        assert all(path.exists() for path in written), line
