"""The gallery: weights of every shape, even choice of shapes, predictions, and the page in a browser."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from open_pages import Seen, ink

import pointset
from pointset.errors import PointsetError
from pointset.viz import gallery
from pointset.viz.gallery import choose_evenly

CLASSES = ["ball", "box"]


@pytest.fixture(scope="module")
def sets() -> Any:
    clouds = np.random.default_rng(0).normal(size=(6, 40, 3))
    return pointset.from_arrays([*clouds[:5], clouds[5, :30]], [0, 0, 0, 1, 1, 1], classes=CLASSES)


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(0)
    model = pointset.create_model("isab3-pma", classes=2, dim=8, heads=2, layers=1)
    model.classes = CLASSES
    return model


def test_shapes_are_chosen_evenly_over_the_classes() -> None:
    labels = np.array([1, 0, 0, 2, 0, 0, 2])
    assert choose_evenly(labels, 4).tolist() == [1, 2, 0, 3]
    assert choose_evenly(labels, 9).tolist() == [1, 2, 4, 5, 0, 3, 6]
    assert choose_evenly(labels[:0], 9).tolist() == []


def test_the_page_has_the_weights_of_every_shape_and_marks_wrong_predictions(model: Any, sets: Any) -> None:
    page = gallery(model, sets).html
    data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)[1])
    assert data["counts"] == [40] * 5 + [30]
    reads, pools = data["layers"]
    assert [reads["name"], pools["name"], data["first"]] == ["encoder.0.reads", "pool.pma.mab", 0]
    codes = np.frombuffer(b"".join(map(base64.b64decode, reads["codes"])), np.uint8).reshape(2, 3, 230)
    relative = 2 ** (reads["reach"] * (2 * (codes[:, :, 200:] - 1.0) / 254 - 1))
    expected = pointset.find_map(pointset.attention_maps(model, sets[5][0]), kind="reads").relative().numpy()
    np.testing.assert_allclose(relative, np.clip(expected, 2 ** -reads["reach"], 2 ** reads["reach"]), rtol=0.05)
    assert set(reads["scores"]) == {"specificity", "consistency", "entropy"}
    assert set(pools["scores"]) == {"consistency", "entropy"}
    predicted = [CLASSES[i] for i in model.predict([sets[i][0] for i in range(6)])]
    assert [shape["predicted"] for shape in data["shapes"]] == predicted
    assert [shape["wrong"] for shape in data["shapes"]] == [p != CLASSES[i // 3] for i, p in enumerate(predicted)]
    with pytest.raises(PointsetError, match="neither inducing points nor seeds"):
        gallery(pointset.create_model("sab-mean", classes=2, dim=8), sets)


@pytest.mark.slow
def test_a_choice_holds_for_all_shapes(browser: Any, model: Any, sets: Any, tmp_path: Path) -> None:
    seen = Seen(browser.new_page(viewport={"width": 900, "height": 900}))
    seen.open(gallery(model, sets).save(tmp_path / "gallery.html"))
    seen.until("pointset.panels.length === 6")
    before = seen.panels()
    assert min(map(ink, before)) > 100
    assert seen.tab.locator("#row option").count() == 3
    seen.tab.click("#row-after")
    after = seen.panels()
    assert all((np.abs(one - other).max(axis=2) > 40).any() for one, other in zip(before, after, strict=True))
    seen.tab.select_option("#layer", label="pool.pma.mab")
    assert "seed" in seen.tab.inner_text("#row-name")
    seen.tab.mouse.click(*seen.middle(1))
    (large,) = seen.panels()
    assert large.shape[1] > 850
    assert ink(large) > ink(before[1])
    assert seen.tab.inner_text("#enlarged-name") == "000001: ball"
    seen.tab.keyboard.press("p")
    assert seen.tab.evaluate("pointset.enlarged") == 0
    seen.tab.keyboard.press("Escape")
    seen.tab.keyboard.press("ArrowRight")
    seen.tab.keyboard.press("Enter")
    assert seen.tab.evaluate("pointset.enlarged") == 1
    assert seen.complaints == []
    seen.tab.close()
