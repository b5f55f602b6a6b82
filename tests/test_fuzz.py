"""The fuzzer of the readers: mutated files are read correctly or rejected, and the fuzzer detects wrong readers."""

import dataclasses
import logging
import os
import time
import warnings
from collections import Counter
from pathlib import Path
from random import Random

import fuzz
import numpy as np
import pytest
from fuzzing.judging import Limits, judge_of
from fuzzing.kinds import KINDS
from fuzzing.kinds.base import FileKind
from fuzzing.kinds.meshes import OBJ, OFF
from fuzzing.oracles import obj
from fuzzing.running import run
from fuzzing.verdicts import BAD, GOOD, Outcome, message_fault

from pointset.data.readers.meshes import Mesh, MeshError

FILES = {"off": 400, "obj": 400, "stl": 300, "stl-binary": 300}
FILES |= {"ply-cloud": 300, "ply-cloud-binary": 300, "pcd": 300, "pcd-binary": 300, "pcd-packed": 300}
FILES |= {"npy": 300, "xyz": 300, "hdf5": 60, "glb": 300, "ply": 300, "ply-binary": 300, "npz": 200}


@pytest.mark.parametrize("name", FILES)
def test_mutated_files_are_read_right_or_refused(name: str) -> None:
    with judge_of(KINDS[name], 0, Limits()) as judge:
        outcomes = {number: judge(number) for number in range(FILES[name])}
    assert {number: outcome for number, outcome in outcomes.items() if outcome.verdict in BAD} == {}
    shares = Counter(outcome.verdict for outcome in outcomes.values())
    assert min(shares[verdict] for verdict in GOOD) > FILES[name] / 10, f"no power: {shares}"


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS.values() if isinstance(kind, FileKind)], ids=lambda kind: kind.name
)
def test_the_oracle_reads_every_good_file(kind: FileKind) -> None:
    for content in kind.seeds:
        kind.oracle(content)


def counted_from_the_end(path: Path) -> Mesh:
    """OBJ as read by the oracle, except that relative indices are counted from the end of the file."""
    statements = obj.statements(path.read_bytes())
    count = sum(words[0] == b"v" for words in statements)
    with pytest.MonkeyPatch.context() as patch:
        corner = obj.corner
        patch.setattr(obj, "corner", lambda word, before: corner(word, count))
        return as_mesh(path)


def as_mesh(path: Path) -> Mesh:
    try:
        vertices, faces = obj.read(path.read_bytes())
    except obj.Illegal as illegal:
        raise MeshError(f"{path}: {illegal!s:.100}") from None
    return Mesh(np.array(vertices), np.array(faces))


def raising(error: BaseException) -> object:
    def read(path: Path) -> Mesh:
        raise error

    return read


def without_a_line(path: Path) -> Mesh:
    path.write_bytes(path.read_bytes().rstrip().rpartition(b"\n")[0])
    return as_mesh(path)


def noisy(path: Path) -> Mesh:
    warnings.warn("careful", RuntimeWarning, stacklevel=1)
    return as_mesh(path)


def long_winded(path: Path) -> Mesh:
    raise MeshError(f"{path}: found {path.read_text('latin-1').replace(chr(10), ' ')}" * 9)


WRONG = {
    "differs": counted_from_the_end,
    "strict": raising(MeshError("mutated.obj: no")),
    "illegal": without_a_line,
    "crashed": raising(KeyError("v")),
    "large": raising(MemoryError()),
}


@pytest.mark.parametrize("verdict", WRONG)
def test_a_wrong_reader_is_seen(verdict: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuzzing.verdicts.message_fault", lambda *_: "")
    right, wrong = (dataclasses.replace(OBJ, read=read) for read in (as_mesh, WRONG[verdict]))
    for kind, expected in ((right, 0), (wrong, 5)):
        with judge_of(kind, 0, Limits()) as judge:
            found = Counter(judge(number).verdict for number in range(150))
        assert (found[verdict] > expected) == bool(expected)


def logging_loudly(path: Path) -> Mesh:
    logging.getLogger("library").warning("careful")
    return as_mesh(path)


@pytest.mark.parametrize("read", [noisy, logging_loudly, long_winded], ids=["warning", "log", "long message"])
def test_warnings_and_bad_messages_are_crashes(read: object) -> None:
    with judge_of(dataclasses.replace(OBJ, read=read), 0, Limits()) as judge:
        assert {judge(number).verdict for number in range(30)} == {"crashed"}


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ("bad.obj: no", ""),
        ("no", "name"),
        ("bad.obj:\nno", "lines"),
        ("bad.obj: \x1b[31m", "control"),
        ("bad.obj: " + "7" * 201, "repeats"),
        ("bad.obj: " + "7" * 200, ""),
        ("bad.obj: " + "x" * 999, "1001"),
    ],
)
def test_a_message_is_one_sentence_that_names_the_file(message: str, fault: str) -> None:
    found = message_fault(message, Path("bad.obj"), b"7" * 300)
    assert fault in found
    assert bool(found) == bool(fault)


class Trap:
    """A kind of file whose file 7 ends or blocks its process."""

    name = "trap"

    def __init__(self, how: str) -> None:
        self.how = how
        self.number = 0

    def case(self, random: Random, folder: Path) -> Outcome:
        assert not list(folder.iterdir())
        (folder / "left").mkdir()
        if random.random() == Random("trap 3 7").random():
            if self.how == "dies":
                os._exit(5)
            if self.how == "computes":
                while True:
                    pass
            if self.how == "hangs":
                time.sleep(99)
            np.ones(2**28)
        return Outcome("alike")


@pytest.mark.parametrize(
    ("how", "verdict"), [("dies", "crashed"), ("computes", "slow"), ("hangs", "slow"), ("eats", "large")]
)
def test_the_end_of_a_process_and_its_limits_are_counted(
    how: str, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fuzzing.running.PATIENCE", 0.5)
    tally = run(Trap(how), 20, 3, 2, Limits(seconds=0.1, memory=2**28))
    assert tally.counts == {"alike": 19, verdict: 1} | dict.fromkeys(set(tally.counts) - {"alike", verdict}, 0)
    assert list(tally.found) == [7]
    assert tally.found[7].verdict == verdict


def test_the_command_prints_counts_and_says_by_its_exit_code_whether_all_is_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fuzz.fuzz("off", files=60, processes=2) == 0
    cells = [cell.strip() for cell in capsys.readouterr().out.splitlines()[-1].split("|")]
    assert cells[1:4] == ["off", "60", "0"]
    assert sum(map(int, cells[4:6])) == 60
    assert cells[6:12] == ["0"] * 6
    monkeypatch.setitem(KINDS, "off", dataclasses.replace(OFF, read=raising(KeyError("v"))))
    assert fuzz.fuzz("off", files=20, show=1, save=tmp_path, processes=1) == 1
    assert "KeyError" in capsys.readouterr().out
    (saved,) = tmp_path.iterdir()
    again = tmp_path / "again"
    assert fuzz.fuzz("off", only=int(saved.name.rpartition("-")[2]), save=again) == 1
    assert again.read_bytes() == saved.read_bytes()


def test_an_unknown_kind_is_named() -> None:
    with pytest.raises(SystemExit, match="'doc'"):
        fuzz.fuzz("doc")
