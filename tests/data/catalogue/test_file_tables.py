"""Tables of labels, groups and files to leave out, as spreadsheets write them."""

import codecs
import json
from pathlib import Path

import numpy as np
import pandas
import pytest
from command_line import succeed
from toy import save

import pointset
from pointset import PointsetError
from pointset.data.catalogue.file_tables import rows_by_file
from pointset.data.catalogue.folders import list_folder
from pointset.runs.spreadsheets import read_csv

NAMES = ["scans/a 1.ply", "scans/b.ply", "scans/c\u00e9.ply"]
ROWS = {NAMES[0]: {"label": "bed, old"}, NAMES[1]: {"label": "chair"}, NAMES[2]: {"label": "chair"}}
TEXT = 'file,label\nscans/a 1.ply,"bed, old"\nscans/b.ply,chair\nscans/c\u00e9.ply,chair\n'
SEMICOLONS = TEXT.replace(",", ";").replace("bed; old", "bed, old")


@pytest.mark.parametrize(
    "content",
    [
        TEXT.encode(),
        codecs.BOM_UTF8 + TEXT.replace("\n", "\r\n").encode(),
        SEMICOLONS.encode("cp1252"),
        ("sep=;\n" + SEMICOLONS).encode(),
        TEXT.replace(",", "\t").replace("bed\t", "bed,").encode("utf-16"),
        TEXT.replace("file,label", "filename,category").encode(),
        TEXT.replace("scans/", "scans\\").encode(),
        TEXT.replace("scans/", "./scans/").replace(".ply", "").encode(),
        TEXT.replace("scans/", "").replace(".ply", ".obj").encode(),
        TEXT.replace("c\u00e9", "ce\u0301").replace("file,label", "Label,Path").encode(),
        TEXT.partition("\n")[2].encode(),
    ],
)
def test_rows_as_spreadsheets_write_them(content, tmp_path):
    if content.startswith(b"Label"):
        lines = [line.split(",", 1) for line in content.decode().splitlines()[1:]]
        content = "\n".join(["Label,Path", *(f"{label},{file}" for file, label in lines)]).encode()
    (tmp_path / "table.csv").write_bytes(content)
    assert rows_by_file("labels", Path("table.csv"), tmp_path, NAMES, "label") == ROWS


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it is empty"),
        ("file,label\nscans/b.ply,\n", "has no label"),
        ("file,label\nscans/b.ply,chair\nb,bed\n", "two different rows for 'scans/b.ply'"),
        ("name,quality,species\nb,1,chair\n", "no column 'label': rename one of 'quality', 'species' to it"),
        ("file,label\nx.ply,chair\n", "names no file of .*: its first row has 'x.ply'"),
    ],
)
def test_tables_that_are_refused(text, words, tmp_path):
    (tmp_path / "table.csv").write_text(text)
    with pytest.raises(PointsetError, match=f"--labels .*table.csv .*{words}"):
        rows_by_file("labels", tmp_path / "table.csv", tmp_path, NAMES, "label")


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("file,label,splt", r"table.csv: column 'splt' is not used \(known: file, label, split, group\)"),
        ("file,label,splt,weight", "table.csv: columns 'splt', 'weight' are not used"),
    ],
)
def test_columns_that_are_not_used_are_named(header, words, tmp_path):
    (tmp_path / "table.csv").write_text(f"{header}\nb,chair,2\n")
    with pytest.warns(UserWarning, match=words):
        assert rows_by_file("labels", Path("table.csv"), tmp_path, NAMES, "label") == {NAMES[1]: {"label": "chair"}}


@pytest.fixture
def folder(tmp_path):
    """A flat folder of twelve clouds, and a table of ten of them beside it, with two groups in each split."""
    generator = np.random.default_rng(0)
    for number in range(12):
        save(tmp_path / "clouds" / f"{number}.npy", generator.normal(size=(16, 3)))
    rows = [f"clouds\\{row}.npy;{'ab'[row % 2]};{'Training' if row < 6 else 'test'};g{row // 3}" for row in range(10)]
    (tmp_path / "table.csv").write_text("\n".join(["File;Label;Split;Group", *rows, "99.npy;a;test;g9", "11;;test;g9"]))
    return tmp_path / "clouds"


NOTED = "1 file without a row in table.csv, the first '10.npy'; 1 file without a label in table.csv, the first '11.npy'"


@pytest.mark.filterwarnings("ignore:.*csv. 1 row without a file in .*clouds. 99.npy")
def test_labels_splits_and_groups_of_a_flat_folder(folder, home):
    table = folder.parent / "table.csv"
    with pytest.warns(UserWarning, match=f"clouds has files that are skipped: {NOTED}"):
        train = pointset.load_dataset(folder, points=16, labels=str(table))
    with pytest.warns(UserWarning, match=NOTED):
        test = pointset.load_dataset(folder, "test", points=16, labels=str(table))
    assert train.classes == test.classes == ["a", "b"]
    assert train.names == ["0.npy", "2.npy", "4.npy", "1.npy", "3.npy", "5.npy"]
    assert train.grouping.groups.tolist() == [0, 0, 1, 0, 1, 1]
    assert len(test) == 4
    with pytest.warns(UserWarning, match=NOTED):
        assert pointset.load_dataset(folder, points=16, labels=str(table), groups="none").groups is None
    frame = pandas.read_csv(table, sep=";").dropna().rename(columns=str.lower).drop(columns="split")
    with pytest.warns(UserWarning, match="2 files without a row in"):
        sets = [pointset.load_dataset(folder, split, points=16, labels=frame) for split in ("train", "test")]
    trained, tested = ({int(name.removesuffix(".npy")) // 3 for name in one.names} for one in sets)
    assert len(sets[0]) + len(sets[1]) == 10
    assert not trained & tested


@pytest.mark.filterwarnings("ignore:.*files that are skipped")
def test_rows_without_a_file_and_incomplete_splits_are_named(folder):
    table = folder.parent / "table.csv"
    with pytest.warns(UserWarning, match=r"table.csv: 1 row without a file in .*clouds: 99.npy"):
        list_folder(folder, labels=str(table))
    table.write_text("file,label,split\n0,a,train\n1,b,\n")
    with pytest.raises(PointsetError, match=r"table.csv has no split for '1.npy': give all files a split, or none"):
        list_folder(folder, labels=str(table))
    table.write_text("file,label,split\n0,a,train\n1,b,holdout\n")
    with pytest.raises(PointsetError, match=r"split 'holdout' in table.csv is none of train, test, validation"):
        list_folder(folder, labels=str(table))


@pytest.mark.filterwarnings("ignore:.*(files that are skipped|without a file)")
def test_a_table_is_written_corrected_and_taken_by_the_commands(folder, tmp_path, capsys):
    table, written = folder.parent / "table.csv", tmp_path / "written.csv"
    succeed(capsys, "data", "show", folder, "--labels", table, "--write-labels", written)
    rows = read_csv(written)
    assert rows[0] == {"file": "0.npy", "label": "a", "split": "train", "group": "g0"}
    assert len(rows) == 10
    written.write_text(written.read_text().replace("0.npy,a,", "0.npy,b,"))
    run = ("--run", tmp_path / "run", "--points", "16", "--epochs", "1")
    succeed(capsys, "train", "rff-max", "--data", folder, "--labels", written, *run)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["data"]["labels"] == str(written)
    assert json.loads(succeed(capsys, "evaluate", "--model", tmp_path / "run", "--json"))["shapes"] == 4
    written.write_text(written.read_text().replace("9.npy,b,test,g3\n", ""))
    other = ("--data", folder, "--labels", written, "--json")
    assert json.loads(succeed(capsys, "evaluate", "--model", tmp_path / "run", *other))["shapes"] == 3
    assert "9 shapes" in succeed(capsys, "data", "check", folder, "--labels", written)


@pytest.mark.filterwarnings("ignore:.*without.csv")
def test_tables_of_groups_and_of_files_to_leave_out_list_names_without_a_file(tmp_path):
    generator = np.random.default_rng(0)
    for label, number in np.ndindex(2, 6):
        save(tmp_path / "data" / "ab"[label] / f"{label}{number}.npy", generator.normal(size=(16, 3)))
    rows = [f"a\\0{number};g{number // 2}" for number in range(6)] + [
        f"1{number};h{number // 2}" for number in range(6)
    ]
    (tmp_path / "groups.csv").write_bytes(codecs.BOM_UTF8 + "\n".join(["name;object", *rows, "x/y.npy;z"]).encode())
    (tmp_path / "without.csv").write_text("file\tnote\na/00.npy\t\nb\\10\tbad\nnone.npy\t\n")
    how = {"points": 16, "groups": str(tmp_path / "groups.csv"), "without": str(tmp_path / "without.csv")}
    for split in ("train", "test"):
        with pytest.warns(UserWarning, match=r"groups.csv: 1 row without a file in .*: x/y.npy"):
            sets = pointset.load_dataset(tmp_path / "data", split, **how)
        assert not {"a/00.npy", "b/10.npy"} & {*sets.names}
        assert sets.groups is not None
