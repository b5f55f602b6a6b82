"""Names of models, and the errors for unknown ones."""

import pytest

from pointset.errors import PointsetError
from pointset.zoo.names import zoo_name


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
