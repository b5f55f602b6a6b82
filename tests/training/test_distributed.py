"""Two processes train one run: the same samples, the same gradients, one folder.

This file is also the program that the two processes run, once for all tests: see `in_two_processes`.
"""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from toy import StopError, numbers, small, stop_after

import pointset
from pointset import PointsetError, Recipe, cli, load_model
from pointset.data.batches import Batch
from pointset.training import Fitted
from pointset.training.processes import Processes, is_main, join_processes, world_size

pytestmark = pytest.mark.slow

SHAPES = 120
# 120 = 7 * 17 + 1: shares of 9 and 8 rows, and a last batch of which the second process has none.
ODD = Recipe(epochs=2, batch_size=17, learning_rate=1e-3, device="cpu")
WATCHED = Recipe(epochs=5, batch_size=32, learning_rate=2e-2, validation=0.2, patience=2, device="cpu")
WATCHED = WATCHED.changed({"train_points": (8, 64), "augment": ("scale", "cutmix-r")})


class Own(nn.Module):
    """A user-defined model without a seed, and with an unused layer."""

    def __init__(self) -> None:
        super().__init__()
        self.used = nn.Linear(3, 3)
        self.unused = nn.Linear(3, 3)

    def forward(self, points: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        return self.used(points.amax(dim=1))


class Recorded:
    """A record of each step of a training: rows, and the seed of dropout."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.rows: list[list[str]] = []
        self.seeds: list[int] = []
        share = Processes.share

        def recorded_share(processes: Processes, batch: Batch) -> Batch:
            mine = share(processes, batch)
            both = zip(mine.points.numpy(), mine.labels.tolist(), strict=True)
            self.seeds.append(torch.initial_seed())
            self.rows.append([f"{hashlib.sha1(points.tobytes()).hexdigest()} {label}" for points, label in both])
            return mine

        patch.setattr(Processes, "share", recorded_share)


def outcome(fitted: Fitted) -> dict[str, Any]:
    return {"weights": fitted.model.state_dict(), "history": fitted.history, "best": fitted.best_epoch}


def said(work: Any) -> str:
    with pytest.raises(PointsetError) as error:
        work()
    return str(error.value)


def main(clouds: str, out: str) -> None:
    """The program of each of the two processes."""
    train, folder = pointset.load_dataset(clouds, "train", 32), Path(out)
    found: dict[str, Any] = {}
    for name in ("rff-max", "isab4-pma"):
        with pytest.MonkeyPatch.context() as patch:
            recorded = Recorded(patch)
            fitted = pointset.fit(small(name, dropout=0.0), train, ODD)
        found[name] = {**outcome(fitted), **vars(recorded)}
    found["whole"] = outcome(pointset.fit(small(), train, WATCHED, run=folder / "whole"))
    with pytest.MonkeyPatch.context() as patch:
        stop_after(patch, 1)
        with pytest.raises(StopError):
            pointset.fit(small(), train, WATCHED, run=folder / "resumed")
    found["resumed"] = outcome(pointset.fit(small(), train, WATCHED, run=folder / "resumed"))
    found["loaded"] = outcome(pointset.fit(small(), train, WATCHED, run=folder / "resumed"))
    found["refused"] = said(lambda: pointset.fit(small("rff-max"), train, WATCHED, run=folder / "whole"))
    told: list[int] = []
    watch = lambda row: told.append(row["epoch"]) or row["epoch"] == 1  # noqa: E731
    found["ended"] = outcome(pointset.fit(small(), train, WATCHED, run=folder / "ended", callbacks=[watch]))
    found["told"] = told
    found["batch norm"] = outcome(pointset.fit(small("isab4-max", norm="batch"), train, ODD))
    torch.manual_seed(torch.distributed.get_rank())
    found["own"] = outcome(pointset.fit(own := Own(), train, ODD))
    found["own has no gradient"] = own.unused.weight.grad is None
    cli.main(["train", "isab4-pma", "--data", clouds, "--points", "32", "--dim", "16", "--dropout", "0",
              "--epochs", "1", "--device", "cpu", "--run", str(folder / "command"), "--json"])  # fmt: skip
    torch.save(found, folder / f"{os.environ['RANK']}.pt")


@pytest.fixture(scope="module")
def ran(clouds_folder, tmp_path_factory):
    """The folder written by two processes, and their output."""
    pytest.importorskip("accelerate")
    folder = tmp_path_factory.mktemp("two")
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone", __file__]
    done = subprocess.run(
        [*launch, str(clouds_folder), str(folder)],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


@pytest.fixture(scope="module")
def two(ran):
    return [torch.load(ran[0] / f"{rank}.pt", weights_only=False) for rank in range(2)]


@pytest.fixture(scope="module", params=["rff-max", "isab4-pma"])
def alone(request, train):
    """The same training in this process: the name of the model, the record, and the result."""
    with pytest.MonkeyPatch.context() as patch:
        recorded = Recorded(patch)
        return request.param, recorded, pointset.fit(small(request.param, dropout=0.0), train, ODD)


def test_the_samples_are_those_of_one_process_each_seen_once(alone, two):
    name, recorded, _ = alone
    first, second = (found[name]["rows"] for found in two)
    assert [len(rows) for rows in first] == [9] * 7 + [1] + [9] * 7 + [1]
    assert [len(rows) for rows in second] == [8] * 7 + [0] + [8] * 7 + [0]
    for whole, evens, odds in zip(recorded.rows, first, second, strict=True):
        assert (whole[::2], whole[1::2]) == (evens, odds)
    assert len({row for rows in recorded.rows[:8] for row in rows}) == SHAPES


def test_weights_and_history_are_those_of_one_process_up_to_rounding(alone, two):
    name, _, fitted = alone
    for row, other in zip(two[0][name]["history"], fitted.history, strict=True):
        assert row["loss"] == pytest.approx(other["loss"], rel=1e-5)
        a_tie_apart = pytest.approx(other["accuracy"], abs=1.01 / SHAPES)
        assert row["accuracy"] == a_tie_apart
        assert row["learning_rate"] == other["learning_rate"]
    for key, expected in fitted.model.state_dict().items():
        if not key.endswith("key.bias"):  # it cancels in the softmax: its gradient is rounding, which Adam makes large
            torch.testing.assert_close(two[0][name]["weights"][key], expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("case", ["rff-max", "isab4-pma", "whole", "resumed", "loaded", "ended", "batch norm", "own"])
def test_every_process_ends_with_the_same_weights_and_history(case, two):
    first, second = (found[case] for found in two)
    torch.testing.assert_close(first["weights"], second["weights"], rtol=0, atol=0)
    assert first["history"] == second["history"]
    assert first["best"] == second["best"]


def test_a_resumed_run_gives_the_numbers_of_one_that_was_not_cut_off(two):
    whole, resumed, loaded = (two[0][case] for case in ("whole", "resumed", "loaded"))
    assert 1 < len(whole["history"]) <= 5
    assert "validation_accuracy" in whole["history"][0]
    assert numbers(whole["history"]) == numbers(resumed["history"]) == numbers(loaded["history"])
    torch.testing.assert_close(whole["weights"], resumed["weights"], rtol=0, atol=0)
    torch.testing.assert_close(whole["weights"], loaded["weights"], rtol=0, atol=0)
    assert all(found["own has no gradient"] for found in two), "what is not used is left alone"


def test_the_main_process_alone_is_told_of_epochs_and_ends_the_run_for_all(two):
    assert (two[0]["told"], two[1]["told"]) == ([1], [])
    assert [row.get("stopped") for row in two[1]["ended"]["history"]] == [True]


def test_the_folder_is_that_of_one_process(ran, two, train, tmp_path):
    pointset.fit(small(), train, WATCHED, run=tmp_path)
    folder = ran[0] / "whole"
    assert {path.name for path in folder.iterdir()} == {path.name for path in tmp_path.iterdir()}
    theirs, mine = (json.loads((path / "run.json").read_text()) for path in (folder, tmp_path))
    assert (theirs.pop("processes"), mine.pop("processes")) == (2, 1)
    assert theirs == mine
    model = load_model(folder)
    torch.testing.assert_close(model.state_dict(), two[0]["whole"]["weights"], rtol=0, atol=0)


def test_a_refusal_of_the_main_process_is_told_to_all(two):
    assert two[0]["refused"] == two[1]["refused"]
    assert "holds another run (model.name is 'isab4-pma' there and 'rff-max' here)" in two[0]["refused"]


def test_the_command_prints_once(ran):
    folder, printed = ran
    assert json.loads(printed)["run"] == str(folder / "command")
    assert load_model(folder / "command").description["processes"] == 2


def test_dropout_differs_between_processes_and_epochs_and_is_that_of_one_process_in_the_main_one(alone, two):
    name, recorded, _ = alone
    main, other = (found[name]["seeds"] for found in two)
    assert main == recorded.seeds
    assert len({*main, *other}) == 4  # two processes, two epochs


def test_several_processes_need_accelerate_and_one_does_not(monkeypatch, train):
    monkeypatch.setitem(sys.modules, "accelerate", None)
    assert (world_size(), is_main()) == (1, True)
    pointset.fit(small(), train, Recipe(steps=1, device="cpu"))
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(PointsetError, match=r"needs accelerate: pip install .*\[accelerate\]"):
        join_processes(torch.device("cpu"))


if __name__ == "__main__":
    main(*sys.argv[1:])
