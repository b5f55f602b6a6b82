"""The precision chosen by a measurement, and the warning if another one would be faster."""

import re
import time

import pytest
import torch

import pointset
from pointset.training import precision


@pytest.fixture(scope="module")
def train(clouds_folder):
    return pointset.load_dataset(clouds_folder, points=16)


@pytest.fixture
def measured(monkeypatch):
    def measure(speed: float) -> None:
        monkeypatch.setattr(precision, "bfloat16_speed", lambda device="auto": speed)

    return measure


@pytest.mark.parametrize(("speed", "taken"), [(3.4, "bfloat16"), (1.05, "float32"), (0.3, "float32")])
def test_auto_chooses_the_faster_precision_and_results_name_it(measured, speed, taken):
    measured(speed)
    recipe = pointset.Recipe(precision="auto")
    assert recipe.precision == recipe.as_dict()["precision"] == taken
    assert recipe == pointset.Recipe(precision=taken)


def test_bfloat16_says_so_where_it_is_slower(measured, train):
    measured(0.25)
    with pytest.warns(UserWarning, match=re.escape("4.0 times as long as in float32")):
        pointset.fit(small(), train, pointset.Recipe(steps=1, precision="bfloat16"), progress=False)


@pytest.mark.parametrize(("asked", "speed"), [("bfloat16", 1.2), ("float32", 0.25)])
def test_there_is_no_warning_otherwise(measured, train, recwarn, asked, speed):
    measured(speed)
    pointset.fit(small(), train, pointset.Recipe(steps=1, precision=asked), progress=False)
    assert not recwarn.list


def test_the_measurement_is_a_ratio_of_seconds_and_is_made_once(monkeypatch):
    precision.bfloat16_speed.cache_clear()
    speed = precision.bfloat16_speed("cpu")
    assert 0.01 < speed < 100
    monkeypatch.setattr(precision._Product, "seconds", None)
    assert precision.bfloat16_speed("cpu") == speed


def test_waiting_for_other_work_changes_no_measurement(monkeypatch):
    """As on a busy machine, where products in bfloat16 wait for the processor."""
    item = torch.Tensor.item

    def late(number: torch.Tensor) -> float:
        if number.dtype == torch.bfloat16:
            time.sleep(0.1)
        return item(number)

    monkeypatch.setattr(torch.Tensor, "item", late)
    product, threads = precision._Product(torch.device("cpu"), torch.bfloat16), torch.get_num_threads()
    start = time.perf_counter()
    assert product.seconds() < 0.1 <= time.perf_counter() - start
    precision.bfloat16_speed.cache_clear()
    precision.bfloat16_speed("cpu")
    assert torch.get_num_threads() == threads


def small():
    return pointset.create_model("rff-max", classes=3, dim=8, seed=0)
