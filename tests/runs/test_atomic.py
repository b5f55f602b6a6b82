"""Atomic writes: UTF-8, missing folders, and clear errors for paths of users."""

import os
import subprocess

import pytest

from pointset.errors import PointsetError
from pointset.runs.atomic import (
    check_writable,
    read_json,
    sync_folder,
    write_atomically,
    write_for_user,
    write_json,
    write_text,
)


def test_a_file_of_the_user_is_written_and_what_killed_processes_left_of_it_removed(tmp_path):
    ended = subprocess.Popen(["true"])
    ended.wait()
    path, dead = tmp_path / "new" / "page[1].html", f"{ended.pid}.tmp"
    path.parent.mkdir()
    mine, others = (path.parent / f".{name}.{dead}" for name in (path.name, "page1.html"))
    for left in (mine, others):
        left.touch()
    assert write_for_user(path, lambda temporary: temporary.write_bytes(b"page")) == path
    assert path.read_bytes() == b"page"
    assert set(path.parent.iterdir()) == {path, others}


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("file/page.html", "{}/file is a file, not a folder"),
        ("file/new/page.html", "{}/file is a file, not a folder"),
        ("link/page.html", "{}/link is a broken link, not a folder"),
        ("folder", "it is a folder"),
        ("x" * 300, "File name too long"),
        (f"{'x' * 300}/page.html", "File name too long"),
    ],
)
def test_the_error_for_an_unwritable_path_names_the_cause(place, why, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "folder").mkdir()
    with pytest.raises(PointsetError) as caught:
        write_for_user(tmp_path / place, lambda temporary: temporary.write_bytes(b"page"))
    assert str(caught.value) == f"{tmp_path / place} cannot be written ({why.format(tmp_path)}): choose another path"
    assert {path.name for path in tmp_path.iterdir()} == {"file", "link", "folder"}


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("file/page.html", "{}/file is a file, not a folder"),
        ("no/such/page.html", "the folder {}/no/such does not exist"),
        ("folder", "it is a folder"),
        (f"{'x' * 300}/page.html", "x does not exist"),
    ],
)
def test_a_path_that_cannot_be_written_is_an_error_before_the_work_starts(place, why, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    check_writable(tmp_path / "page.html")
    with pytest.raises(PointsetError) as caught:
        check_writable(tmp_path / place)
    assert str(caught.value).startswith(f"{tmp_path / place} cannot be written: ")
    assert str(caught.value).endswith(why.format(tmp_path))


def test_text_is_utf8_and_json_is_read_back(tmp_path):
    write_text(tmp_path / "a" / "b" / "names.txt", "Stühle\n")
    assert (tmp_path / "a" / "b" / "names.txt").read_bytes() == b"St\xc3\xbchle\n"
    write_json(tmp_path / "a.json", {"ü": [1, 2]})
    assert (tmp_path / "a.json").read_bytes() == b'{\n  "\\u00fc": [\n    1,\n    2\n  ]\n}\n'
    (tmp_path / "a.json").write_bytes(b'{"\xc3\xbc": 1}')
    assert read_json(tmp_path / "a.json") == {"ü": 1}


@pytest.mark.parametrize(("content", "why"), [(b"{", "line 1 column 2"), (b"\xff", "can't decode byte 0xff")])
def test_json_that_is_damaged_is_named(content, why, tmp_path):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(
        PointsetError, match=rf"a\.json is not valid JSON \(.*{why}.*\): restore it or delete its folder"
    ):
        read_json(tmp_path / "a.json")


def test_files_are_flushed_before_they_are_renamed_and_folders_with_what_is_in_them(tmp_path, monkeypatch):
    flushed, path = [], tmp_path / "a.bin"
    monkeypatch.setattr(os, "fsync", lambda number: flushed.append((os.fstat(number).st_ino, path.exists())))
    write_atomically(path, lambda temporary: temporary.write_bytes(b"1"))
    sync_folder(tmp_path)
    file, folder = path.stat().st_ino, tmp_path.stat().st_ino
    assert flushed == [(file, False), (file, True), (folder, True)]
