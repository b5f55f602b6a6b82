"""The page of results: it agrees with the saved results, and keeping a comparison is one command."""

import json
import shutil
from pathlib import Path

import page
import pytest
from frontiers import FIGURES, TIMED, written_digest
from saved import FOLDER, PREDICTIONS, TABLES, read_all
from sections import SECTIONS, grid

from pointset.runs.atomic import write_json


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
