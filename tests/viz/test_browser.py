"""Pages of maps, reports and the live page in a real Chromium: right answers and colours, mouse and keys."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from open_pages import Seen, changed, ink, until
from toy import TETRAHEDRON

import pointset
from pointset.explain import AttentionMap
from pointset.export import make_live_page
from pointset.viz import make_page
from pointset.viz.color import scale_for

NO_WEBGL = """{ const before = HTMLCanvasElement.prototype.getContext; HTMLCanvasElement.prototype.getContext =
    function (kind, ...rest) { return kind === "webgl2" ? null : before.call(this, kind, ...rest); }; }"""


@pytest.fixture
def opened(browser: Any, attention: Callable, cloud: Any, tmp_path: Path) -> Iterator[Callable[..., Seen]]:
    """Open a page of three layers from a file, in a new tab."""
    tabs = []

    def open_page(layer: str = "encoder.0.reads", webgl: bool = True, **view: Any) -> Seen:
        maps = [attention("reads"), attention("writes"), attention("reads", "encoder.1", seed=5)]
        classes = [("box", 0.91), ("<b>ball", 0.05), *[(f"other {i}", 0.01) for i in range(4)]]
        page = make_page(maps, cloud, title="A box", prediction="predicted: box", classes=classes, layer=layer)
        seen = Seen(browser.new_page(viewport={"width": 900, "height": 1100}, **view))
        tabs.append(seen.tab)
        if not webgl:
            seen.tab.add_init_script(NO_WEBGL)
        seen.open(page.save(tmp_path / "page.html"))
        return seen

    yield open_page
    for tab in tabs:
        tab.close()


pytestmark = pytest.mark.slow


@pytest.mark.parametrize("webgl", [True, False])
def test_every_map_is_drawn_without_complaint_or_request(opened, webgl):
    """With WebGL 2, and as well without it."""
    seen = opened(webgl=webgl)
    panels = seen.panels()
    assert len(panels) == 6
    assert min(map(ink, panels)) > 300
    # Maps differ, so each panel shows its own weights.
    assert min(changed([panels[0]] * 5, panels[1:])) > 100
    assert seen.tab.inner_text("#title") == "A box"
    assert seen.tab.inner_text("#note") == "predicted: box"
    assert seen.tab.locator("#answer li").all_inner_texts()[:2] == ["box\n91 %", "<b>ball\n5.0 %"]
    assert seen.tab.locator("#answer li").count() == 5
    assert seen.tab.locator("#answer .class").nth(1).get_attribute("title") == "<b>ball"  # it may be cut
    assert "1 = uniform" in seen.tab.inner_text("#ticks")
    assert seen.complaints == []
    assert [url for url in seen.requests if not url.startswith("file:")] == []
    assert len(seen.requests) == 1


def test_dots_have_the_colours_of_the_scale_and_a_weight_of_exactly_zero_is_a_ring(browser, tmp_path):
    tab, values = browser.new_page(viewport={"width": 900, "height": 700}), np.array([0.0, 0.6, 0.9, 1.0, 1.5, 1.95])
    reads = AttentionMap("l", "reads", torch.from_numpy(values)[None, None] / 6, "keys")
    tab.goto(make_page(reads, np.vstack([np.eye(3), -np.eye(3)])).save(tmp_path / "page.html").as_uri())
    page = Seen(tab)
    places, picture = np.array([page.place(point) for point in range(6)]).astype(int), page.picture()
    seen = picture[places[:, 1], places[:, 0]]
    expected = 255 * scale_for(values).colors_of(values)
    np.testing.assert_allclose(seen[3:], expected[3:], atol=4)
    assert (seen[1:3] >= expected[1:3] - 4).all()  # pale ones may fade with their depth
    x, y = places[0]
    around = picture[y - 4 : y + 5, x - 4 : x + 5]
    assert seen[0].min() > 230  # paper
    assert 170 < around.min() < 200  # grey
    assert np.ptp(around, axis=2).max() < 4
    tab.mouse.move(*page.place(0))
    assert tab.inner_text("#tip") == "point 0: weight exactly 0"
    tab.close()


def test_a_page_is_shown_in_the_frame_of_a_notebook(browser, attention, cloud, tmp_path):
    (tmp_path / "notebook.html").write_text(make_page(attention(), cloud)._repr_mimebundle_()["text/html"])
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    tab.goto((tmp_path / "notebook.html").as_uri())
    until(lambda: tab.frame_locator("iframe").locator("#labels button.map").count() == 6)
    assert not tab.locator("img").is_visible()
    tab.close()


def test_a_map_of_the_only_head_is_named_by_its_row(browser, attention, cloud, tmp_path):
    both = attention("reads")
    one = AttentionMap(both.layer, both.kind, both.weights[:1], both.points_are)
    tab, labels = browser.new_page(), "#labels button.map span:first-child"
    for maps, names in ((both, {f"head {head} · {row}" for head in range(2) for row in range(3)}), (one, set("012"))):
        tab.goto(make_page(maps, cloud).save(tmp_path / "page.html").as_uri())
        assert set(tab.locator(labels).all_inner_texts()) == names
        assert ("head" in tab.inner_text("#numbering")) == (maps is both)
    assert tab.get_attribute("#labels button.map", "aria-label").startswith("inducing point ")
    tab.close()


def test_a_narrow_window_a_fine_screen_and_a_dark_scheme_show_every_map(opened):
    seen = opened(device_scale_factor=2, color_scheme="dark")
    assert seen.tab.evaluate("pointset.canvas.width / pointset.canvas.clientWidth") == 2
    seen.until("pointset.panels.length === 6")
    assert seen.panels()[0][0, 0].max() < 40
    seen.tab.emulate_media(color_scheme="light")
    seen.tab.set_viewport_size({"width": 380, "height": 1600})
    assert seen.panels()[0][0, 0].min() == 255
    assert min(map(ink, seen.panels())) > 100
    assert seen.tab.evaluate("document.documentElement.scrollWidth") <= 380
    assert seen.complaints == []


def test_dragging_one_map_turns_all(opened):
    seen = opened()
    nearest = """() => { const project = pointset.camera.projection();
        const at = (i) => project([0, 1, 2].map((k) => pointset.positions[3 * i + k] / 32767));
        const all = Array.from({ length: 150 }, (_, i) => i);
        window.nearest ??= all.reduce((best, i) => at(i)[2] > at(best)[2] ? i : best, 0);
        return at(window.nearest)[0]; }"""
    across = seen.tab.evaluate(nearest)
    before = seen.panels()
    seen.drag(20)
    assert seen.tab.evaluate(nearest) > across, "near points move with the hand"
    seen.drag(120, 30, panel=4)
    after = seen.panels()
    assert min(changed(before, after)) > 200
    seen.tab.get_by_role("button", name="first view").click()
    assert max(changed(before, seen.panels())) == 0
    assert seen.complaints == []


def test_the_wheel_scrolls_the_page_and_zooms_with_ctrl(opened):
    seen = opened()
    seen.tab.set_viewport_size({"width": 900, "height": 500})
    before = seen.panels()
    seen.tab.mouse.move(*seen.middle(0))
    seen.tab.mouse.wheel(0, 200)
    seen.until("scrollY > 100")
    assert seen.tab.evaluate("pointset.camera.zoom") == 1
    seen.tab.mouse.move(*seen.middle(0))
    at = seen.tab.evaluate("scrollY")
    seen.tab.keyboard.down("Control")
    seen.tab.mouse.wheel(0, 400)
    seen.tab.keyboard.up("Control")
    seen.tab.mouse.move(2, 2)
    after = seen.panels()
    assert seen.tab.evaluate("scrollY") == at
    boxes = [[np.ptp(np.nonzero(panel.min(axis=2) < 240)[0]) for panel in panels] for panels in (before, after)]
    np.testing.assert_allclose(np.divide(boxes[1], boxes[0]), 2 ** (-400 / 500), rtol=0.12)


def test_hovering_tells_weight_and_rank(opened, attention, cloud):
    seen = opened()
    weights = attention("reads").weights[1, 2]
    point = int(weights.argmax())
    panel = seen.tab.evaluate("pointset.panels.findIndex((panel) => panel.index === 5)")
    before = seen.panels()
    seen.tab.mouse.move(*seen.place(point, panel))
    text = seen.tab.inner_text("#tip")
    assert f"point {point}: {weights[point] * len(cloud):.3g} times uniform" in text
    assert f"weight {weights[point]:.3g}, rank 1 of {len(cloud)}" in text
    assert min(changed(before, seen.panels())) > 5  # the point is ringed in all maps


def test_a_click_enlarges_a_map_and_escape_closes_it(opened):
    seen = opened()
    seen.tab.set_viewport_size({"width": 900, "height": 600})
    seen.tab.evaluate("scrollTo(0, 100)")
    before = seen.panels()
    seen.tab.mouse.click(*seen.middle(4))
    dialog = seen.tab.get_by_role("dialog")
    name = seen.tab.inner_text("#enlarged-name")
    number = seen.tab.evaluate("pointset.arranged[4].index")
    assert dialog.is_visible()
    assert name == f"head {number // 3}, inducing point {number % 3}"
    (large,) = seen.panels()
    assert large.shape[0] > 450
    assert large.shape[1] > 850
    assert ink(large) > 2 * ink(before[4])
    outline = "getComputedStyle(pointset.canvas).outlineStyle"
    assert seen.tab.evaluate(outline) == "none"
    seen.tab.keyboard.press("n")
    assert seen.tab.evaluate(outline) == "solid"
    assert seen.tab.inner_text("#enlarged-name") != name
    seen.tab.keyboard.press("p")
    assert seen.tab.inner_text("#enlarged-name") == name
    seen.tab.keyboard.press("Escape")
    assert dialog.count() == 0
    assert seen.tab.evaluate("scrollY") == 100
    assert seen.tab.evaluate("document.activeElement.value") == str(number)
    assert sorted(changed(before, seen.panels()))[-2] == 0  # one has a ring, where the keyboard is
    assert seen.complaints == []


def test_all_actions_work_by_keyboard(opened):
    seen = opened()
    reached, focused = [], "(e) => [e.id || e.className, getComputedStyle(e).outlineStyle]"
    for _ in range(8):
        seen.tab.keyboard.press("Tab")
        reached.append(seen.tab.evaluate(f"({focused})(document.activeElement)"))
    assert [name for name, _ in reached] == ["help-open", "", "", "", "order", "home", "canvas", "map"]
    assert {outline for _, outline in reached} == {"solid"}
    seen.tab.keyboard.press("ArrowRight")
    seen.tab.keyboard.press("Enter")
    second = seen.tab.evaluate("pointset.arranged[1].index")
    assert seen.tab.evaluate("pointset.enlarged") == second
    before = seen.tab.evaluate("pointset.camera.azimuth")
    seen.tab.keyboard.press("ArrowLeft")
    assert seen.tab.evaluate("pointset.camera.azimuth") == before + 8
    seen.tab.keyboard.press("Escape")
    assert seen.tab.evaluate("document.activeElement.value") == str(second)
    seen.tab.keyboard.press("0")
    assert seen.tab.evaluate("pointset.camera.azimuth") == before
    seen.tab.keyboard.press("?")
    assert "its keys" in seen.tab.get_by_role("dialog").inner_text()


def test_heads_and_order_are_chosen(opened):
    def shown() -> list[int]:
        return seen.tab.evaluate("pointset.panels.map((panel) => panel.index)")

    seen = opened()
    entropy = seen.tab.evaluate("pointset.layer.entropy")
    assert shown() == sorted(range(6), key=lambda index: entropy[index])
    seen.tab.select_option("#order", "model")
    assert shown() == list(range(6))
    assert seen.tab.locator("#labels .head").count() == 2
    seen.tab.get_by_role("button", name="head 0", exact=True).click()
    assert shown() == [3, 4, 5]
    seen.tab.get_by_role("tab", name="encoder.0.writes").click()
    assert shown() == [3, 4, 5]


@pytest.mark.parametrize("width", [1280, 390])
def test_models_are_compared_in_columns_with_one_camera(browser, attention, cloud, tmp_path, width):
    models = {"a": [attention("reads")], "b": [attention("reads", rows=5, seed=2), attention("pools", rows=2)]}
    seen = Seen(browser.new_page(viewport={"width": width, "height": 1100}))
    seen.open(make_page(models, cloud).save(tmp_path / "page.html"))
    before = seen.panels()
    boxes = seen.tab.evaluate("pointset.panels.map((panel) => [pointset.layer.model(panel.index), panel.left])")
    assert len(before) == 16
    assert min(map(ink, before)) > 100
    assert max(left for model, left in boxes if model == 0) < min(left for model, left in boxes if model == 1)
    assert seen.tab.locator("#labels .model").all_inner_texts() == ["a", "b"]
    seen.drag(60)
    assert min(changed(before, seen.panels())) > 50
    seen.tab.mouse.click(*seen.middle(0))
    assert seen.tab.inner_text("#enlarged-name").startswith(("a: head ", "b: head "))
    seen.tab.keyboard.press("Escape")
    seen.tab.get_by_role("tab", name="pools").click()
    assert {model for model, *_ in seen.tab.evaluate("pointset.layer.maps")} == {1}
    assert seen.tab.evaluate("document.documentElement.scrollWidth") <= width
    assert seen.complaints == []
    seen.tab.close()


@pytest.fixture(params=[(1280, 900), (360, 740)], ids=["desk", "phone"])
def report(request: pytest.FixtureRequest, browser: Any, reported: Any) -> Any:
    """The report in a window of a desk and of a phone."""
    width, height = request.param
    seen = Seen(browser.new_page(viewport={"width": width, "height": height}, is_mobile=width < 400))
    seen.open(reported.folder / "report.html")
    yield seen
    seen.tab.close()
    assert seen.complaints == []
    assert [url for url in seen.requests if not url.startswith(("data:", "file:"))] == []


def test_the_report_page_fits_its_window_and_can_be_read(report):
    tab, width = report.tab, report.tab.viewport_size["width"]
    assert tab.title() == "Two <b>models</b>"
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    outside = tab.evaluate(
        """(width) => [...document.querySelectorAll("body *")]
            .filter((e) => !e.closest(".wide, pre") && e.getBoundingClientRect().right > width + 0.5)
            .map((e) => e.tagName + ": " + e.textContent.slice(0, 40))""",
        width,
    )
    assert outside == [], "nothing but its own boxes scrolls sideways"
    small = tab.evaluate(
        """() => [...document.querySelectorAll("p, td, th, h1, h2, dd, pre")]
            .map((e) => parseFloat(getComputedStyle(e).fontSize)).filter((size) => size < 12)"""
    )
    assert small == []
    charts = tab.evaluate("() => [...document.querySelectorAll('svg')].map((e) => e.getBoundingClientRect().width)")
    assert len(charts) == 10
    assert min(charts) >= 340
    moved = tab.evaluate(
        """() => { const box = document.querySelector(".wide"), cell = box.querySelector("td");
            const before = cell.getBoundingClientRect().left; box.scrollLeft = 500;
            return cell.getBoundingClientRect().left - before; }"""
    )
    assert moved == pytest.approx(0, abs=1), "the first column of a table stays"


def test_text_has_enough_contrast(report):
    contrasts = report.tab.evaluate(
        """() => { const light = (color) => { const [r, g, b] = color.match(/[0-9.]+/g).map((c) => (c / 255) ** 2.2);
              return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05; };
            const paper = light(getComputedStyle(document.body).backgroundColor);
            const of = (color) => { const ink = light(color); return Math.max(ink, paper) / Math.min(ink, paper); };
            const page = [...document.querySelectorAll("p, td, th, h1, h2, dd, dt, figcaption span")];
            const charts = [...document.querySelectorAll("figure:not([aria-label*='onfusion']) text")];
            return [page.map((e) => of(getComputedStyle(e).color)),
              charts.map((e) => of(getComputedStyle(e).fill))].map((found) => Math.min(...found)); }"""
    )
    assert min(contrasts) > 4.5, "as WCAG 2.2 asks for small text"


ANSWER = "() => pointset.answer()"
"""Waits until the page has answered for the current points."""
NAMES = ("isab16-pma", "rff-pma4", "dumlp16-max+dumlp16")


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of the shipped models, on a cloud of 60 points."""
    cloud = np.random.default_rng(0).uniform(-1, 1, size=(60, 3))
    models = [pointset.load_model(f"{name}.modelnet40-1024") for name in NAMES]
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


def test_a_file_of_the_user_is_classified(asked, tmp_path):
    name = "<img src=x onerror=alert(1)>.off"
    (tmp_path / name).write_text(TETRAHEDRON.format(size=2))
    (tmp_path / "bad.off").write_text(TETRAHEDRON.format(size=2).replace("0 2 0", "0 2"))
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
    assert "upward axis: y" in asked.tab.inner_text("#upward")
    asked.tab.select_option("#up", "z")
    assert asked.tab.evaluate("() => pointset.question.frame.high[1]") > 4, "the same file with another axis up"
    shapes = asked.tab.locator("#shapes option:checked")
    assert shapes.inner_text() == "own.obj"
    asked.tab.select_option("#shapes", "0")
    assert asked.tab.inner_text("#shape-name") == "</script><b>box"
    assert asked.tab.inner_text("#upward") == ""


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


def test_the_number_of_points_is_chosen_also_on_a_phone(asked):
    tab = asked.tab
    tab.evaluate("() => { const e = document.getElementById('points'); e.value = 0; e.oninput(); }")
    asked.tab.evaluate(ANSWER)
    assert tab.inner_text("#left") == "16 of 16 points"
    for share, fault in ((98, "no points are left: restore some"), (0, "")):
        tab.evaluate("(at) => { const e = document.getElementById('drop'); e.value = at; e.oninput(); }", share)
        asked.tab.evaluate(ANSWER)
        assert tab.inner_text("#fault") == fault
    assert tab.locator("#sides .chart polyline").count() == 2
    tab.set_viewport_size({"width": 390, "height": 844})
    tab.emulate_media(color_scheme="dark", reduced_motion="reduce")
    asked.until("Boolean(document.documentElement.scrollWidth <= 390)")


def test_a_page_of_a_model_without_maps_has_help_and_shows_nothing_of_maps(browser, cloud, tmp_path):
    model = pointset.create_model("rff-mean", classes=3, dim=8)
    tab = browser.new_page()
    tab.goto(make_live_page([model], {"box": cloud}).save(tmp_path / "page.html").as_uri())
    until(lambda: tab.inner_text("#left") == "150 of 150 points")
    assert not any(tab.is_visible(part) for part in ("#controls", "#legend", "#stage"))
    tab.keyboard.press("?")
    assert tab.is_visible("#help")
    tab.close()
