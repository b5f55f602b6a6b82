"""The TensorBoard log of a training: each epoch once, however often the training was interrupted."""

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

import pointset
from pointset.cli import main
from pointset.training.history import FILES, EventLog
from pointset.training.loop import Training


@pytest.fixture
def command(clouds_folder, tmp_path) -> list[str]:
    sizes = ["--points", "8", "--dim", "8", "--batch-size", "60", "--validation", "0.2"]
    return ["train", "rff-max", "--data", str(clouds_folder), *sizes, "--run", str(tmp_path), "--epochs"]


def written(run: Path) -> dict[tuple[str, int], float]:
    """All values in all event files of a run, each of which must be there once."""
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    found = [
        ((value.tag, event.step), value.tensor.float_val[0])
        for file in run.glob(FILES)
        for event in EventFileLoader(str(file)).Load()
        for value in event.summary.value
    ]
    assert set(Counter(place for place, _ in found).values()) == {1}
    return dict(found)


def expected(run: Path) -> dict[tuple[str, int], float]:
    rows = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    return {(name, row["epoch"]): value for row in rows for name, value in row.items() if name != "epoch"}


def test_a_run_that_was_cut_off_and_goes_on_has_each_epoch_once(command, tmp_path, monkeypatch, capsys):
    original = Training._save

    def save(self):
        if len(self.history) == 2:
            raise KeyboardInterrupt  # the second epoch is told, and not saved
        original(self)

    with monkeypatch.context() as patch:
        patch.setattr(Training, "_save", save)
        with pytest.raises(SystemExit):
            main([*command, "3", "--log", "tensorboard"])
    assert ("loss", 2) in written(tmp_path)
    main([*command, "3", "--log", "tensorboard"])
    assert written(tmp_path) == pytest.approx(expected(tmp_path))
    main([*command, "4", "--log", "tensorboard"])
    found = written(tmp_path)
    assert found == pytest.approx(expected(tmp_path))
    logged = {"loss", "accuracy", "learning_rate", "seconds", "processor_seconds", "validation_accuracy"}
    assert {name for name, _ in found} == logged


def test_a_finished_run_is_told_as_a_whole(command, tmp_path, capsys):
    main([*command, "1"])
    assert not list(tmp_path.glob(FILES))
    main([*command, "1", "--log", "tensorboard"])
    assert written(tmp_path) == pytest.approx(expected(tmp_path))


def test_a_package_that_is_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(pointset.PointsetError, match=r"needs the package tensorboard: pip install tensorboard$"):
        EventLog(tmp_path)
