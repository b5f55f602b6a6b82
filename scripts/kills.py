"""Kill commands with SIGKILL at random moments, and give them again: the same files, and nothing left behind.

Every command works on tiny data in a folder of its own, which is emptied before each kill. The moments are drawn over
the whole time that the command takes undisturbed. What differs between undisturbed runs is not compared: seconds,
milliseconds and memory wherever they stand, and pictures of them.

    python scripts/kills.py --times 50 --seed 1
"""

import hashlib
import io
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import zipfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Annotated

os.environ.setdefault("OMP_NUM_THREADS", "1")

import cyclopts
from cyclopts import Parameter
from killing import Started, serve

TETRAHEDRON = "OFF\n4 4 6\n0 0 0\n{} 0 0\n0 {} 0\n0 0 {}\n3 0 1 2\n3 0 1 3\n3 0 2 3\n3 1 2 3\n"
SETS = ("--points", "16", "--pool-points", "32", "--dim", "8", "--batch-size", "4")
ONE = ("--seeds", "0", "--workers", "1", "--out", "out")
TWO = ("--seeds", "0", "1", "--workers", "2", "--out", "out")
TIMES = ("seconds", "processor_seconds", "latency_ms", "step_memory_mb", "mtime", "mtime_ns", "time", "written")


@dataclass(frozen=True)
class Command:
    """A command and what is made before it, in a folder of its own."""

    arguments: tuple[str, ...]
    before: tuple[str, ...] = ()
    """A command to its end, whose files are there already."""
    drawn: tuple[str, ...] = ()
    """Files whose bytes depend on times: only that they are there is compared."""
    tables: tuple[str, ...] = ()
    """Files of which the numbers are not compared, times being among them."""


REPORT = {
    "drawn": ("pareto.svg", "pareto-n16.svg", "report.html", ".lock", "-lock"),
    "tables": ("table.md", "results.csv"),
}
COMMANDS = {
    "data build": Command(("data", "build", "parts", "--pool-points", "3000", "--normals", "--workers", "2")),
    "train": Command(("train", "isab4-pma", "--data", "parts", *SETS, "--epochs", "8", "--run", "run")),
    "compare": Command(
        ("compare", *TWO, "--data", "parts", *SETS, "--epochs", "4", "--models", "rff-max", "rff-mean"),
        **REPORT,
    ),
    "data fetch": Command(("data", "fetch", "tiny")),
    "export": Command(
        ("export", "--model", "run", "-o", "model.pt2"),
        before=("train", "rff-max", "--data", "parts", *SETS, "--epochs", "1", "--run", "run"),
        drawn=("model.pt2",),
    ),
    "task": Command(
        ("task", "max-regression", *ONE, "--steps", "60", "--models", "rFF + max", "rFF + mean"),
        **REPORT,
    ),
}
"""By name."""
app = cyclopts.App(name="kills.py", help=__doc__, result_action="return_value")
KILLS: tuple[str, ...] = ("command", "undisturbed s", "kills", "before it had written", "in mid-work", "after its end")
KILLS += ("**other files**", "**left behind**", "**not finished**", "seconds")


class Place:
    """A folder for one command, always of the same name, as names are written into files."""

    def __init__(self, root: Path, name: str, command: Command, made: Path) -> None:
        self.folder, self.command, self.made = root / name.replace(" ", "-"), command, made
        self.cards = root / "cards"

    def clear(self) -> None:
        """As it is before the command."""
        self.folder.mkdir(exist_ok=True)
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(self.made, self.folder, dirs_exist_ok=True)

    def start(self) -> Started:
        """Start the command."""
        return Started(self.command.arguments, self.folder, self.cards)

    def look(self) -> dict[str, bytes]:
        """What is there."""
        return contents(self.folder, self.command)


@app.default
def kills(
    *names: Annotated[str, Parameter(help=f"Commands: {', '.join(COMMANDS)}; all if none is named.")],
    times: Annotated[int, Parameter(help="Kills of each.")] = 50,
    seed: Annotated[int, Parameter(help="Of the moments.")] = 0,
) -> int:
    """Exit code 1 if anything was different or left behind."""
    bad = 0
    root = Path(tempfile.mkdtemp(prefix="kills"))  # one that removes itself would do so at the end of every fork
    _, server = serve(lambda url: write_archive(url, root / "cards" / "tiny.toml"), pause=0.5)
    try:
        sys.stdout.write(f"| {' | '.join(KILLS)} |\n|{' --- |' * len(KILLS)}\n")
        bad += sum(killed(name, root, times, Random(f"{seed} {name}")) for name in names or COMMANDS)
    finally:
        os.kill(server, signal.SIGKILL)
        shutil.rmtree(root)
    return 1 if bad else 0


def prepared(name: str, root: Path) -> Place:
    """The command's folder with what has to be there before it."""
    command, made = COMMANDS[name], root / "made" / name.replace(" ", "-")
    write_parts(made / "parts")
    place = Place(root, name, command, made)
    if command.before:
        place.clear()
        ended = Started(command.before, place.folder, place.cards).wait()
        assert ended.code == 0, ended.said
        shutil.copytree(place.folder, made, dirs_exist_ok=True)
    return place


def undisturbed(place: Place) -> tuple[dict[str, bytes], float]:
    """The files that a command makes, twice the same, and the seconds that it takes."""
    found = []
    for _ in range(2):
        place.clear()
        ended = place.start().wait()
        assert ended.code == 0, ended.said
        found.append(place.look())
    assert not difference(*found), difference(*found)
    return found[0], ended.seconds


def difference(one: dict[str, bytes], other: dict[str, bytes]) -> list[str]:
    """Names of files that only one has, or that differ."""
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


def killed(name: str, root: Path, times: int, random: Random) -> int:
    """Kill a command many times; print its line of the table."""
    place = prepared(name, root)
    whole, seconds = undisturbed(place)
    counts, total = Counter[str](), 0.0
    for number in range(times):
        place.clear()
        before, process = place.look(), place.start()
        try:
            time.sleep(random.uniform(0, seconds))
            process.kill()
        finally:
            ended = process.wait()
        left = process.left()
        now = place.look()
        when = "end" if ended.code == 0 else "middle" if difference(before, now) else "start"
        again = place.start()
        last = again.wait()
        found = difference(whole, place.look())
        faults = {
            "files": any(one in whole for one in found),
            "left": bool(left or again.left() or any(one not in whole for one in found)),
            "code": last.code != 0,
        }
        counts.update([when, *(fault for fault, is_so in faults.items() if is_so)])
        total += ended.seconds + last.seconds
        if any(faults.values()):
            print(
                f"{name}, kill {number} at {ended.seconds:.2f} s: {left} {found} {last.code} {last.said[-2000:]}",
                file=sys.stderr,
            )
    row = [counts[key] for key in ("start", "middle", "end", "files", "left", "code")]
    print(f"| {name} | {seconds:.1f} | {times} | {' | '.join(map(str, row))} | {total:.0f} |", flush=True)
    return sum(row[3:])


def write_parts(folder: Path, shapes: int = 24) -> None:
    """Tetrahedra of two classes."""
    random = Random(0)
    for number in range(shapes):
        path = folder / f"class{number % 2}" / ("test" if number % 6 > 3 else "train") / f"{number}.off"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TETRAHEDRON.format(*(random.uniform(1, 2 + number % 2) for _ in "xyz")))


def write_archive(url: str, card: Path, size: int = 4_000_000) -> bytes:
    """An archive of meshes that does not compress, and its card."""
    random, content = Random(1), io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for number in range(40):
            name = zipfile.ZipInfo(f"Tiny/class{number % 2}/{'test' if number % 8 > 5 else 'train'}/{number}.off")
            archive.writestr(name, TETRAHEDRON.format(1, 1, 1) + "#" + random.randbytes(size // 80).hex())
    data = content.getvalue()
    card.parent.mkdir(parents=True, exist_ok=True)
    words = "".join(f'{name} = "tiny"\n' for name in ("name", "title", "summary", "licence", "citation", "homepage"))
    card.write_text(
        f'{words}kind = "meshes"\nurls = ["{url}/Tiny.zip"]\nfolder = "Tiny"\nup = "z"\n'
        'classes = ["class0", "class1"]\n'
        f'[splits]\ntrain = 30\ntest = 10\n[download]\nsize = {len(data)}\nmd5 = "{hashlib.md5(data).hexdigest()}"\n',
        encoding="utf-8",
    )
    return re.sub(rb'"commit": ("\w+\+?"|null)', b"", data)


def contents(folder: Path, command: Command) -> dict[str, bytes]:
    """Every file of a folder, without what differs from one undisturbed run to the next."""
    return {
        str(path.relative_to(folder)): _steady(path, command) if path.is_file() else b"folder"
        for path in sorted(folder.rglob("*"))
    }


def _steady(path: Path, command: Command) -> bytes:
    if any(str(path).endswith(name) for name in command.drawn):
        return b"drawn"
    data = path.read_bytes()
    if any(str(path).endswith(name) for name in command.tables):
        return re.sub(rb"[\d.,]+", b"#", data)
    if path.suffix in (".json", ".jsonl"):
        data = re.sub(rb'"commit": ("\w+\+?"|null)', b"", data)  # null where git takes long
        return re.sub(rb'"(%s)": [-+.\de]+' % "|".join(TIMES).encode(), rb'"\1": #', data)
    return data


if __name__ == "__main__":
    sys.exit(app())
