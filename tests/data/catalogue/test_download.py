"""Downloads from a real server: resumed at the right byte, never mixed from two versions, clear errors."""

import hashlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from serving import Site, served

from pointset.data.catalogue.cards import Download
from pointset.data.catalogue.download import TRIES, Part, download
from pointset.errors import PointsetError

CONTENT = np.random.default_rng(0).bytes(3_000_000)
OTHER = np.random.default_rng(1).bytes(3_000_000)
RIGHT = Download(size=len(CONTENT), sha256=hashlib.sha256(CONTENT).hexdigest(), md5=hashlib.md5(CONTENT).hexdigest())
UNKNOWN = Download()


@pytest.fixture
def site() -> Iterator[Site]:
    with served(Site({"/file.zip": CONTENT})) as running:
        yield running


def get(site: Site, target: Path, expected: Download = RIGHT, *mirrors: str) -> None:
    download(mirrors or (f"{site.url}/file.zip",), target, expected, progress=False, pause=0)


@pytest.mark.parametrize("expected", [RIGHT, UNKNOWN])
def test_a_file_is_downloaded_whole_and_nothing_else_is_left(site: Site, tmp_path: Path, expected: Download) -> None:
    get(site, tmp_path / "file.zip", expected)
    assert (tmp_path / "file.zip").read_bytes() == CONTENT
    assert [path.name for path in tmp_path.iterdir()] == ["file.zip"]


def test_a_cut_connection_goes_on_at_the_right_byte(site: Site, tmp_path: Path) -> None:
    site.cuts = [1_000_000, 500_000]
    get(site, tmp_path / "file.zip")
    assert (tmp_path / "file.zip").read_bytes() == CONTENT
    assert [asked for _, asked in site.asked] == [None, "bytes=1000000-", "bytes=1500000-"]


def test_a_download_that_was_given_up_goes_on_the_next_time(site: Site, tmp_path: Path) -> None:
    site.cuts = [700_000] + [0] * TRIES
    with pytest.raises(PointsetError, match=f"the connection was cut {TRIES} times in a row"):
        get(site, tmp_path / "file.zip")
    site.asked.clear()
    get(site, tmp_path / "file.zip")
    assert [asked for _, asked in site.asked] == ["bytes=700000-"]
    assert (tmp_path / "file.zip").read_bytes() == CONTENT


def test_a_server_without_ranges_begins_anew(site: Site, tmp_path: Path) -> None:
    site.ranges, site.cuts = False, [1_000_000]
    get(site, tmp_path / "file.zip")
    assert (tmp_path / "file.zip").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("expected", "etags"),
    [
        (Download(sha256=hashlib.sha256(OTHER).hexdigest()), ('"first"', '"second"')),
        (UNKNOWN, ('"first"', '"second"')),
        (UNKNOWN, (None, None)),
    ],
)
def test_a_file_that_changed_is_never_glued_to_the_old_one(
    site: Site, tmp_path: Path, expected: Download, etags: tuple[str | None, str | None]
) -> None:
    site.etag, site.cuts = etags[0], [1_000_000] + [0] * TRIES
    with pytest.raises(PointsetError):
        get(site, tmp_path / "file.zip", expected)
    site.files["/file.zip"], site.etag = OTHER, etags[1]
    get(site, tmp_path / "file.zip", expected)
    assert (tmp_path / "file.zip").read_bytes() == OTHER


def received(site: Site, folder: Path, content: bytes, note: list[object]) -> None:
    """Write the partial download of an earlier process."""
    part = Part(folder / "file.zip", f"{site.url}/file.zip")
    part.path.write_bytes(content)
    part.note.write_text(json.dumps(note))


MIDDLE = {"Content-Range": "bytes 2000000-2999999/3000000", "ETag": '"first"'}
OTHERS = {"Content-Range": "bytes 1000000-2999999/3000000", "ETag": '"second"'}


@pytest.mark.parametrize("expected", [RIGHT, UNKNOWN], ids=["digest", "nothing known"])
@pytest.mark.parametrize(
    ("headers", "body"), [(MIDDLE, CONTENT[2_000_000:]), (OTHERS, OTHER[1_000_000:])], ids=["other bytes", "version"]
)
def test_a_server_that_goes_on_wrongly_is_asked_for_the_whole_file(
    site: Site, tmp_path: Path, expected: Download, headers: dict[str, str], body: bytes
) -> None:
    site.cuts = [1_000_000] + [0] * TRIES
    with pytest.raises(PointsetError):
        get(site, tmp_path / "file.zip", expected)
    site.answers = [(206, headers, body)]
    site.asked.clear()
    get(site, tmp_path / "file.zip", expected)
    assert (tmp_path / "file.zip").read_bytes() == CONTENT
    assert [asked for _, asked in site.asked] == ["bytes=1000000-", None]


def test_parts_of_two_mirrors_are_kept_apart(site: Site, tmp_path: Path) -> None:
    site.files = {"/old.zip": OTHER, "/file.zip": CONTENT}
    site.cuts = [1_000_000] + [0] * TRIES
    get(site, tmp_path / "file.zip", RIGHT, f"{site.url}/old.zip", f"{site.url}/file.zip")
    assert (tmp_path / "file.zip").read_bytes() == CONTENT
    assert site.asked[-1] == ("/file.zip", None)
    assert [path.name for path in tmp_path.iterdir()] == ["file.zip"]


def test_a_mirror_with_another_length_does_not_cost_what_has_come(site: Site, tmp_path: Path) -> None:
    site.files["/short.zip"] = CONTENT[:2_000_000]
    site.cuts = [1_000_000] + [0] * TRIES
    with pytest.raises(PointsetError, match=r"short.zip: it has 2,000,000 bytes instead of 3,000,000"):
        get(site, tmp_path / "file.zip", RIGHT, f"{site.url}/file.zip", f"{site.url}/short.zip")
    site.asked.clear()
    get(site, tmp_path / "file.zip")
    assert [asked for _, asked in site.asked] == ["bytes=1000000-"]


def test_a_download_that_was_killed_at_its_last_byte_is_not_repeated(site: Site, tmp_path: Path) -> None:
    received(site, tmp_path, CONTENT, ['"first"', 3_000_000])
    get(site, tmp_path / "file.zip")
    assert (tmp_path / "file.zip").read_bytes() == CONTENT
    assert site.asked == []


def test_a_web_page_is_not_taken_for_the_file(site: Site, tmp_path: Path) -> None:
    site.answers = [(200, {"Content-Type": "text/html; charset=utf-8"}, b"<html>Log in first</html>")]
    with pytest.raises(PointsetError, match="the server sent a web page instead of the file"):
        get(site, tmp_path / "file.zip", UNKNOWN)
    assert list(tmp_path.iterdir()) == []


CLOSED: dict[str, str | None] = {"Content-Length": None}


@pytest.mark.parametrize(
    ("status", "headers", "words"),
    [
        (200, {"Content-Length": "abc"}, "Content-Length is 'abc', which is not a number of bytes"),
        (200, {"Content-Length": "9" * 5000}, "Content-Length is '9{20}"),
        (200, {"Content-Encoding": "gzip"}, "the server sent it compressed .'gzip'."),
        (204, {}, "the server answered 204"),
        (302, {"Location": "file:///etc/hostname", "Content-Length": "0"}, "no connection"),
    ],
)
def test_an_answer_that_makes_no_sense_is_one_sentence(
    site: Site, tmp_path: Path, status: int, headers: dict[str, str | None], words: str
) -> None:
    site.answers = [(status, headers, CONTENT)] * TRIES
    with pytest.raises(PointsetError, match=words) as caught:
        get(site, tmp_path / "file.zip", UNKNOWN)
    assert len(str(caught.value)) < 600
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("sent", ["bytes 0-9/3000000", "bytes 1000000-2999999", "bytes 1000000-2999999/x", "nonsense"])
def test_a_part_that_was_not_asked_for_is_not_glued(site: Site, tmp_path: Path, sent: str) -> None:
    received(site, tmp_path, CONTENT[:1_000_000], [site.etag, None])
    site.answers = [(206, {"Content-Range": sent, "ETag": site.etag}, CONTENT[1_000_000:])]
    get(site, tmp_path / "file.zip", UNKNOWN)
    assert (tmp_path / "file.zip").read_bytes() == CONTENT
    assert len(site.asked) == 2


@pytest.mark.parametrize("note", [b"{", b"[1]", b"{}", b"7"])
def test_a_damaged_note_of_a_download_begins_it_anew(site: Site, tmp_path: Path, note: bytes) -> None:
    received(site, tmp_path, OTHER[:1_000_000], [])
    next(tmp_path.glob("*.json")).write_bytes(note)
    get(site, tmp_path / "file.zip", UNKNOWN)
    assert (tmp_path / "file.zip").read_bytes() == CONTENT
    assert [asked for _, asked in site.asked] == [None]


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        (Download(size=17), "3,000,000 bytes instead of 17"),
        (Download(sha256="0" * 64), "its SHA256 is not the expected one"),
        (Download(md5="0" * 32), "its MD5 is not the expected one"),
    ],
)
def test_a_wrong_file_is_not_kept_and_the_next_mirror_is_tried(
    site: Site, tmp_path: Path, expected: Download, words: str
) -> None:
    with pytest.raises(PointsetError, match=words) as caught:
        get(site, tmp_path / "file.zip", expected, f"{site.url}/file.zip", f"{site.url}/gone.zip")
    assert "gone.zip: the server answered 404" in str(caught.value)
    assert f"save it as {tmp_path / 'file.zip'}" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_is_not_there_and_a_name_that_nobody_has(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for address in (f"http://127.0.0.1:{port}/f.zip", "http://no-such-host.invalid/f.zip"):
        with pytest.raises(PointsetError, match="no connection"):
            download([address], tmp_path / "f.zip", UNKNOWN, progress=False)
