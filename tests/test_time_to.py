"""The seconds of training until the accuracy on held-out shapes reaches a threshold."""

import json

import pytest
import time_to

from pointset.runs import digests

ROWS = {0: [(10, 0.5), (11, 0.82), (12, 0.79), (13, 0.9)], 1: [(20, 0.6), (21, 0.7), (22, 0.81), (23, 0.84)]}


@pytest.fixture
def comparison(tmp_path):
    for seed, epochs in ROWS.items():
        lines = [json.dumps({"seconds": seconds, "validation_accuracy": share}) for seconds, share in epochs]
        folder = tmp_path / "toy" / "runs" / f"rff-max-n64-seed{seed}"
        folder.mkdir(parents=True)
        digests.write_text(folder / "history.jsonl", "\n".join(lines) + "\n")
    return tmp_path / "toy"


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_seconds_until_the_first_such_epoch_are_a_mean_over_seeds(comparison, capsys):
    assert time_to.time_to((comparison,), at=(80, 88)) == 0
    heads, _, row = capsys.readouterr().out.splitlines()
    assert cells(heads) == ["seconds until", "80 %", "88 %", "the end"]
    # The first seed is there after 10 + 11 seconds, the second after 20 + 21 + 22; only the first gets to 88 %.
    assert cells(row) == ["toy: rff-max-n64", "42", "never", "66"]
