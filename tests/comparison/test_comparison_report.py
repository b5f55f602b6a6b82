"""The pages of a report: every section, figure and number, and no external resources."""

import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from toy import ODD

from pointset.comparison.comparing import RESULT_FILES

pytestmark = pytest.mark.slow

SECTIONS = {
    "Which models are distinguishable": "matrix",
    "Accuracy against cost": "pareto",
    "Learning curves": "learning-curves",
    "Corrupted and smaller test sets": "",
    "Calibration": "reliability",
    "Confusion matrices": "confusion",
    "Accuracy of every class": "",
}
"""Titles of the sections of a size, with the names of their charts."""
TITLES = [f"{title}, {points} points" for points in (24, 12) for title in SECTIONS]
CHARTS = {
    f"{title}, {points} points": f"{name}-n{points}" for points in (24, 12) for title, name in SECTIONS.items() if name
}


class Page(HTMLParser):
    """The elements of a page, and a check that its tags are nested correctly."""

    VOID = ("meta", "img", "br", "wbr", "link", "hr")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if data.strip():
            self.words.append((self.open[-1] if self.open else "", data.strip()))

    def under(self, *tags: str) -> list[str]:
        return [words for parent, words in self.words if parent in tags]


@pytest.fixture(scope="module")
def html(reported) -> str:
    return (reported.folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(html) -> Page:
    return Page(html)


def test_every_file_is_there(reported):
    assert all((reported.folder / name).stat().st_size > 100 for name in RESULT_FILES)
    charts = {path.name for path in (reported.folder / "figures").glob("*.svg")}
    assert charts == {f"{name}.svg" for name in CHARTS.values()}


def test_figures_have_text_as_text(reported):
    for path in (reported.folder / "figures").glob("*.svg"):
        words = [element.text for element in ElementTree.parse(path).iter() if element.tag.endswith("}text")]
        assert len([word for word in words if word]) > 5, path.name


def test_the_page_has_every_section_with_its_figures(reported, page):
    assert page.under("h2") == [*TITLES, "How to repeat and cite"]
    drawn = [
        attributes["aria-label"] for tag, attributes in page.tags if tag == "figure" and "aria-label" in attributes
    ]
    assert drawn == [*CHARTS]
    assert sum(tag == "svg" for tag, _ in page.tags) == len(drawn)


def test_the_page_asks_the_network_for_nothing(html, page):
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"link", "iframe", "object", "embed", "video", "audio", "source", "base", "form"}
    for _, attributes in page.tags:
        addresses = [attributes.get(name, "") for name in ("src", "srcset", "href", "action", "background", "poster")]
        assert all(address == "" or address.startswith("data:") for address in addresses)
        assert attributes.get("xlink:href", "#").startswith(("#", "data:"))
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    assert "url(" not in style
    assert "@import" not in style
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    policy = next(attributes["content"] for tag, attributes in page.tags if "http-equiv" in attributes)
    assert "default-src 'none'" in policy


def test_the_best_row_of_each_size_is_bold(reported, page):
    rows = [attributes.get("class") for tag, attributes in page.tags if tag == "tr"]
    best = [None if not row.best else "best" for row in reported.rows]
    assert rows[1 : 1 + len(best)] == best, "the first is the head"
    assert best.count("best") == 2


def test_what_users_wrote_is_text_and_no_markup(html, page):
    assert "Two <b>models</b>" in page.under("h1")
    assert page.under("title") == ["Two <b>models</b>"]
    assert ODD in page.under("td")
    assert "<4>" not in html
    assert "<b>" not in html


def test_a_failed_run_is_shown_with_its_reason(reported, page):
    assert len(reported.failures) == 4
    failed = page.under("p")
    for failure in reported.failures:
        assert failure.model == "too cold"
        assert f"Failed: {failure.name}: {failure.reason}" in failed
    assert "too cold" not in page.under("td")


def test_the_page_says_what_was_run_and_how_to_repeat_it(reported, page):
    configuration = next(text for text in page.under("pre") if text.startswith("{"))
    assert json.loads(configuration) == json.loads(json.dumps(reported.experiment.as_dict()))
    terms, meanings = page.under("dt"), page.under("dd")
    about = dict(zip(terms, meanings, strict=True))
    assert about["seeds"] == "0, 3"
    assert "1 thread a run" in about["machine"]
    assert "torch 2." in about["versions"]
    assert reported.caption() in about["cite"]
    assert re.match(r"[0-9a-f]{40}\+?$|pointset \d", about["commit"])
    machine = json.loads((reported.run("rff-max", 0, 24).folder / "run.json").read_text())["machine"]
    assert about["machine"].startswith(f"{machine['system']}, {machine['cores']} cores, ")
