"""The page of results agrees with the saved results."""

import page
from saved import FOLDER, read_all
from sections import SECTIONS


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
