"""How datasets, models, maps and comparisons are shown in a session or a notebook."""

import numpy as np
import pytest

import pointset


def test_what_is_echoed_is_a_line_that_says_what_it_is():
    clouds = np.random.default_rng(0).normal(size=(5, 8, 3))
    sets = pointset.from_arrays(clouds, [0, 1, 0, 0, 1], classes=["a <b>", "c"])
    model = pointset.create_model("isab4-pma", classes=2, dim=8)
    maps = pointset.attention_maps(model, sets[0][0])
    for shown, *words in (
        (sets, "5 shapes of 2 classes", "8 points each"),
        (model, "isab4-pma", "2 classes"),
        (maps[0], "encoder.0.reads", "4 heads, 4 queries, 8 keys; keys are points"),
        (pointset.attention_maps(model, sets.points)[0], "5 clouds"),
        (pointset.evaluate(model, sets), "5 shapes of 2 classes"),
        (pointset.fit(model, sets, pointset.Recipe(epochs=1), progress=False), "Fitted", "1 epoch"),
        (pointset.to_plain_data(model), "isab4-pma", "kB"),
        (pointset.check_symmetry(model, sizes=(1, 2)), "invariant", "padding"),
        (pointset.viz.make_page(maps, sets[0][0]), "Page"),
    ):
        assert all(word in repr(shown) for word in words)
        assert len(repr(shown)) < 200
        assert "\n" not in repr(shown)


@pytest.mark.slow
def test_comparisons_say_what_they_are(reported):
    assert ": 8 runs finished, 4 failed; in " in repr(reported)
    assert "3 models on " in repr(reported.experiment)
    shown = reported._repr_html_()
    assert "ISAB &amp; PMA &lt;4&gt;" in shown
    assert shown.count("<tr>") == 1 + len(reported.rows)
