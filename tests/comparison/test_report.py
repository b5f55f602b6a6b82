"""The report of a comparison: every file, every figure and every number in it, and nothing from elsewhere."""

import base64
import csv
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from matplotlib.colors import to_hex
from PIL import Image

from pointset.comparison.experiment import Entry
from pointset.comparison.gathering import Comparison
from pointset.comparison.report import charts
from pointset.comparison.report.content import pair_table, sections, verdicts
from pointset.comparison.report.evidence import Evidence
from pointset.comparison.report.pages import describe
from pointset.comparison.results import FILES, origins
from pointset.comparison.tables import Summary, make_table
from pointset.evaluation import calibration
from pointset.runs import digests
from pointset.runs.atomic import read_json
from pointset.tasks.classification import charts as classifiers
from pointset.tasks.classification.predictions import predictions_of, robustness_of
from pointset.tasks.classification.report import calibration_table, class_table, robustness_table
from pointset.tasks.classification.task import Classification

pytestmark = pytest.mark.slow

METRIC = Classification().measured[0]
ODD = "ISAB & PMA <4>"
"""The third model of the fixture `reported`."""
SECTIONS = [
    ("Accuracy against the size of a set", "accuracy-by-trained-size"),
    *(
        (f"{title}, {points} points", f"{name}-n{points}" if name else "")
        for points in (24, 12)
        for title, name in [
            ("Which models can be told apart", ""),
            ("Accuracy against cost", "pareto"),
            ("Learning curves", "learning-curves"),
            ("Fewer points at test time", "smaller-sets"),
            ("Corrupted test sets", "robustness"),
            ("Calibration", "reliability"),
            ("What is taken for what", "confusion"),
        ]
    ),
]


class Page(HTMLParser):
    """What a page is made of, and whether its tags close in order."""

    VOID = ("meta", "img", "br", "link", "hr")

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


@pytest.fixture(scope="module")
def evidence(reported) -> Evidence:
    return Evidence(reported, 24)


def test_every_file_is_there(reported):
    assert all((reported.folder / name).stat().st_size > 100 for name in FILES)
    names = {path.name for path in (reported.folder / "figures").glob("*.png")}
    assert names == {f"{name}.png" for _, name in SECTIONS if name}


def test_figures_are_pictures_of_something(reported):
    for path in (reported.folder / "figures").glob("*.png"):
        with Image.open(path) as picture:
            assert picture.width > 1000, path.name
            pixels = np.asarray(picture.convert("L"))
        assert 0.005 < (pixels < 200).mean() < 0.5, path.name


def test_the_page_has_every_section_with_its_figure(page):
    assert page.under("h2") == [title for title, _ in SECTIONS] + ["How to repeat and cite"]
    pictures = [attributes for tag, attributes in page.tags if tag == "img"]
    assert [picture["alt"] for picture in pictures] == [title for title, name in SECTIONS if name]
    for picture in pictures:
        kind, content = picture["src"].split(",")
        assert kind == "data:image/png;base64"
        with Image.open(io.BytesIO(base64.b64decode(content))) as found:
            found.verify()


def test_the_page_asks_the_network_for_nothing(html, page):
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"script", "link", "iframe", "object", "embed", "video", "audio", "source", "base", "form"}
    for _, attributes in page.tags:
        addresses = [attributes.get(name, "") for name in ("src", "srcset", "href", "action", "background", "poster")]
        assert all(address == "" or address.startswith("data:") for address in addresses)
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    assert "url(" not in style
    assert "@import" not in style
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)


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
    for title, name in SECTIONS:
        assert (f"![{title}](figures/{name}.png)" in markdown) == bool(name)
    tables = tables_of(markdown)
    assert len(tables) == 2 + 2 * 4
    for table in tables:
        assert len({len(line) for line in table}) == 1
    cells = [cell for table in tables for line in [table[0], *table[2:]] for cell in line if cell]
    assert cells == page.under("th", "td")


def test_the_main_table_is_the_comparisons(reported, markdown):
    metrics, written = reported.experiment.task.measured, (reported.folder / "report.md").read_text(encoding="utf-8")
    for part in ("metrics", "costs"):
        assert make_table(reported.rows, metrics, "github", part=part) in written
    main = tables_of(markdown)[0]
    assert [line[:2] for line in main[2:]] == [["rff-max", "24"], [ODD, "24"], ["rff-max", "12"], [ODD, "12"]]
    row = dict(zip(main[0], main[2], strict=True))
    accuracies = [run.metrics["accuracy"] for run in reported.runs[:2]]
    assert row["accuracy %"] == f"{100 * fmean(accuracies):.1f} ± {100 * np.std(accuracies, ddof=1):.1f}"
    assert row["published %"] == "50.0 ± 2.0"
    assert row["verdict"] == reported.rows[0].metrics["accuracy"].verdict(metrics[0]) != ""


def test_pairs_are_shown_with_their_evidence(reported):
    pair = reported.pairs[24][0]
    (shown,) = pair_table([pair], METRIC)
    assert shown["pair"] == f"rff-max - {ODD}"
    assert float(shown["difference"]) == pytest.approx(100 * pair.difference, abs=0.051)
    assert shown["verdict"] in ("distinguishable", "not distinguishable")
    low = replace(pair, p_seeds=None, over_seeds=None, p_mcnemar=0.00004, p_holm=0.049)
    shown, _ = pair_table([low, pair], METRIC)
    assert (shown["p seeds"], shown["over seeds"], shown["McNemar"]) == ("", "", "< 0.001")
    assert (shown["p Holm"], shown["verdict"]) == ("0.049", "the runs differ; one seed")
    shown, _ = pair_table([replace(low, p_holm=0.051), pair], METRIC)
    assert shown["verdict"] == "not distinguishable"


def content_of(comparison: Comparison, label: str, points: int, seed: int, name: str) -> Path:
    return comparison.run(label, seed, points).folder / name


def test_evidence_is_what_lies_in_the_folders(reported, evidence):
    assert list(evidence) == ["rff-max", ODD]
    histories = [
        [json.loads(line) for line in content_of(reported, ODD, 24, seed, "history.jsonl").read_text().splitlines()]
        for seed in (0, 3)
    ]
    expected = [fmean(rows[epoch]["validation_accuracy"] for rows in histories) for epoch in range(3)]
    assert evidence.curve(ODD, "validation_accuracy") == pytest.approx(expected)
    assert evidence.curve(ODD, "no such column") == []
    tested = read_json(content_of(reported, ODD, 24, 0, "robustness.json"))
    assert classifiers.by_size(evidence, ODD) == {16: tested["by_size"]["16"], 24: tested["by_size"]["24"]}
    clean = tested["clean_error"]
    expected = {name: pytest.approx([clean, *errors.values()]) for name, errors in tested["errors"].items()}
    assert classifiers.corruption_errors(evidence, ODD) == expected
    assert list(robustness_of(evidence.folders(ODD))) == [0], "seed 3 was not asked for"


def test_tables_of_the_report(reported, evidence):
    first, second = robustness_table(evidence)
    assert (first["model"], first["mCE %"], first["seeds"]) == ("rff-max", "100.0", 1)
    ours, base = (read_json(content_of(reported, label, 24, 0, "robustness.json")) for label in (ODD, "rff-max"))
    relative = fmean(ours["corruption_errors"][name] / base["corruption_errors"][name] for name in base["errors"])
    assert second["mCE %"] == f"{100 * relative:.1f}"
    assert second["clean error %"] == f"{100 * ours['clean_error']:.1f}"

    calibrated = calibration_table(evidence)[1]
    assert (
        calibrated["ECE %, equal mass"]
        == f"{100 * evidence.rows[ODD].metrics['calibration_error_equal_mass'].mean:.1f}"
    )
    assert calibrated["Brier"] == f"{evidence.rows[ODD].metrics['brier'].mean:.3f}"

    classes = class_table(evidence)
    assert [(row["class"], row["shapes"]) for row in classes] == [("ball", 20), ("box", 20), ("rod", 20)]
    runs = [predictions_of(reported, "rff-max", run.seed, 24) for run in evidence.runs("rff-max")]
    assert classes[2]["rff-max %"] == f"{100 * fmean(run.per_class['rod'] for run in runs):.1f}"


def test_the_verdict_in_a_sentence(reported):
    rows = reported.rows[:2]
    best, other = sorted(rows, key=lambda row: not row.best)
    at = "At 24 points"
    mean = best.metrics["accuracy"].mean
    assert f"{at} {best.model} has the best accuracy, {100 * mean:.1f} %" in verdicts(reported)[0]
    assert len(verdicts(reported)) == 2

    def said(p_holm: float, **changes) -> str:
        pairs = {24: [replace(other.below_best, p_holm=p_holm, **changes)]}
        return verdicts(replace(reported, pairs=pairs))[0]

    assert said(0.01).endswith("and can be told apart from every other row.")
    assert said(0.06).endswith(f"not distinguishable from: {other.model}.")
    assert said(0.01, p_seeds=None).endswith(" %; it may owe that to its only seed.")


def axes_of(figure) -> list:
    return [axes for axes in figure.axes if axes.axison]


def test_curves_and_points_are_at_their_values(reported, evidence):
    training, validation = axes_of(classifiers.curves(evidence))
    for axes, name in ((training, "accuracy"), (validation, "validation_accuracy")):
        for line, model in zip(axes.lines, evidence, strict=True):
            assert list(line.get_xdata()) == [1, 2, 3]
            assert list(line.get_ydata()) == pytest.approx([100 * value for value in evidence.curve(model, name)])
    assert (training.get_ylabel(), validation.get_ylabel()) == ("training accuracy %", "validation accuracy %")

    costs, seconds = axes_of(charts.pareto(evidence))
    rows = evidence.rows.values()
    for axes, values in (
        (costs, [row.cost.multiply_adds / 1e6 for row in rows]),
        (seconds, [row.seconds for row in rows]),
    ):
        found = [bar.lines[0].get_xydata()[0].tolist() for bar in axes.containers]
        assert found == [
            pytest.approx([x, 100 * row.metrics["accuracy"].mean]) for x, row in zip(values, rows, strict=True)
        ]

    (sizes,) = axes_of(charts.trained_sizes([Evidence(reported, points) for points in (24, 12)]))
    bars = {24: reported.rows[0], 12: reported.rows[2]}
    found = dict(sizes.containers[0].lines[0].get_xydata().tolist())
    assert found == {points: pytest.approx(100 * row.metrics["accuracy"].mean) for points, row in bars.items()}

    panels = axes_of(classifiers.robustness(evidence))
    errors = classifiers.corruption_errors(evidence, ODD)
    assert [panel.get_title() for panel in panels] == [name.replace("_", " ") for name in errors]
    for panel, found in zip(panels, errors.values(), strict=True):
        assert panel.lines[1].get_ydata() == pytest.approx([100 * error for error in found])

    shares = axes_of(classifiers.confusions(evidence))[0].images[0].get_array() ** 2
    np.testing.assert_allclose(np.asarray(shares).sum(axis=1), 1.0)

    diagram = axes_of(classifiers.reliability(evidence))[1]
    run = classifiers.first_run(evidence, ODD)
    kept = calibration.reliability(run.logits, run.labels, "mass")
    assert diagram.collections[0].get_offsets().data.tolist() == pytest.approx(
        np.stack([kept.confidence, kept.accuracy], axis=1)
    )
    assert f"ECE {100 * kept.error:.1f} %" in diagram.get_title()


def test_the_front_joins_what_nothing_beats(evidence):
    """Dearer and more accurate is on it; dearer and less accurate is not."""
    rows = dict(evidence.rows)
    names = ("a", "b", "c", "d")
    marks = [(100, 0.5), (200, 0.4), (300, 0.9), (400, 0.9)]
    base = rows["rff-max"]
    entries = tuple(Entry("rff-max", label=name) for name in names)
    experiment = replace(evidence.comparison.experiment, models=entries, published={})
    evidence = Evidence(replace(evidence.comparison, experiment=experiment), 24)
    evidence.rows = {
        name: replace(
            base,
            model=name,
            metrics={"accuracy": Summary(height, None, None, 1, None)},
            seconds=cost,
            cost=replace(base.cost, multiply_adds=cost),
        )
        for name, (cost, height) in zip(names, marks, strict=True)
    }
    for axes in axes_of(charts.pareto(evidence)):
        (front,) = [line for line in axes.lines if line.get_drawstyle().startswith("steps")]
        assert sorted(set(front.get_ydata())) == pytest.approx([50.0, 90.0])
        assert len(set(front.get_xdata())) == 2


def test_one_size_one_model_one_seed_has_what_can_be_shown(reported):
    experiment = reported.experiment.changed(models=(Entry("rff-max"),), points=(24,), seeds=(3,))
    runs = [run for run in reported.runs if (run.model, run.points, run.seed) == ("rff-max", 24, 3)]
    small = replace(reported, experiment=experiment, runs=runs, pairs={24: []}, failures=())
    found = list(sections(small))
    # Robustness is shown where it was tested, and that was for the other seed.
    assert [section.title for section in found] == ["Learning curves", "Calibration", "What is taken for what"]
    assert verdicts(small)[0].startswith("At 24 points rff-max has the best accuracy")


def test_a_size_without_a_finished_run_is_left_out(reported):
    runs = [run for run in reported.runs if run.points == 24]
    found = list(sections(replace(reported, runs=runs)))
    assert [section.title for section in found] == [title for title, _ in SECTIONS[1:8]]
    assert {section.name for section in found if section.chart} == {name for _, name in SECTIONS[1:8] if name}


def test_an_empty_title_is_filled_in(reported):
    plain = replace(reported, experiment=replace(reported.experiment, title=""))
    assert describe(plain)["title"] == f"3 models on {reported.experiment.task.title}"


def test_a_model_has_one_colour_in_all_figures(evidence, reported):
    drawn = [classifiers.curves(evidence), classifiers.robustness(evidence)]
    drawn.append(classifiers.curves(Evidence(reported, 12)))
    colours = {tuple(to_hex(line.get_color()) for line in axes_of(figure)[0].lines) for figure in drawn}
    assert len(colours) == 1
    assert len(set(*colours)) == 2


def test_a_report_names_every_commit_that_trained_a_run(reported):
    """The runs of a folder may be older than its report."""
    file = content_of(reported, ODD, 24, 3, "run.json")
    whole = file.read_text()
    try:
        digests.write_json(file, {**json.loads(whole), "commit": "c0ffee", "machine": None})
        found, about = origins(reported), describe(reported)
    finally:
        digests.write_text(file, whole)
    ours = json.loads(whole)
    assert [(one["commit"], one["runs"]) for one in found] == [
        (ours["commit"], len(reported.runs) - 1),
        ("c0ffee", 1),
    ]
    assert about["commit"].endswith("; c0ffee")
    assert "; an unrecorded machine, 1 thread a run" in about["machine"]
    assert about["cite"].startswith(f"pointset ({about['commit']}), seeds 0, 3: ")


def test_errors_on_changed_sets_are_a_table_of_their_own(reported):
    with (reported.folder / "robustness.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["model", "points", "seed", "test", "level", "error"]
    kept = json.loads(content_of(reported, ODD, 24, 0, "robustness.json").read_text())
    own = {
        (row["test"], int(row["level"])): float(row["error"])
        for row in rows
        if (row["model"], row["points"], row["seed"]) == (ODD, "24", "0")
    }
    assert own.pop(("clean", 0)) == kept["clean_error"]
    assert {size: 1.0 - own.pop(("points", int(size))) for size in kept["by_size"]} == pytest.approx(kept["by_size"])
    assert own == {(name, int(level)): error for name, by in kept["errors"].items() for level, error in by.items()}
    assert {row["seed"] for row in rows} == {"0"}, "seed 3 was not asked for"


def test_many_rows_share_colours_by_encoder_and_markers_by_pooling(evidence):
    base, poolings = evidence.rows["rff-max"], ["max", "mean", "sum", "pma", "pma2", "gem"]
    names = [f"{encoder}-{pooling}" for encoder in ("rff", "isab4") for pooling in poolings]
    experiment = replace(evidence.comparison.experiment, models=tuple(map(Entry, names)), published={})
    many = Evidence(replace(evidence.comparison, experiment=experiment), 24)
    many.rows = {
        name: replace(base, model=name, cost=replace(base.cost, multiply_adds=10**6 * (i + 1)), seconds=60.0 + i)
        for i, name in enumerate(names)
    }
    figure = charts.pareto(many)
    styles = {name: charts.style(many, name) for name in names}
    assert len({(one["color"], one["marker"]) for one in styles.values()}) == len(names)
    assert styles["rff-gem"]["color"] == styles["rff-max"]["color"] != styles["isab4-max"]["color"]
    assert styles["rff-gem"]["marker"] == styles["isab4-gem"]["marker"]
    (shown,) = figure.legends
    named = [text.get_text() for text in shown.get_texts()]
    assert named == ["rff-", "isab4-", *(f"-{pooling}" for pooling in poolings)]
    for axes in axes_of(figure):
        drawn = {bar.lines[0].get_color() for bar in axes.containers}
        assert drawn == {styles["rff-max"]["color"], styles["isab4-max"]["color"]}
