"""The page of results: it agrees with the saved results, and keeping a comparison is one command."""

import json
import shutil
from pathlib import Path

import page
import pytest
from frontiers import FIGURES, TIMED, written_digest
from joining import PREDICTIONS
from saved import FOLDER, TABLES, read_all
from sections import SECTIONS, grid

from pointset.runs.atomic import write_json, write_text
from pointset.runs.spreadsheets import as_csv, read_csv
from pointset.training import devices


def test_the_page_and_its_figures_stand_as_the_saved_results_make_them():
    assert page.outdated(FOLDER) == [], "run scripts/experiments/page.py"


def test_every_saved_result_is_on_the_page_with_where_it_comes_from():
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    for name, one in read_all().items():
        assert f"(`{name}`)" in text
        assert f"```\n{one.about['command']}\n```\n\n{one.about['date']}, commit {one.about['commit']}" in text
        assert one.table in text or name in SECTIONS[0].names
    for section in SECTIONS:
        for name in section.names:
            assert (f"(`{name}`)" in text) != (f"### {name}\n\nOpen: " in text)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Saved results in a folder of their own."""
    for name in ("modern", "minutes_100"):
        shutil.copytree(FOLDER / "results" / name, tmp_path / "page" / "results" / name)
    return tmp_path / "page"


def test_a_changed_figure_or_table_is_noticed(copy):
    assert set(page.outdated(copy)) == {"README.md", *FIGURES}
    page.write(copy)
    assert page.outdated(copy) == []
    about_file = copy / "results" / "minutes_100" / "about.json"
    found = json.loads(about_file.read_text())
    found["rows"][0]["seconds"] += 1
    write_json(about_file, found)
    assert page.outdated(copy) == ["README.md", "figures/training-seconds.png"]
    with (copy / "results" / "modern" / "table.md").open("a") as table:
        table.write("more")
    page.write(copy)
    assert page.outdated(copy) == []
    assert written_digest(copy / "figures/multiply-adds.png")


@pytest.mark.slow
def test_a_finished_comparison_is_kept_by_one_command(reported, copy, tmp_path, capsys):
    finished = shutil.copytree(reported.folder, tmp_path / "finished", ignore=shutil.ignore_patterns("figures"))
    assert page.app(["--save", str(finished), "--folder", str(copy)]) == 2
    assert "4 runs that failed, too cold first" in capsys.readouterr().err
    found = json.loads((finished / "results.json").read_text())
    write_json(finished / "results.json", {**found, "failures": [], "command": "pointset compare x.toml --out /y/z"})
    options = ["--name", "mine", "--note", "It took an hour.", "--folder", str(copy)]
    assert page.app(["--save", str(finished), *options]) == 0
    kept = read_all(copy / "results")["mine"]
    assert {file.name for file in kept.folder.iterdir()} == {"about.json", PREDICTIONS, *TABLES}
    assert [(row.label, row.points, row.mean) for row in kept.rows] == [
        (row.model, row.points, row.metrics["accuracy"].mean) for row in reported.rows
    ]
    assert [row.multiply_adds for row in kept.rows] == [row.cost.multiply_adds for row in reported.rows]
    assert kept.rows[0].parts == ("rff", "max")
    level = {(row.points, row.label): row.level for row in kept.rows}
    for size, pairs in reported.pairs.items():
        for pair in pairs:
            told_apart = pair.second not in level[size, pair.first]
            assert told_apart == (pair.first not in level[size, pair.second]) == pair.distinguishable
    text = (copy / "README.md").read_text(encoding="utf-8")
    assert "## Further results\n\n### Two <b>models</b> (`mine`)" in text
    assert "\n\nIt took an hour.\n\n```\npointset compare x.toml\n```\n\n" in text
    assert "[`robustness.csv`](results/mine/robustness.csv)" in text
    # Seconds as they were timed apart, of two runs each.
    estimates = [{"model": row.label, "points": row.points, "runs": 2, "seconds": 7.0} for row in kept.rows]
    (tmp_path / "timed.json").write_text(json.dumps({"runs": estimates}))
    timed = ["--timed", str(tmp_path / "timed.json")]
    assert page.app(["--save", str(finished), *options, *timed]) == 0
    assert {row.seconds for row in read_all(copy / "results")["mine"].rows} == {3.5}
    (tmp_path / "timed.json").write_text(json.dumps({"runs": estimates[1:]}))
    assert page.app(["--save", str(finished), *options, *timed]) == 2
    assert f"{kept.rows[0].label} at {kept.rows[0].points} points was not timed in" in capsys.readouterr().err


EXPERIMENT = """
title = "Two <b>models</b>"
data = "{data}"
points = [24, 12]
models = ["rff-max", {{ name = "isab4-pma", label = "ISAB & PMA <4>" }}]
[model]
dim = 16
[recipe]
epochs = 3
batch_size = 16
validation = 0.2
precision = "auto"
[published.rff-max]
24 = [0.5, 0.02, 5]
"""


@pytest.mark.slow
def test_adding_seeds_and_rows_later_gives_the_same_tables_as_all_at_once(
    reported, copy, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(devices, "bfloat16_speed", lambda device: 4.0)  # "auto", here, would now be bfloat16
    whole = shutil.copytree(reported.folder, tmp_path / "whole", ignore=shutil.ignore_patterns("figures"))
    found = json.loads((whole / "results.json").read_text())
    found["failures"] = []
    found["configuration"]["models"] = [m for m in found["configuration"]["models"] if m["label"] != "too cold"]
    write_json(whole / "results.json", found)
    (copy / "mine.toml").write_text(EXPERIMENT.format(data=reported.experiment.task.data), encoding="utf-8")
    options = ["--name", "mine", "--folder", str(copy)]

    def keep(folder: Path, *further: str) -> int:
        return page.app(["--save", str(folder), *options, *further])

    def part(column: str, value: str) -> Path:
        folder = shutil.copytree(whole, tmp_path / value)
        for name in ("results.csv", "robustness.csv"):
            own = [line for line in read_csv(folder / name) if line[column] == value]
            write_text(folder / name, as_csv(own)) if own else (folder / name).unlink()
        return folder

    def of_row(label: str) -> Path:
        folder = part("model", label)
        rows = [row for row in found["rows"] if row["model"] == label]
        models = [model for model in found["configuration"]["models"] if model["label"] == label]
        configuration = {**found["configuration"], "models": models}
        write_json(folder / "results.json", {**found, "rows": rows, "configuration": configuration})
        return folder

    def as_kept() -> dict[str, object]:
        return {name: (kept / name).read_bytes() for name in TABLES} | {"rows": read_all(copy / "results")["mine"].rows}

    assert keep(whole) == 0
    kept = copy / "results" / "mine"
    before = as_kept()
    first, second = part("seed", "3"), part("seed", "0")
    assert keep(first) == 0
    assert len(read_csv(kept / "results.csv")) == 4
    # The other machine rounds otherwise.
    second_found = json.loads((second / "results.json").read_text())
    second_found["configuration"]["recipe"]["precision"] = "bfloat16"
    write_json(second / "results.json", second_found)
    assert keep(second, "--add") == 0
    assert "; trained in float32 and bfloat16. Every run: " in (copy / "README.md").read_text(encoding="utf-8")
    assert as_kept() == before
    assert keep(of_row("ISAB & PMA <4>")) == 0
    assert len(read_csv(kept / "results.csv")) == 4
    assert keep(of_row("rff-max"), "--add") == 0
    assert as_kept() == before
    # The same seeds again are refused, and nothing is lost.
    assert keep(second, "--add") == 2
    assert "kept already" in capsys.readouterr().err
    assert as_kept() == before


def test_a_grid_has_encoders_beside_each_other():
    (accuracies, legend, best, costs, caption) = grid(read_all()["modern"])
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in accuracies.splitlines()]
    assert lines[0] == ["accuracy %", "rff-", "rffp-", "isab16-"]
    assert lines[2] == ["-max", "**82.2 ± 0.3**", "**83.8 ± 0.3**", "85.7 ± 0.6"]
    assert lines[3] == ["-pma", "79.6 ± 0.9", "", "**86.8 ± 0.1**"]
    assert "Best of all: isab16-pma, 86.8 %. Not distinguishable from it: none." in best
    assert "19.8 / 430 / 0.4" in costs
    assert "3 seeds" in caption
    assert "Holm" in legend


def test_only_seconds_of_one_machine_are_in_one_figure():
    found = read_all()
    seconds, operations = FIGURES["figures/training-seconds.png"], FIGURES["figures/multiply-adds.png"]
    names = [dot.name for dot in seconds.dots(found, (100,))]
    assert "dumlp16-max+dumlp16, width 64 (minutes_100)" in names
    assert len(names) == sum(row.points == 100 for name in TIMED if name in found for row in found[name].rows)
    assert len(names) < len(operations.dots(found, (100,)))
