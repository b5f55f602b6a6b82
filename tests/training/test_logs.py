"""Logs of a training for trackers, offline: each epoch once, however often the training was interrupted."""

import json
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from damage import kill_at

import pointset
from pointset.cli import main
from pointset.training.logs import PROJECT, TENSORBOARD_FILES, HistoryLog
from pointset.training.loop import Training

Written = Callable[[], dict[tuple[str, int], float]]


@pytest.fixture
def run(tmp_path, monkeypatch) -> Path:
    for name, value in {
        "MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path / 'mlflow.db'}",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "WANDB_MODE": "offline",
        "WANDB_ERROR_REPORTING": "false",
        "WANDB_CACHE_DIR": str(tmp_path / "cache"),
        "WANDB_CONFIG_DIR": str(tmp_path / "config"),
    }.items():
        monkeypatch.setenv(name, value)
    return tmp_path / "it's a run"


@pytest.fixture
def command(clouds_folder, run) -> list[str]:
    sizes = ["--points", "8", "--dim", "8", "--batch-size", "60", "--validation", "0.2"]
    return ["train", "rff-max", "--data", str(clouds_folder), *sizes, "--run", str(run), "--epochs"]


def once(values: list[tuple[tuple[str, int], float]]) -> dict[tuple[str, int], float]:
    """Values by name and epoch, each of which must be there once."""
    assert set(Counter(key for key, _ in values).values()) <= {1}
    return dict(values)


def in_tensorboard(run: Path) -> dict[tuple[str, int], float]:
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    return once(
        [
            ((value.tag, event.step), value.tensor.float_val[0])
            for file in run.glob(TENSORBOARD_FILES)
            for event in EventFileLoader(str(file)).Load()
            for value in event.summary.value
        ]
    )


def in_mlflow(run: Path) -> dict[tuple[str, int], float]:
    from mlflow import MlflowClient

    client = MlflowClient()
    experiment = client.get_experiment_by_name(PROJECT)
    if experiment is None:
        return {}
    (tracked,) = client.search_runs([experiment.experiment_id])
    assert tracked.info.run_name == run.name
    assert (tracked.data.params["recipe.batch_size"], tracked.data.params["model.name"]) == ("60", "rff-max")
    metrics = [
        metric for name in tracked.data.metrics for metric in client.get_metric_history(tracked.info.run_id, name)
    ]
    return once([((metric.key, metric.step), metric.value) for metric in metrics])


def in_wandb(run: Path) -> dict[tuple[str, int], float]:
    (file,) = run.glob("wandb/offline-run-*/*.wandb")
    limit = time.monotonic() + 60
    while not (records := records_of(file)) or not records[-1].HasField("exit"):  # `finish` does not wait for the file
        assert time.monotonic() < limit
        time.sleep(0.05)
    values = []
    for record in records:
        items = {item.key or item.nested_key[0]: json.loads(item.value_json) for item in record.history.item}
        names = {name for name in items if not name.startswith("_")}
        values += [((name, items["_step"]), items[name]) for name in names]
    return once(values)


def records_of(file: Path) -> list[Any]:
    from wandb.proto.wandb_internal_pb2 import Record

    return [Record.FromString(content) for content in leveldb_records(file.read_bytes()[7:], offset=7)]


def leveldb_records(content: bytes, offset: int, block: int = 2**15) -> Iterator[bytes]:
    """The records of a log in LevelDB's format, whose first block begins that many bytes before the content."""
    record, start = b"", 0
    while start + 7 <= len(content):
        left = block - (start + offset) % block
        if left < 7:
            start += left
            continue
        length, kind = struct.unpack_from("<HB", content, start + 4)
        record += content[start + 7 : start + 7 + length]
        start += 7 + length
        if kind in (1, 4):  # a whole record, or the last part of one
            yield record
            record = b""


READERS = {"tensorboard": in_tensorboard, "mlflow": in_mlflow, "wandb": in_wandb}


def expected(run: Path) -> dict[tuple[str, int], float]:
    rows = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    return {(name, row["epoch"]): value for row in rows for name, value in row.items() if name != "epoch"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy")  # mlflow's
@pytest.mark.parametrize("tracker", READERS)
def test_a_run_that_was_cut_off_and_goes_on_has_each_epoch_once(tracker, command, run):
    written = READERS[tracker]
    kill_at(2, Training, "_save", main, [*command, "3", "--log", tracker])  # the second epoch is logged, not saved
    main([*command, "3"])
    main([*command, "3", "--log", tracker])
    names = {"loss", "accuracy", "learning_rate", "seconds", "processor_seconds", "validation_accuracy"}
    assert {name for name, _ in written(run)} == names
    assert repeated(written(run)) == pytest.approx(repeated(expected(run)), rel=1e-6)
    main([*command, "4", "--log", tracker])
    assert repeated(written(run)) == pytest.approx(repeated(expected(run)), rel=1e-6)
    assert len(written(run)) == 4 * len(names)


def repeated(values: dict[tuple[str, int], float]) -> dict[tuple[str, int], float]:
    """What an epoch that is trained again has again: all but its times."""
    return {key: value for key, value in values.items() if "seconds" not in key[0]}


@pytest.mark.parametrize("tracker", READERS)
def test_a_package_that_is_missing_is_named(tracker, tmp_path, monkeypatch):
    monkeypatch.setattr("pointset.errors.find_spec", lambda name: None)
    with pytest.raises(pointset.PointsetError, match=rf"needs {tracker}: pip install 'pointset-learn\[{tracker}\]'"):
        HistoryLog(tmp_path, tracker)


def test_a_tracker_that_cannot_be_reached_is_named(command, monkeypatch, capsys):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "no_such_scheme://nowhere")
    with pytest.raises(SystemExit):
        main([*command, "1", "--log", "mlflow"])
    assert "mlflow cannot log the run" in capsys.readouterr().err
