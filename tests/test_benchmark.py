"""The benchmark: other implementations compute the same function, are timed in turns, and tables are right."""

import json

import pytest
import torch
from blocks import app, check_equal
from rivals import fused, rewritten, split_along_batch

from pointset import create_model
from pointset.errors import PointsetError


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


@pytest.mark.slow
def test_the_command_prints_a_table_and_keeps_the_rows(tmp_path, capsys):
    out = tmp_path / "bench.json"
    sizes = "--dims 16 --heads 2 --points 70 --batch-size 2 --rounds 1 --threads 1 --floor"
    app(["sab-pma", *sizes.split(), "--out", str(out)], result_action="return_value")
    assert "| sab-pma |" in capsys.readouterr().out
    kept = json.loads(out.read_text())
    assert [row["work"] for row in kept["rows"]] == ["training step", "inference"]
    for row in kept["rows"]:
        assert min(row[rival] for rival in ("released", "sdpa", "torch-geometric", "torch", "aggregation")) > 0
        assert 0 < row["share of product rate"] < 1
        assert 0 < row["products"] < 1
    assert kept["machine"]["threads"] == 1
    assert set(kept) == {"rows", "versions", "machine", "commit", "command"}
