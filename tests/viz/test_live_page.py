"""The live page in a real Chromium: models answer as in Python, and react to the user's input."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from open_page import Seen

import pointset
from pointset.export.javascript import to_plain_data
from pointset.viz.live import make_live_page

ANSWER = "() => pointset.answer()"
"""Waits until the page has answered for the current points."""
NAMES = ("isab16-pma", "rff-pma4", "dumlp16-max+dumlp16")


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of the shipped models, on a cloud of 60 points."""
    cloud = np.random.default_rng(0).uniform(-1, 1, size=(60, 3))
    models = [to_plain_data(*pointset.load_run(f"{name}.modelnet40-1024")) for name in NAMES]
    page = make_live_page(models, {"</script><b>box": cloud}, title="<i>ask")
    return page.save(tmp_path_factory.mktemp("live") / "live.html")


@pytest.fixture
def asked(browser: Any, page_file: Path) -> Iterator[Seen]:
    seen = Seen(browser.new_page(viewport={"width": 1100, "height": 900}))
    seen.open(page_file)
    seen.until("Boolean(window.pointset?.view)")
    yield seen
    seen.tab.close()
    assert not seen.complaints
    assert seen.requests == [page_file.as_uri()]  # no network at all


OFF = "OFF\n4 4 0\n0 0 0\n4 0 0\n0 2 0\n0 0 1\n3 0 1 2\n3 0 1 3\n3 0 2 3\n3 1 2 3\n"


@pytest.mark.slow
def test_a_file_of_the_user_is_classified(asked, tmp_path):
    name = "<img src=x onerror=alert(1)>.off"
    (tmp_path / name).write_text(OFF)
    (tmp_path / "bad.off").write_text(OFF.replace("0 2 0", "0 2"))
    asked.tab.set_input_files("#file", tmp_path / name)
    asked.until(f"Boolean(document.getElementById('shape-name').textContent === {name!r})")
    asked.tab.evaluate(ANSWER)
    before = asked.tab.inner_text("#left")
    assert re.match(r"([\d,]+) of \1 points", before)
    asked.tab.set_input_files("#file", tmp_path / "bad.off")
    asked.until("Boolean(document.getElementById('fault').textContent)")
    assert "bad.off, line 5: expected vertex 2 of 4, found 0 2" in asked.tab.inner_text("#fault")
    assert asked.tab.inner_text("#shape-name") == name
    # As dropped: what goes up in the file is up for the models.
    dropped = """(text) => { const data = new DataTransfer(); data.items.add(new File([text], "own.obj"));
        document.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true })); }"""
    asked.tab.evaluate(dropped, "v 0 0 0\nv 1 0 0\nv 0 5 0\nf 1 2 3\n")
    asked.until("Boolean(document.getElementById('shape-name').textContent === 'own.obj')")
    reach = asked.tab.evaluate("() => [0, 1, 2].map((k) => pointset.question.frame.high[k])")
    assert reach[2] > 4
    assert abs(reach[1]) < 1e-9
    assert "y is up" in asked.tab.inner_text("#upward")
    asked.tab.select_option("#up", "z")
    assert asked.tab.evaluate("() => pointset.question.frame.high[1]") > 4, "the same file with another axis up"
    shapes = asked.tab.locator("#shapes option:checked")
    assert shapes.inner_text() == "own.obj"
    asked.tab.select_option("#shapes", "0")
    assert asked.tab.inner_text("#shape-name") == "</script><b>box"
    assert asked.tab.inner_text("#upward") == ""


@pytest.mark.slow
def test_points_can_be_removed_and_restored(asked):
    tab = asked.tab
    asked.tab.evaluate(ANSWER)
    assert tab.inner_text("#left") == "60 of 60 points"
    whole = tab.inner_text("#sides .answer >> nth=0")
    box = tab.locator("#shape").bounding_box()

    def drag(button: str) -> None:
        tab.click(button)
        x, y = box["x"] + box["width"] / 4, box["y"] + box["height"] / 2
        tab.mouse.move(x, y - 40)
        tab.mouse.down()
        tab.mouse.move(x, y + 40, steps=6)
        tab.mouse.up()
        asked.tab.evaluate(ANSWER)

    drag("#mode-turn")
    assert tab.inner_text("#left") == "60 of 60 points"
    drag("#mode-away")
    left = int(tab.inner_text("#left").split()[0])
    assert 0 < left < 60
    assert tab.inner_text("#sides .answer >> nth=0") != whole
    drag("#mode-back")
    assert tab.inner_text("#left") == "60 of 60 points"
    assert tab.inner_text("#sides .answer >> nth=0") == whole
    tab.keyboard.press("l")
    asked.tab.evaluate(ANSWER)
    assert tab.inner_text("#left") == "54 of 60 points"
    tab.keyboard.press("r")
    tab.evaluate("() => { const e = document.getElementById('drop'); e.value = 50; e.oninput(); }")
    asked.tab.evaluate(ANSWER)
    assert tab.inner_text("#left") == "30 of 60 points"


@pytest.mark.slow
def test_which_points_decide(asked):
    tab = asked.tab
    tab.evaluate("() => { const e = document.getElementById('points'); e.value = 0; e.oninput(); }")
    asked.tab.evaluate(ANSWER)
    assert tab.inner_text("#left") == "16 of 16 points"
    tab.keyboard.press("o")
    asked.until("Boolean(document.getElementById('progress').textContent.startsWith('coloured'))")
    tab.keyboard.press("c")
    asked.until("Boolean(document.querySelectorAll('.key').length === 2)")
    assert tab.locator("#sides .chart polyline").count() == 2 * (1 + 3)


@pytest.mark.slow
def test_the_page_fits_a_phone(asked):
    asked.tab.set_viewport_size({"width": 390, "height": 844})
    asked.tab.emulate_media(color_scheme="dark", reduced_motion="reduce")
    asked.until("Boolean(document.documentElement.scrollWidth <= 390)")


def test_the_page_is_one_small_file_with_a_policy(page_file):
    text = page_file.read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    assert "<title>&lt;i&gt;ask</title>" in text
    assert "</script><b>" not in text
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
