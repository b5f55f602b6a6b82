"""The report of a comparison in a real Chromium: on a desk and on a phone, without a network."""

from typing import Any

import pytest

pytestmark = pytest.mark.slow

SIZES = {"desk": (1280, 900), "phone": (360, 740)}


@pytest.fixture(params=SIZES)
def opened(request: pytest.FixtureRequest, browser: Any, reported: Any) -> Any:
    """The report in a window of some size, and what it asked for or complained of."""
    width, height = SIZES[request.param]
    tab = browser.new_page(viewport={"width": width, "height": height}, is_mobile=request.param == "phone")
    seen: list[str] = []
    tab.on("console", lambda message: seen.append(message.text))
    tab.on("pageerror", lambda error: seen.append(str(error)))
    address = (reported.folder / "report.html").as_uri()
    tab.on("request", lambda asked: None if asked.url.startswith(("data:", address)) else seen.append(asked.url))
    tab.goto(address)
    yield tab, width, seen
    tab.close()


def test_it_complains_of_nothing_and_asks_for_nothing(opened: Any) -> None:
    tab, _, seen = opened
    assert tab.title() == "Two <b>models</b>"
    assert seen == []


def test_nothing_but_its_own_boxes_scrolls_sideways(opened: Any) -> None:
    tab, width, _ = opened
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate("document.body.scrollWidth") <= width
    outside = tab.evaluate(
        """(width) => [...document.querySelectorAll("body *")]
            .filter((e) => !e.closest(".wide, pre") && e.getBoundingClientRect().right > width + 0.5)
            .map((e) => e.tagName + ": " + e.textContent.slice(0, 40))""",
        width,
    )
    assert outside == []


def test_every_figure_is_loaded_and_large_enough_to_read(opened: Any) -> None:
    tab, _, _ = opened
    sizes = tab.evaluate(
        "() => [...document.images].map((i) => [i.complete, i.naturalWidth, i.getBoundingClientRect().width])"
    )
    assert len(sizes) == 13
    assert all(complete and natural > 1000 for complete, natural, _ in sizes)
    assert all(shown >= 340 for _, _, shown in sizes)


def test_text_is_large_enough_and_the_tables_first_column_stays(opened: Any) -> None:
    tab, _, _ = opened
    small = tab.evaluate(
        """() => [...document.querySelectorAll("p, td, th, h1, h2, dd, pre")]
            .map((e) => parseFloat(getComputedStyle(e).fontSize)).filter((size) => size < 12)"""
    )
    assert small == []
    moved = tab.evaluate(
        """() => { const box = document.querySelector(".wide"), cell = box.querySelector("td");
            const before = cell.getBoundingClientRect().left; box.scrollLeft = 500;
            return [box.scrollLeft, cell.getBoundingClientRect().left - before]; }"""
    )
    assert moved[1] == pytest.approx(0, abs=1), f"scrolled by {moved[0]}"
