"""The content of a report, and its pages: results from the folders of runs, tables, rankings, sections and figures."""

import json
import re
import shutil
from statistics import fmean
from xml.etree import ElementTree

import numpy as np
import pandas
import pytest
from lxml.html import HtmlElement, fromstring
from toy import ODD

from pointset.comparison.charts import pareto
from pointset.comparison.comparing import report_finished
from pointset.comparison.experiment import Entry
from pointset.comparison.report.sections import report_texts
from pointset.comparison.results import origins
from pointset.comparison.runs import make_runs
from pointset.errors import PointsetError
from pointset.evaluation import calibration
from pointset.evaluation.predictions import load_predictions
from pointset.evaluation.robustness import robustness_of, robustness_table
from pointset.runs import records
from pointset.tasks import classification_report as classifiers
from pointset.tasks.classification_report import calibration_table, class_table

pytestmark = pytest.mark.slow


def saved(reported, label: str, seed: int, name: str) -> dict:
    return json.loads((reported.run(label, seed, 24).folder / name).read_text())


@pytest.fixture(scope="module")
def results(reported):
    return reported.results(24)


def test_curves_and_robustness_are_what_lies_in_the_folders(reported, results):
    assert list(results) == ["rff-max", ODD]
    files = [(reported.run(ODD, seed, 24).folder / "history.jsonl") for seed in (0, 3)]
    histories = [[json.loads(line) for line in file.read_text().splitlines()] for file in files]
    assert results.curves(ODD, "validation_accuracy") == [
        [row["validation_accuracy"] for row in rows] for rows in histories
    ]
    assert results.curves(ODD, "no such column") == []
    assert list(robustness_of(results.folders[ODD])) == [0], "seed 3 was not asked for"


def test_tables_of_the_report(reported, results):
    first, second = robustness_table({label: robustness_of(results.folders[label]) for label in results})
    assert (first["model"], first["mCE %"], first["seeds"]) == ("rff-max", "100.0", 1)
    ours, base = (saved(reported, label, 0, "robustness.json") for label in (ODD, "rff-max"))
    pairs = [(ours["errors"][name], errors) for name, errors in base["errors"].items()]
    relative = fmean(fmean(own.values()) / fmean(theirs.values()) for own, theirs in pairs)
    assert second["mCE %"] == f"{100 * relative:.1f}"
    assert second["clean error %"] == f"{100 * ours['clean_error']:.1f}"
    assert second["accuracy % at 16"] == f"{100 * ours['by_size']['16']:.1f}"

    calibrated = calibration_table(results)[1]
    metrics = results.rows[ODD].metrics
    assert calibrated["ECE %, equal mass"] == f"{100 * metrics['calibration_error_equal_mass'].mean:.1f}"
    assert calibrated["Brier"] == f"{metrics['brier'].mean:.3f}"

    classes = class_table(results)
    assert [(row["class"], row["shapes"]) for row in classes] == [("ball", 20), ("box", 20), ("rod", 20)]
    runs = [load_predictions(folder) for folder in results.folders["rff-max"].values()]
    assert classes[2]["rff-max %"] == f"{100 * fmean(run.per_class['rod'] for run in runs):.1f}"


def test_a_report_can_be_made_of_what_is_finished(reported, tmp_path):
    folder = shutil.copytree(reported.folder, tmp_path / "copy")
    experiment = reported.experiment.changed(points=(24,))
    (unfinished,) = make_runs(experiment.changed(models=(Entry.of("rff-max"),), seeds=(3,)), folder)
    unfinished.result_file.unlink()
    (folder / "costs-n24.json").unlink()
    found = report_finished(experiment, folder)
    assert [(run.model, run.seed) for run in found.runs] == [("rff-max", 0), (ODD, 0), (ODD, 3)]
    assert not unfinished.result_file.exists(), "nothing is run"
    assert not (folder / "costs-n24.json").exists(), "nothing is timed"
    assert all(row.cost is None for row in found.rows)
    assert "too cold" not in (folder / "report.html").read_text(encoding="utf-8").split("Configuration")[0]
    for one in found.runs:
        one.result_file.unlink()
    with pytest.raises(PointsetError, match=r"no run in .* is finished"):
        report_finished(experiment, folder)
    with pytest.raises(PointsetError, match=r"no run in .* is finished"):
        report_finished(experiment, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_report_names_every_commit_that_trained_a_run(reported):
    """The runs of a folder may be older than its report."""
    file = reported.run(ODD, 3, 24).folder / "run.json"
    whole = file.read_text()
    without_machine = {key: value for key, value in json.loads(whole).items() if key != "machine"}
    try:
        records.write_json(file, {**without_machine, "commit": "c0ffee"})
        found, about = origins(reported), report_texts(reported)
    finally:
        records.write_text(file, whole)
    ours = json.loads(whole)
    runs = len(reported.runs)
    assert [(one["commit"], one["runs"]) for one in found] == [(ours["commit"], runs - 1), ("c0ffee", 1)]
    assert about["commit"].endswith("; c0ffee")
    assert "; an unrecorded machine, 1 thread a run" in about["machine"]
    assert about["cite"].startswith(f"pointset ({about['commit']}), seeds 0, 3: ")


def test_errors_on_changed_sets_are_a_table_of_their_own(reported):
    rows = pandas.read_csv(reported.folder / "robustness.csv")
    assert list(rows) == ["model", "points", "seed", "test", "level", "error"]
    assert set(rows.seed) == {0}, "seed 3 was not asked for"
    kept = saved(reported, ODD, 0, "robustness.json")
    own = rows[(rows.model == ODD) & (rows.points == 24)].set_index(["test", "level"]).error.to_dict()
    assert own.pop(("clean", 0)) == pytest.approx(kept["clean_error"])
    assert {size: 1.0 - own.pop(("points", int(size))) for size in kept["by_size"]} == pytest.approx(kept["by_size"])
    expected = {(name, int(level)): error for name, by in kept["errors"].items() for level, error in by.items()}
    assert own == pytest.approx(expected)


def axes_of(figure) -> list:
    return [axes for axes in figure.axes if axes.axison]


def test_curves_and_points_are_at_their_values(reported, results):
    training, validation = axes_of(next(classifiers.sections(results)).chart)
    for axes, name in ((training, "accuracy"), (validation, "validation_accuracy")):
        for line, model in zip(axes.lines, results, strict=True):
            assert list(line.get_xdata()) == [1, 2, 3]
            assert list(line.get_ydata()) == pytest.approx(100 * np.mean(results.curves(model, name), axis=0))
    assert (training.get_ylabel(), validation.get_ylabel()) == ("training accuracy %", "validation accuracy %")
    assert [tick for tick in training.get_xticks() if 1 <= tick <= 3] == [1, 2, 3], "whole epochs"

    costs, seconds = axes_of(pareto(results))
    rows = results.rows.values()
    for bars in zip(costs.containers, seconds.containers, rows, strict=True):
        *drawn, row = bars
        accuracy = 100 * row.metrics["accuracy"].mean
        expected = [(row.cost.multiply_adds / 1e6, accuracy), (row.seconds, accuracy)]
        assert [tuple(bar.lines[0].get_xydata()[0]) for bar in drawn] == [pytest.approx(dot) for dot in expected]

    diagram = axes_of(classifiers.reliability_section(results))[1]
    run = load_predictions(results.first(ODD))
    kept = calibration.reliability(run.logits, run.labels, "mass")
    np.testing.assert_allclose(diagram.collections[0].get_offsets(), np.c_[kept.confidence, kept.accuracy])
    assert f"ECE {100 * kept.error:.1f} %" in diagram.get_title()


def test_the_tables_of_a_comparison_agree_with_it(reported):
    classes, predictions = (pandas.read_csv(reported.folder / name) for name in ("classes.csv", "predictions.csv"))
    for run in reported.runs:
        own = classes[(classes.model == run.model) & (classes.points == run.points) & (classes.seed == run.seed)]
        accuracy = run.metrics["accuracy"]
        assert [*zip(own["class"], own.shapes, strict=True)] == [("ball", 20), ("box", 20), ("rod", 20)]
        assert [*own.accuracy] == pytest.approx([*load_predictions(run.folder).per_class.values()])
        data = predictions[predictions.data == f"{run.points} points"]
        rows = data[(data.model == run.model) & (data.seed == run.seed)]
        assert (rows.label == rows.prediction).mean() == pytest.approx(accuracy)


SECTIONS = {
    "Significant differences": "matrix",
    "Accuracy against cost": "pareto",
    "Learning curves": "learning-curves",
    "Corrupted and smaller test sets": "",
    "Calibration": "reliability",
    "Confusion matrices": "confusion",
    "Accuracy of every class": "",
}
"""Titles of the sections of a size, with the names of their charts."""
SIZED = [(f"{title}, {n} points", name and f"{name}-n{n}") for n in (24, 12) for title, name in SECTIONS.items()]
CHARTS = {title: name for title, name in SIZED if name}


@pytest.fixture(scope="module")
def html(reported) -> str:
    return (reported.folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(html) -> HtmlElement:
    return fromstring(html)


def texts(page: HtmlElement, tag: str) -> list[str]:
    return [element.text_content().strip() for element in page.iter(tag)]


def test_the_page_is_whole_with_every_section_and_figure_and_the_best_rows_bold(reported, html, page):
    elements = re.sub(r"<(script|style)[ >].*?</\1>", "", html, flags=re.DOTALL)
    opened, closed = re.findall(r"<([a-z]\w*)(?:\s[^>]*[^/>])?>", elements), re.findall(r"</(\w+)>", elements)
    assert sorted(tag for tag in opened if tag not in ("meta", "img", "br", "wbr")) == sorted(closed)
    assert texts(page, "h2") == [*dict(SIZED), "How to repeat and cite"]
    assert page.xpath("//figure/@aria-label") == [*CHARTS]
    assert len(page.xpath("//svg")) == len(CHARTS)
    charts = [*(reported.folder / "figures").glob("*.svg")]
    assert {path.stem for path in charts} == {*CHARTS.values()}
    for path in charts:  # text is text
        words = [element.text for element in ElementTree.parse(path).iter() if element.tag.endswith("}text")]
        assert len([word for word in words if word]) > 5, path.name
    (policy,) = page.xpath("//meta[@http-equiv]/@content")
    assert "default-src 'none'" in policy
    _, *rows = (row.get("class") for row in page.iter("tr"))  # the first is the head
    assert rows[: len(reported.rows)] == ["best" if row.best else None for row in reported.rows]
    assert sum(row.best for row in reported.rows) == 2


def test_what_users_wrote_is_text_and_no_markup(reported, html, page):
    assert texts(page, "title") == texts(page, "h1") == ["Two <b>models</b>"]
    assert ODD in texts(page, "td")
    assert "<4>" not in html
    assert "<b>" not in html
    assert "ISAB &amp; PMA &lt;4&gt;" in reported._repr_html_()


def test_the_page_says_what_was_run_what_failed_and_how_to_repeat_it(reported, page):
    assert [failure.model for failure in reported.failures] == ["too cold"] * 4
    assert {f"Failed: {failure.name}: {failure.reason}" for failure in reported.failures} < {*texts(page, "p")}
    assert "too cold" not in texts(page, "td")
    configuration = next(text for text in texts(page, "pre") if text.startswith("{"))
    assert json.loads(configuration) == json.loads(json.dumps(reported.experiment.as_dict()))
    about = dict(zip(texts(page, "dt"), texts(page, "dd"), strict=True))
    assert about["seeds"] == "0, 3"
    assert "1 thread a run" in about["machine"]
    assert "torch 2." in about["versions"]
    assert reported.caption() in about["cite"]
    assert re.match(r"[0-9a-f]{40}\+?$|pointset \d", about["commit"])
    machine = json.loads((reported.run("rff-max", 0, 24).folder / "run.json").read_text())["machine"]
    assert about["machine"].startswith(f"{machine['system']}, {machine['cores']} cores, ")
