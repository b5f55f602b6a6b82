"""Kill commands with SIGKILL at random moments, and give them again: the same files, and nothing left behind.

Every command works on tiny data in a folder of its own, which is emptied before each kill. The moments are drawn over
the whole time that the command takes undisturbed. What differs between undisturbed runs is not compared: seconds,
milliseconds and memory wherever they stand, and pictures of them.

    python scripts/kills.py --times 50 --seed 1
"""

import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Annotated

os.environ.setdefault("OMP_NUM_THREADS", "1")

import cyclopts
from cyclopts import Parameter
from killing.commands import COMMANDS, Command, contents, write_archive, write_parts
from killing.processes import Started, import_what_was_imported, serve

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
        import_what_was_imported(place.folder)
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
            signal_after(process, random.uniform(0, seconds))
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


def signal_after(process: Started, seconds: float) -> None:
    """Kill a process when it is so old."""
    time.sleep(seconds)
    process.kill()


if __name__ == "__main__":
    sys.exit(app())
