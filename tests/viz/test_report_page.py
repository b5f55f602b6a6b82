"""The report of a comparison in a real Chromium: on a desk and on a phone, without a network."""

from typing import Any

import pytest

pytestmark = pytest.mark.slow

SIZES = {"desk": (1280, 900), "phone": (360, 740)}


@pytest.fixture(params=SIZES)
def opened(request: pytest.FixtureRequest, browser: Any, reported: Any) -> Any:
    """The report in a window of a given size, with its requests and console messages."""
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


def test_the_report_page_fits_its_window_and_can_be_read(opened):
    tab, width, seen = opened
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
    assert seen == [], "no requests, nothing on the console"


def test_columns_sort_by_pointer_and_by_keyboard_and_go_back(opened):
    tab, _, _ = opened
    column = """(name) => { const table = document.querySelector("table");
        const place = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent === name);
        return [...table.tBodies[0].rows].map((row) => row.cells[place].textContent); }"""
    before, words = tab.evaluate(column, "accuracy %"), tab.evaluate(column, "model")
    numbers = [float(text.split()[0]) for text in before]
    head = tab.locator("table").first.locator("th", has_text="accuracy %").first
    head.click()
    assert head.get_attribute("aria-sort") == "descending"
    assert [float(text.split()[0]) for text in tab.evaluate(column, "accuracy %")] == sorted(numbers, reverse=True)
    head.get_by_role("button").press("Enter")
    assert [float(text.split()[0]) for text in tab.evaluate(column, "accuracy %")] == sorted(numbers)
    head.get_by_role("button").press("Enter")
    assert tab.evaluate(column, "accuracy %") == before
    tab.locator("table").first.locator("th", has_text="model").click()
    assert tab.evaluate(column, "model") == sorted(words, key=str.lower)
    published = tab.locator("table").first.locator("th", has_text="published").first
    published.click()
    assert tab.evaluate(column, "published %")[-1] == "", "empty cells stay below"


def test_text_has_enough_contrast(browser, reported):
    tab = browser.new_page()
    tab.goto((reported.folder / "report.html").as_uri())
    contrasts = tab.evaluate(
        """() => { const light = (color) => { const [r, g, b] = color.match(/[0-9.]+/g).map((c) => (c / 255) ** 2.2);
              return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05; };
            const paper = light(getComputedStyle(document.body).backgroundColor);
            const of = (color) => { const ink = light(color); return Math.max(ink, paper) / Math.min(ink, paper); };
            const page = [...document.querySelectorAll("p, td, th, h1, h2, dd, dt, figcaption span")];
            const charts = [...document.querySelectorAll("figure:not([aria-label*='onfusion']) text")];
            return [page.map((e) => of(getComputedStyle(e).color)),
              charts.map((e) => of(getComputedStyle(e).fill))].map((found) => Math.min(...found)); }"""
    )
    tab.close()
    assert min(contrasts) > 4.5, "as WCAG 2.2 asks for small text"
