"""What a session or a notebook shows of data sets, models, maps and comparisons."""

import dataclasses

import numpy as np
import pytest

import pointset
from pointset.data.point_sets import PointSets


@pytest.fixture(scope="module")
def sets() -> PointSets:
    clouds = np.random.default_rng(0).normal(size=(5, 8, 3))
    return pointset.from_arrays(clouds, [0, 1, 0, 0, 1], classes=["a <b>", "c"])


def test_data_sets_say_what_they_are(sets):
    line = repr(sets)
    assert "\n" not in line
    assert "5 shapes of 2 classes, 8 points each" in line
    shown = sets._repr_html_()
    assert "a &lt;b&gt;</td><td>3<" in shown
    assert "<b>" not in shown


def test_models_say_what_they_are_and_print_their_layers():
    model = pointset.create_model("rff-max", classes=7, dim=8)
    count = sum(parameter.numel() for parameter in model.parameters())
    assert repr(model) == f"SetClassifier rff-max: 7 classes, 3 numbers of each point, {count:,} parameters"
    assert "(encoder): ModuleList(" in str(model)
    assert "(encoder): ModuleList(" in model._repr_html_()


def test_maps_say_what_they_are(sets):
    model = pointset.create_model("isab4-pma", classes=2, dim=8)
    reads, writes, *_ = pointset.attention_maps(model, sets[0][0])
    assert repr(reads) == "AttentionMap encoder.0.reads (reads): 4 heads, 4 queries, 8 keys; keys are points"
    assert repr(writes).endswith("8 queries, 4 keys; queries are points")
    batch = pointset.attention_maps(model, sets.points)
    assert "5 clouds, 4 heads" in repr(batch[0])


@pytest.mark.slow
def test_comparisons_say_what_they_are(reported):
    line = repr(reported)
    assert line.startswith("Comparison of 2 models on ")
    assert line.endswith(f": 8 runs finished, 4 failed; in {reported.folder}")
    shown = reported._repr_html_()
    assert "ISAB &amp; PMA &lt;4&gt;" in shown
    assert shown.count("<tr>") == 1 + len(reported.rows)
    assert "of 0 models" in repr(dataclasses.replace(reported, runs=[]))
