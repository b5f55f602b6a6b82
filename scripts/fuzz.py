"""Read mutated files with the toolkit and with oracles of their own, and count where the two part.

A kind's good files are damaged in a few places, by seed and number, and read twice: by the toolkit, and by a strict
and slow reader of the format's rules that shares no code with it. Every file must be read alike or refused by both,
the refusal being one sentence that names the file, in little time and memory.

    python scripts/fuzz.py obj --files 100000 --seed 1 --show 3
    python scripts/fuzz.py obj --seed 1 --only 4711 --save bad.obj
"""

import os
import sys
import time
from pathlib import Path
from typing import Annotated

import cyclopts
from cyclopts import Parameter
from fuzzing.judging import Limits, judge_of
from fuzzing.kinds import KINDS
from fuzzing.running import Tally, run
from fuzzing.verdicts import BAD, GOOD, MEANING, Outcome

app = cyclopts.App(name="fuzz.py", help=__doc__, result_action="return_value")


@app.default
def fuzz(
    *kinds: Annotated[str, Parameter(help=f"What to damage: {', '.join(KINDS)}; all if none is named.")],
    files: Annotated[int, Parameter(help="Damaged files of each kind.")] = 1000,
    seed: Annotated[int, Parameter(help="Another seed, other files.")] = 0,
    show: Annotated[int, Parameter(help="Print so many files of each bad verdict.")] = 0,
    only: Annotated[int | None, Parameter(help="Judge the file of this number alone, in this process.")] = None,
    save: Annotated[Path | None, Parameter(help="Write that file, or with --show a folder of files.")] = None,
    processes: Annotated[int, Parameter(help="Child processes at a time.")] = os.cpu_count() or 1,
    seconds: Annotated[float, Parameter(help="Computing time that a file may take.")] = 2.0,
    megabytes: Annotated[int, Parameter(help="Memory that a file may take.")] = 1024,
) -> int:
    """Exit code 1 if a file was read wrong, refused wrong, crashed a reader, or took too much time or memory."""
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        sys.exit(f"fuzz.py: unknown kind {unknown[0]!r}, expected one of {', '.join(KINDS)}")
    limits = Limits(seconds, megabytes * 2**20)
    if only is not None:
        return judge_one(kinds[0], seed, only, limits, save)
    bad = 0
    print(heading())
    for kind in kinds or KINDS:
        start = time.monotonic()
        tally = run(KINDS[kind], files, seed, processes, limits)
        print(row(kind, files, seed, tally, time.monotonic() - start), flush=True)
        show_found(tally, show, save, kind)
        bad += tally.bad
    return 1 if bad else 0


def heading() -> str:
    """The head of the table of counts, in Markdown."""
    names = ["kind", "files", "seed", *GOOD, *(f"**{verdict}**" for verdict in BAD), "legal", "seconds"]
    return f"| {' | '.join(names)} |\n|{' --- |' * len(names)}"


def row(kind: str, files: int, seed: int, tally: Tally, seconds: float) -> str:
    """One kind's line in the table; legal is the share of the files that the rules allow."""
    counts = tally.counts
    legal = sum(counts[verdict] for verdict in ("alike", "differs", "strict")) / max(files, 1)
    cells = [kind, files, seed, *(counts[verdict] for verdict in (*GOOD, *BAD)), f"{legal:.0%}", f"{seconds:.0f}"]
    return f"| {' | '.join(map(str, cells))} |"


def show_found(tally: Tally, most: int, save: Path | None, kind: str) -> None:
    """Print the first files of each bad verdict, shortest first, and write them into a folder."""
    for verdict in BAD:
        found = [(number, outcome) for number, outcome in tally.found.items() if outcome.verdict == verdict]
        found.sort(key=lambda pair: len(pair[1].content))
        if found and most:
            print(f"  {verdict}: {MEANING[verdict]}")
        for number, outcome in found[:most]:
            print(f"    number {number}: {outcome.detail[:400]}\n      {outcome.content[:300]!r}")
            if save is not None:
                save.mkdir(parents=True, exist_ok=True)
                (save / f"{kind}-{verdict}-{number}").write_bytes(outcome.content)


def judge_one(kind: str, seed: int, number: int, limits: Limits, save: Path | None) -> int:
    """Judge one file, print what came of it, and write it."""
    with judge_of(KINDS[kind], seed, limits) as judge:
        outcome: Outcome = judge(number)
    print(f"{kind}, seed {seed}, number {number}: {outcome.verdict}. {outcome.detail}\n{outcome.content[:2000]!r}")
    if save is not None:
        save.write_bytes(outcome.content)
    return 1 if outcome.verdict in BAD else 0


if __name__ == "__main__":
    sys.exit(app())
