"""Names of models, and the errors for unknown ones."""

import pytest

import pointset
from pointset.errors import PointsetError
from pointset.zoo.names import zoo_name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("isab16-pam", "did you mean isab16-pma"),
        ("isab0-max", "did you mean .*isab16-max"),
        ("rff", "did you mean rff-"),
        ("isab16-max+aggr.lstm", "'lstm' is not an aggregation of sets"),
        ("isab16-max+cov257", "cov257 gives 33,153 numbers for each set: give at most cov256"),
        ("isab16-pswe", "did you mean isab16-f?pswe64"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(name, words):
    with pytest.raises(PointsetError, match=words):
        pointset.create_model(name)


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ("isab16-pma", "isab16-pma"),
        ("rFF + mean", "rff-mean"),
        ("rFFp-mean + mean", "rffp-mean"),
        ("rFFp-max + PMA", "rffp-pma"),
        ("rFFp + sum", "rffp-sum"),
        ("ISAB16 + max+mean", "isab16-max+mean"),
        ("rFFp-mean + mean+PMA", "rffp-mean+pma"),
        ("SAB + PMA4", "sab-pma4"),
        ("SAB + aggr.softmax", "sab-aggr.softmax"),
    ],
)
def test_rows_of_the_papers_tables_are_models(row, name):
    assert zoo_name(row) == name


@pytest.mark.parametrize(
    "row",
    [
        "rFF",
        "rFFp-max + mean",
        "rFFp-max + mean+max",
        "rFF-max + max",
        "SAB + median",
        "ISAB0 + PMA",
        "rFF + mean ",
        "pointnet + max",
    ],
)
def test_other_rows_are_refused(row):
    with pytest.raises(PointsetError, match=f"(?i){row.split()[0].split('-')[0]}"):
        zoo_name(row)


@pytest.mark.parametrize("name", ["isab99999999999-max", "sab-pma5000"])
def test_too_many_rows_are_refused_before_memory_is_asked_for(name):
    with pytest.raises(PointsetError, match="at most 4096"):
        pointset.create_model(name)
