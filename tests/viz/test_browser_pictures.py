"""The page in a real Chromium: every map is drawn in the right colours, on any screen, in a frame and in print."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from open_page import Seen, changed, ink, until

from pointset.viz import make_page
from pointset.viz.color import colors_of, scale_for

pytestmark = pytest.mark.slow


def test_every_map_is_drawn_without_complaint_or_request(opened: Callable[..., Seen]) -> None:
    seen = opened()
    panels = seen.panels()
    assert len(panels) == 6
    assert min(map(ink, panels)) > 300
    # Maps differ, so each panel shows its own weights.
    assert min(changed([panels[0]] * 5, panels[1:])) > 100
    assert seen.tab.inner_text("#title") == "A box"
    assert seen.tab.inner_text("#note") == "predicted: box"
    assert seen.tab.locator("#answer li").all_inner_texts()[:2] == ["box\n91 %", "<b>ball\n5.0 %"]
    assert seen.tab.locator("#answer li").count() == 5
    assert "1 = uniform" in seen.tab.inner_text("#ticks")
    assert seen.complaints == []
    assert [url for url in seen.requests if not url.startswith("file:")] == []
    assert len(seen.requests) == 1


@pytest.fixture
def six_points(browser: Any, tmp_path: Path) -> Iterator[Callable[[NDArray[np.float64]], tuple[Seen, NDArray[Any]]]]:
    """Open a page of one map on six points; return it, and the positions of the points in the map, [6, 2]."""
    tab = browser.new_page(viewport={"width": 900, "height": 700})

    def open_page(values: NDArray[np.float64]) -> tuple[Seen, NDArray[Any]]:
        reads = SimpleNamespace(layer="l", kind="reads", weights=values[None, None] / 6, points_are="keys")
        cloud = np.vstack([np.eye(3), -np.eye(3)])
        tab.goto(make_page(reads, cloud).save(tmp_path / "page.html").as_uri())
        places = tab.evaluate(
            """() => { const { left, top } = pointset.panels[0]; return Array.from({ length: 6 }, (_, i) => {
                const [x, y] = pointset.positionOf(pointset.panels[0], i); return [x - left, y - top]; }); }"""
        )
        return Seen(tab), np.array(places)

    yield open_page
    tab.close()


def test_dots_have_the_colours_of_the_scale(six_points: Callable[..., Any]) -> None:
    values = np.array([0.05, 0.6, 0.9, 1.0, 1.5, 1.95])
    page, places = six_points(values)
    seen = page.panels()[0][places[:, 1].astype(int), places[:, 0].astype(int)]
    expected = 255 * colors_of(scale_for(values), values)
    np.testing.assert_allclose(seen[2:], expected[2:], atol=4)
    assert (seen[:2] >= expected[:2] - 4).all()  # pale ones may fade with their depth


def test_a_weight_of_exactly_zero_is_a_ring(six_points: Callable[..., Any]) -> None:
    page, places = six_points(np.array([0.0, 0.6, 0.9, 1.0, 1.5, 2.0]))
    panel, (x, y) = page.panels()[0], places[0]
    around = panel[int(y) - 4 : int(y) + 5, int(x) - 4 : int(x) + 5]
    assert panel[int(y), int(x)].min() > 230  # paper
    assert 170 < around.min() < 200  # grey
    assert np.ptp(around, axis=2).max() < 4
    left, top, *_ = page.tab.evaluate(
        """() => { const box = pointset.canvas.getBoundingClientRect(), panel = pointset.panels[0];
            return [box.left + panel.left, box.top + panel.top]; }"""
    )
    page.tab.mouse.move(left + x, top + y)
    assert page.tab.inner_text("#tip") == "point 0: weight exactly 0"


def test_a_narrow_window_and_a_fine_screen_still_show_every_map(opened: Callable[..., Seen]) -> None:
    seen = opened()
    seen.tab.set_viewport_size({"width": 380, "height": 1600})
    assert min(map(ink, seen.panels())) > 100
    assert seen.tab.evaluate("document.documentElement.scrollWidth") <= 380
    fine = opened(device_scale_factor=2)
    fine.until("pointset.panels.length === 6")
    assert fine.tab.evaluate("pointset.canvas.width / pointset.canvas.clientWidth") == 2
    assert fine.complaints == []


def test_inside_a_notebooks_frame_that_is_laid_out_late(
    browser: Any, attention: Callable, cloud: NDArray[np.float64]
) -> None:
    tab = browser.new_page()
    complaints: list[str] = []
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.set_content(f'<div id="late" style="display: none">{make_page(attention(), cloud)._repr_html_()}</div>')
    frame = tab.frame_locator("iframe")
    frame.locator("#precision:not(:empty)").wait_for(state="attached")
    assert frame.locator("#labels .map").count() == 0
    tab.evaluate("late.style.display = 'block'")
    frame.locator("#labels .map").nth(5).wait_for()
    assert frame.locator("#canvas").evaluate("(canvas) => canvas.clientWidth") > 500
    tab.set_viewport_size({"width": 420, "height": 700})
    narrow = frame.locator("#canvas")
    until(lambda: narrow.evaluate("(canvas) => canvas.clientWidth < 420"))
    assert complaints == []
    tab.close()


def test_dark_scheme_and_reduced_motion(opened: Callable[..., Seen]) -> None:
    seen = opened(color_scheme="dark", reduced_motion="reduce")
    assert seen.panels()[0][0, 0].max() < 40
    home = "pointset.camera.turn(50, 0); pointset.goHome(); pointset.camera.azimuth"
    assert seen.tab.evaluate(home) == -50
    seen.tab.emulate_media(color_scheme="light", reduced_motion="no-preference")
    assert seen.panels()[0][0, 0].min() == 255
    assert seen.tab.evaluate(home) != -50
    seen.until("pointset.camera.azimuth === -50")
    assert seen.complaints == []


def test_printing_uses_a_light_copy_of_the_picture(opened: Callable[..., Seen]) -> None:
    """WebGL drawings made while the page is laid out for print do not appear in print."""
    seen = opened(color_scheme="dark")
    before = seen.panels()
    lines = seen.tab.evaluate(
        """() => {
            dispatchEvent(new Event("beforeprint"));
            return [...document.querySelectorAll('.paper .line')].map((line) => {
                const copy = line.querySelector("canvas");
                const { data } = copy.getContext("2d").getImageData(0, 0, copy.width, copy.height);
                const ink = data.filter((value, i) => i % 4 === 0 && value < 200).length;
                const names = [...line.querySelectorAll("button.map")].map((button) => button.textContent);
                return { paper: [...data.slice(0, 3)], ink, names, width: copy.clientWidth, wide: copy.width };
            });
        }"""
    )
    assert len(lines) > 1
    assert sum(len(line["names"]) for line in lines) == len(before)
    for line in lines:
        assert (line["width"], line["wide"], line["paper"]) == (690, 1380, [255, 255, 255])
        assert line["ink"] > 100
        assert line["names"]
    assert not seen.tab.locator("#labels").is_visible()
    seen.tab.evaluate("dispatchEvent(new Event('afterprint'))")
    assert seen.tab.locator("#frame canvas").count() == 1
    assert max(changed(before, seen.panels())) == 0
    assert seen.complaints == []


def test_a_lost_context_comes_back(opened: Callable[..., Seen]) -> None:
    seen = opened()
    before = seen.panels()
    seen.tab.evaluate(
        """() => new Promise((done) => {
            pointset.canvas.addEventListener("webglcontextrestored", done);
            const context = pointset.renderer.gl.getExtension("WEBGL_lose_context");
            context.loseContext();
            setTimeout(() => context.restoreContext(), 50);
        })"""
    )
    assert max(changed(before, seen.panels())) == 0
