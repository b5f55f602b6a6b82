"""The pages of a report: every section, figure and number, and no external resources."""

import base64
import io
import json
import re
from html.parser import HTMLParser
from statistics import fmean
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from reports import ODD, TILES, content_of, is_chart, sections_of

from pointset.comparison.tables import FILES, make_table

pytestmark = pytest.mark.slow


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


@pytest.fixture(scope="module")
def markdown(reported) -> str:
    return re.sub(r"\\([^\w\s]|_)", r"\1", (reported.folder / "report.md").read_text(encoding="utf-8"))


def test_every_file_is_there(reported):
    assert all((reported.folder / name).stat().st_size > 100 for name in FILES)
    charts = {path.name for path in (reported.folder / "figures").glob("*.svg")}
    assert charts == {f"{name}.svg" for _, name in sections_of(reported) if is_chart(name)}
    tiles = {path.name.rpartition("-")[0] for path in (reported.folder / "figures").glob("*.png")}
    assert tiles == {name for _, name in sections_of(reported) if name.startswith(TILES)}


def test_figures_have_text_as_text_and_tiles_show_something(reported):
    for path in (reported.folder / "figures").glob("*.svg"):
        words = [element.text for element in ElementTree.parse(path).iter() if element.tag.endswith("}text")]
        assert len([word for word in words if word]) > 5, path.name
    for path in (reported.folder / "figures").glob("*.png"):
        with Image.open(path) as picture:
            pixels = np.asarray(picture.convert("L"))
        assert 0.002 < (pixels < 200).mean() < 0.7, path.name


def test_the_page_has_every_section_with_its_figures(reported, page):
    assert page.under("h2") == [title for title, _ in sections_of(reported)] + ["How to repeat and cite"]
    drawn = [
        attributes["aria-label"] for tag, attributes in page.tags if tag == "figure" and "aria-label" in attributes
    ]
    assert drawn == [title for title, name in sections_of(reported) if is_chart(name)]
    assert sum(tag == "svg" for tag, _ in page.tags) == len(drawn)
    pictures = [attributes for tag, attributes in page.tags if tag == "img"]
    assert len(pictures) == len([*(reported.folder / "figures").glob("*.png")])
    assert all(re.fullmatch(r"(ball|box|rod) predicted as (ball|box|rod)", picture["alt"]) for picture in pictures)
    for picture in pictures:
        kind, content = picture["src"].split(",")
        assert kind == "data:image/png;base64"
        with Image.open(io.BytesIO(base64.b64decode(content))) as found:
            found.verify()


def test_the_page_asks_the_network_for_nothing(reported, html, page):
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"link", "iframe", "object", "embed", "video", "audio", "source", "base", "form"}
    for tag, attributes in page.tags:
        if tag == "a":  # which asks for nothing by itself
            assert (reported.folder / attributes.pop("href")).exists()
        addresses = [attributes.get(name, "") for name in ("src", "srcset", "href", "action", "background", "poster")]
        assert all(address == "" or address.startswith("data:") for address in addresses)
        assert attributes.get("xlink:href", "#").startswith(("#", "data:"))
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    assert "url(" not in style
    assert "@import" not in style
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    policy = next(attributes["content"] for tag, attributes in page.tags if "http-equiv" in attributes)
    assert "default-src 'none'" in policy


def test_the_best_row_of_each_size_is_bold(reported, page, markdown):
    rows = [attributes.get("class") for tag, attributes in page.tags if tag == "tr"]
    best = [None if not row.best else "best" for row in reported.rows]
    assert rows[1 : 1 + len(best)] == best, "the first is the head"
    assert best.count("best") == 2
    lines = [line for line in markdown.splitlines() if line.startswith("| **")]
    assert [line.split("|")[1].strip(" *") for line in lines] == 2 * [row.model for row in reported.rows if row.best]


def test_what_users_wrote_is_text_and_no_markup(html, page):
    assert "Two <b>models</b>" in page.under("h1")
    assert page.under("title") == ["Two <b>models</b>"]
    assert ODD in page.under("td")
    assert "<4>" not in html
    assert "<b>" not in html


def test_a_failed_run_is_shown_with_its_reason(reported, html, page, markdown):
    assert len(reported.failures) == 4
    failed = page.under("p")
    for failure in reported.failures:
        assert failure.model == "too cold"
        assert f"Failed: {failure.name}: {failure.reason}" in failed
        assert f"- failed: {failure.name}: {failure.reason}" in markdown
    assert "too cold" not in page.under("td")


def test_the_page_says_what_was_run_and_how_to_repeat_it(reported, page, markdown):
    configuration = next(text for text in page.under("pre") if text.startswith("{"))
    assert json.loads(configuration) == json.loads(json.dumps(reported.experiment.as_dict()))
    assert configuration in markdown
    terms, meanings = page.under("dt"), page.under("dd")
    about = dict(zip(terms, meanings, strict=True))
    assert about["seeds"] == "0, 3"
    assert "1 thread a run" in about["machine"]
    assert "torch 2." in about["versions"]
    assert reported.caption() in about["cite"]
    assert re.match(r"[0-9a-f]{40}\+?$|pointset \d", about["commit"])
    machine = json.loads(content_of(reported, "rff-max", 24, 0, "run.json").read_text())["machine"]
    assert about["machine"].startswith(f"{machine['system']}, {machine['cores']} cores, ")
    for name in ("commit", "seeds", "machine", "versions", "cite"):
        assert f"- {name}: {about[name]}" in markdown


def tables_of(text: str) -> list[list[list[str]]]:
    """The tables of a Markdown text, as cells."""
    blocks = re.findall(r"(?:^\|.*\|$\n?)+", text, re.MULTILINE)
    return [[[c.strip() for c in line.strip("|").split("|")] for line in block.splitlines()] for block in blocks]


def test_the_markdown_says_the_same(reported, page, markdown):
    assert markdown.startswith("# Two <b>models</b>\n\n" + reported.caption())
    assert re.findall(r"^## (.*)$", markdown, re.MULTILINE) == page.under("h2")
    for title, name in sections_of(reported):
        assert (f"![{title}](figures/{name}.svg)" in markdown) == is_chart(name)
    linked = re.findall(r"\]\((figures/[^)]*)\)", markdown)
    assert {f"figures/{path.name}" for path in (reported.folder / "figures").iterdir() if path.suffix} == set(linked)
    tables = tables_of(markdown)
    assert len(tables) == 2 + 2 * 4
    for table in tables:
        assert len({len(line) for line in table}) == 1
    cells = [cell.strip("*") for table in tables for line in [table[0], *table[2:]] for cell in line if cell]
    assert cells == page.under("th", "td")


def test_the_main_table_is_the_comparisons(reported, markdown):
    metrics, written = reported.metrics, (reported.folder / "report.md").read_text(encoding="utf-8")
    for part in ("metrics", "costs"):
        assert make_table(reported.rows, metrics, "github", part=part, emphasized=True) in written
    main = tables_of(markdown)[0]
    main = [[cell.strip("*") for cell in line] for line in main]
    assert [line[:2] for line in main[2:]] == [["rff-max", "24"], [ODD, "24"], ["rff-max", "12"], [ODD, "12"]]
    row = dict(zip(main[0], main[2], strict=True))
    accuracies = [run.metrics["accuracy"] for run in reported.runs[:2]]
    assert row["accuracy %"] == f"{100 * fmean(accuracies):.1f} ± {100 * np.std(accuracies, ddof=1):.1f}"
    assert row["published %"] == "50.0 ± 2.0"
    assert row["verdict"] == reported.rows[0].metrics["accuracy"].verdict(metrics[0]) != ""
