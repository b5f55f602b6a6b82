"""Flip single bits in every kind of file that runs, comparisons and pools leave, and go on with the work.

A flip must be noticed, in one sentence that names the file, or be without any effect on a number.

    python scripts/flips.py --flips 200 --seed 1
"""

import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from random import Random
from typing import Annotated

import cyclopts
import torch
from cyclopts import Parameter
from fuzzing.kinds.folders import FLIPS

app = cyclopts.App(name="flips.py", help=__doc__, result_action="return_value")


@app.default
def flips(
    *,
    flips: Annotated[int, Parameter(help="Of each kind of file.")] = 200,
    seed: Annotated[int, Parameter(help="Another seed, other flips.")] = 0,
    only: Annotated[str, Parameter(help="Kinds of files whose name contains this.")] = "",
) -> int:
    """Exit code 1 if a flip changed a number without a word, or ended in anything but one sentence."""
    torch.set_num_threads(1)
    bad = 0
    print("| file | flips | noticed | without effect | **changed a number** | **crashed** |\n|---|---|---|---|---|---|")
    for files in FLIPS:
        if only not in files.name:
            continue
        counts: Counter[str] = Counter()
        for number in range(flips):
            folder = Path(tempfile.mkdtemp(prefix="flip-"))
            try:
                outcome = files.case(Random(f"{files.name} {seed} {number}"), folder)
            finally:
                shutil.rmtree(folder)
            counts[outcome.verdict] += 1
            if outcome.verdict not in ("refused", "alike"):
                bad += 1
                print(f"{files.name}: {outcome.verdict}: {outcome.detail}", file=sys.stderr)
        cells = (files.name, flips, counts["refused"], counts["alike"], counts["differs"])
        print(f"| {' | '.join(map(str, cells))} | {flips - sum(cells[2:])} |", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(app())
