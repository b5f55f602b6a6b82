"""How datasets, models, maps and comparisons are shown in a session or a notebook."""

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


def test_models_say_what_they_are_and_print_their_layers():
    model = pointset.create_model("rff-max", classes=7, dim=8)
    count = sum(parameter.numel() for parameter in model.parameters())
    assert repr(model) == f"SetClassifier rff-max: 7 classes, 3 numbers of each point, {count:,} parameters"
    assert "(encoder): RowwiseLayers(" in str(model)
    assert "(encoder): RowwiseLayers(" in model._repr_html_()


def test_maps_say_what_they_are(sets):
    model = pointset.create_model("isab4-pma", classes=2, dim=8)
    reads, writes, *_ = pointset.attention_maps(model, sets[0][0])
    assert repr(reads) == "AttentionMap encoder.0.reads (reads): 4 heads, 4 queries, 8 keys; keys are points"
    assert repr(writes).endswith("8 queries, 4 keys; queries are points")
    batch = pointset.attention_maps(model, sets.points)
    assert "5 clouds, 4 heads" in repr(batch[0])


def test_what_a_notebook_echoes_is_a_line(sets):
    model = pointset.create_model("isab4-pma", classes=2, dim=8)
    result = pointset.evaluate(model, sets)
    fitted = pointset.fit(model, sets, pointset.Recipe(epochs=1, batch_size=5), progress=False)
    page = pointset.viz.make_page(pointset.attention_maps(model, sets[0][0]), sets[0][0])
    for shown, kind, *words in (
        (result, "Evaluation of", "5 shapes of 2 classes", f"{100 * result.accuracy:.1f} %"),
        (pointset.to_plain_data(model), "PlainModel isab4-pma", "2 classes", "kB"),
        (pointset.check_symmetry(model, sizes=(1, 2)), "Symmetry (invariant)", "permutation", "padding"),
        (fitted, "Fitted SetClassifier isab4-pma", "1 epoch", f"{100 * fitted.history[0]['accuracy']:.1f} %"),
        (page, "Page"),
    ):
        assert repr(shown).startswith(kind)
        assert all(word in repr(shown) for word in words)
        assert len(repr(shown)) < 200


@pytest.mark.slow
def test_comparisons_say_what_they_are(reported):
    line = repr(reported)
    assert line.startswith("Comparison of 2 models on ")
    assert (
        repr(reported.experiment)
        == f"Experiment Two <b>models</b>: 3 models on {reported.experiment.task.facts.title}, 2 seeds"
    )
    assert line.endswith(f": 8 runs finished, 4 failed; in {reported.folder}")
    shown = reported._repr_html_()
    assert "ISAB &amp; PMA &lt;4&gt;" in shown
    assert shown.count("<tr>") == 1 + len(reported.rows)
    assert "of 0 models" in repr(dataclasses.replace(reported, runs=[]))
