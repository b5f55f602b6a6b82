"""The page of a check: a picture of each suspect beside its twin, or a shape of the class that it would be instead."""

from itertools import islice

from pointset.checking.check import ORDER, Check, Suspect
from pointset.errors import counted, escaped
from pointset.viz.html_page import Page, ShapePicture, make_pictures_page

SHOWN = 24
"""Suspects of each place that are drawn."""
TITLES = {
    "split": "In two splits, or nearly",
    "classes": "In two classes",
    "label": "Perhaps another class",
    "class": "There twice, or nearly",
    "odd": "Unlike the others",
}


def make_check_page(check: Check) -> Page:
    """A page with pictures of the first suspects of each kind, the most serious first."""
    shapes = check.shapes
    tiles, counts = list[ShapePicture](), list[str]()
    for where in ORDER:
        suspects = [each for each in check.of(where) if each.row >= 0]
        counts += [f"{TITLES[where].lower()}: {len(suspects):,}"] if suspects else []
        tiles += [_tile(check, each) for each in islice(suspects, SHOWN)]
    note = f"{len(shapes.names):,} shapes were read. {'; '.join(counts).capitalize() or 'Nothing is suspicious'}."
    note += f" {check.doubt.capitalize()}." * bool(check.doubt)
    if unreadable := len(check.suspects) - sum(each.row >= 0 for each in check.suspects):
        note += f" {counted(unreadable, 'file')} cannot be read."
    if len(check.suspects) > len(tiles):
        note += f" At most {SHOWN} of each kind are drawn; the table (-o check.csv) has all."
    title = escaped(f"Check of {shapes.name}")
    return make_pictures_page(tiles, title=title, note=escaped(note), up=shapes.sets[0].up)


def _tile(check: Check, suspect: Suspect) -> ShapePicture:
    rows = [suspect.row, suspect.other] if suspect.other >= 0 else [suspect.row]
    beside = f"; right: {suspect.twin}" if suspect.other >= 0 else ""
    note = f"{suspect.kind}: {suspect.note}{beside}"
    return ShapePicture(
        [check.shapes.cloud(row) for row in rows], escaped(f"{TITLES[suspect.where]}: {suspect.file}"), escaped(note)
    )
