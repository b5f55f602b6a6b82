"""The benchmark: other implementations compute the same function, are timed in turns, and tables are right."""

import json

import choices
import pytest
import torch
from blocks import Setting, app, check_equal, contest
from rivals import fused, rewritten, split_along_batch
from timing import interleaved
from torch import nn

from pointset import create_model
from pointset.errors import PointsetError

TINY = {"dim": 16, "heads": 2, "points": 70, "batch_size": 2, "rounds": 1}


@pytest.mark.parametrize("attend", [split_along_batch, fused])
@pytest.mark.parametrize("name", ["isab5-pma", "sab-pma"])
def test_other_implementations_with_our_weights_give_our_results(name, attend):
    ours = create_model(name, classes=3, dim=12, heads=3).double().eval()
    points = torch.randn(2, 71, 3, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    theirs = rewritten(ours, attend).eval()
    torch.testing.assert_close(theirs(points), ours(points), rtol=1e-10, atol=1e-12)


def test_another_function_is_found_out():
    ours = create_model("isab5-pma", classes=3, dim=12, heads=3).eval()
    other = create_model("isab5-pma", classes=3, dim=12, heads=3, seed=1).eval()
    with pytest.raises(PointsetError, match=r"the logits of sdpa are off ours by .*: it is not the same function"):
        check_equal({"pointset": ours, "released": ours, "sdpa": other})


def test_a_form_without_rivals_is_refused():
    with pytest.raises(TypeError, match="no plain form of LayerNorm"):
        rewritten(with_norm(), fused)
    with pytest.raises(PointsetError, match="no rivals for rff-mean: give isab16-pma"):
        contest(Setting(model="rff-mean"))


def with_norm() -> nn.Module:
    model = create_model("isab5-pma", classes=3, dim=12, heads=3)
    model.head.append(nn.LayerNorm(3))
    return model


def test_every_implementation_is_timed_in_every_round(monkeypatch):
    clock = iter(range(1000))
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    turns = []

    def work(name: str, ticks: int):
        def run() -> None:
            turns.append(name)
            for _ in range(ticks * (10 if len(turns) == 1 else 1)):  # slow the first time, which does not count
                next(clock)

        return run

    found = interleaved({"a": work("a", 2), "b": work("b", 5)}, 7)
    rounds = [tuple(turns[start : start + 2]) for start in range(0, 16, 2)]
    assert set(rounds) == {("a", "b"), ("b", "a")}, "nobody is always behind the same one"
    assert {name: times.seconds for name, times in found.items()} == {"a": 3, "b": 6}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["isab4-pma", "sab-pma"])
def test_a_contest_has_figures_for_all(name):
    step, inference = contest(Setting(model=name, **TINY))
    rivals = {"released", "sdpa", "torch-geometric", "torch"} | ({"aggregation"} if name == "sab-pma" else set())
    for row in (step, inference):
        assert set(row["ratios"]) == rivals
        assert all(ratio > 0 for ratio in row["ratios"].values())
        assert 0 < row["share"] < 1
    assert step["gflop"] >= 2 * inference["gflop"]
    assert set(step["memory_ratios"]) == rivals


@pytest.mark.slow
def test_the_command_prints_a_table_and_keeps_the_rows(tmp_path, capsys):
    out = tmp_path / "bench.json"
    sizes = "--dims 16 --heads 2 --points 70 --batch-size 2 --rounds 1 --threads 1"
    app(["isab4-pma", *sizes.split(), "--out", str(out)], result_action="return_value")
    assert "| isab4-pma |" in capsys.readouterr().out
    kept = json.loads(out.read_text())
    assert [row["kind"] for row in kept["rows"]] == ["training step", "inference"]
    assert kept["machine"]["threads"] == 1
    assert set(kept) == {"rows", "versions", "machine", "commit", "command"}


def test_every_choice_stands_beside_the_first(capsys):
    sizes = "--dims 8 --points 9 --batch-size 2 --rounds 1"
    choices.app(["isab4-pma", *sizes.split()], result_action="return_value")
    head, _, *lines = capsys.readouterr().out.splitlines()
    assert [cell.strip() for cell in head.split("|")[1:-1]][-4:] == [
        "choice",
        "ms",
        "over the first",
        "processor's time",
    ]
    found = [[cell.strip() for cell in line.split("|")[4:-1]] for line in lines]
    assert [(kind, choice) for kind, choice, *_ in found] == [
        (kind, choice) for kind in ("training step", "inference") for choice in choices.CHOICES
    ]
    assert [row[-2:] for row in found if row[1] == "dot, softmax"] == [["1.00", "1.00"]] * 2
