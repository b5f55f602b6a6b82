"""How the cost of a block grows: time and memory against points n, inducing points m, width d and heads h.

    .venv/bin/python scripts/benchmark/growth.py --threads 2 -o scripts/benchmark/growth.png

One cloud, one block from d to d. Time is of a forward pass without gradients, the median of repeats in which the blocks
take turns; memory is what a forward and backward pass holds at its peak. The exponent is that of the straight line
through the last three points on log axes.
"""

import gc
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import linear_regression
from typing import Annotated, Any

import cyclopts
import torch
from cyclopts import Parameter
from matplotlib.figure import Figure
from tabulate import tabulate
from timing import interleaved
from torch import nn

from pointset.configuration import AttentionOptions
from pointset.evaluation.costs import held_at_peak
from pointset.nn.blocks import ISAB, SAB, rff
from pointset.nn.encoders.rffp import EquivariantLayer
from pointset.runs.atomic import write_json
from pointset.runs.provenance import machine, versions
from pointset.runs.threads import torch_threads
from pointset.viz.charts import COLORS, MARKERS


@dataclass(frozen=True)
class Size:
    """Of one measurement."""

    n: int = 10_000
    m: int = 16
    d: int = 64
    h: int = 4


BLOCKS: dict[str, Callable[[Size], nn.Module]] = {
    "SAB": lambda size: SAB(size.d, size.d, AttentionOptions(heads=size.h)),
    "ISAB": lambda size: ISAB(size.d, size.d, size.m, AttentionOptions(heads=size.h)),
    "rFF": lambda size: rff(size.d, size.d),
    "rFFp": lambda size: EquivariantLayer(size.d, size.d, "max"),
}
ATTENTION = ("SAB", "ISAB")
LIMITS = {"SAB": 32_000}
"""Most points: beyond, one pass of a block whose time is quadratic takes a minute and more."""
SWEEPS: dict[str, tuple[Sequence[int], Sequence[str]]] = {
    "n": ((100, 320, 1000, 3200, 10_000, 32_000, 100_000, 320_000, 1_000_000), tuple(BLOCKS)),
    "m": ((4, 8, 16, 32, 64, 128, 256), ("ISAB",)),
    "d": ((32, 64, 128, 256, 512), tuple(BLOCKS)),
    "h": ((1, 2, 4, 8, 16), ATTENTION),
}
TITLES = {"n": "points n", "m": "inducing points m", "d": "width d", "h": "heads h"}


def sweep(letter: str, rounds: int) -> list[dict[str, Any]]:
    """One row per block and value: seconds and bytes."""
    values, names = SWEEPS[letter]
    rows = []
    for value in values:
        size = Size(**{letter: value})
        blocks = {name: BLOCKS[name](size) for name in names if size.n <= LIMITS.get(name, size.n)}
        X = torch.randn(1, size.n, size.d, generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            times = interleaved({name: partial(block, X) for name, block in blocks.items()}, rounds)
        for name, block in blocks.items():
            held = held_at_peak(partial(_step, block, X))
            rows.append(
                {"letter": letter, "value": value, "block": name, "seconds": times[name].seconds, "bytes": held}
            )
            gc.collect()
    return rows


def _step(block: nn.Module, X: torch.Tensor) -> None:
    block(X).sum().backward()


def exponent(rows: Sequence[dict[str, Any]], quantity: str) -> float:
    """Slope of the last three points on log axes."""
    last = rows[-3:]
    return linear_regression([math.log(row["value"]) for row in last], [math.log(row[quantity]) for row in last]).slope


def select(rows: Sequence[dict[str, Any]], letter: str, block: str) -> list[dict[str, Any]]:
    """The rows of one line."""
    return [row for row in rows if row["letter"] == letter and row["block"] == block]


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Exponents, and the cost at the largest value, of each line."""
    lines = []
    for letter, (_, names) in SWEEPS.items():
        for name in names:
            found = select(rows, letter, name)
            lines.append(
                {
                    "against": TITLES[letter],
                    "block": name,
                    "from": f"{found[0]['value']:,}",
                    "to": f"{found[-1]['value']:,}",
                    "time exponent": f"{exponent(found, 'seconds'):.2f}",
                    "memory exponent": f"{exponent(found, 'bytes'):.2f}",
                    "ms at the end": f"{1000 * found[-1]['seconds']:,.1f}",
                    "MB at the end": f"{found[-1]['bytes'] / 1e6:,.0f}",
                }
            )
    return tabulate(lines, headers="keys", tablefmt="pipe", disable_numparse=True)


def draw(rows: Sequence[dict[str, Any]]) -> Figure:
    """Time above, memory below, a column for each letter."""
    figure = Figure(figsize=(10, 4.8), layout="constrained")
    grid = figure.subplots(2, len(SWEEPS), sharex="col", sharey="row")
    for column, (letter, (_, names)) in enumerate(SWEEPS.items()):
        for line, (quantity, scale) in enumerate((("seconds", 1e3), ("bytes", 1e-6))):
            axes = grid[line][column]
            for name in names:
                place = list(BLOCKS).index(name)
                found = select(rows, letter, name)
                label = f"{name}  {exponent(found, quantity):.1f}"
                xs, ys = [row["value"] for row in found], [scale * row[quantity] for row in found]
                axes.loglog(xs, ys, color=COLORS[place], marker=MARKERS[place], markersize=3.5, lw=1.2, label=label)
            axes.grid(alpha=0.25)
            axes.legend(fontsize=7, frameon=False, title="exponent", title_fontsize=7)
        grid[1][column].set_xlabel(TITLES[letter])
        if letter != "n":
            values, _ = SWEEPS[letter]
            grid[1][column].set_xticks(values, values)
            grid[1][column].minorticks_off()
    grid[0][0].set_ylabel("forward pass, ms")
    grid[1][0].set_ylabel("training step, MB")
    return figure


def main(
    *,
    out: Annotated[Path, Parameter(alias="-o")] = Path("growth.png"),
    threads: int = 1,
    rounds: int = 5,
    rows: Path | None = None,
) -> None:
    """Measure, or take ROWS (a JSON file of an earlier run), print the table and draw the figure.

    Args:
        out: the picture; the rows go beside it as JSON.
        threads: of torch.
        rounds: timings of each; the median counts.
        rows: measured before.
    """
    if rows is None:
        with torch_threads(threads):
            found = [row for letter in SWEEPS for row in sweep(letter, rounds)]
            write_json(out.with_suffix(".json"), {"rows": found, "machine": machine(), "versions": versions()})
    else:
        found = json.loads(rows.read_text())["rows"]
    print(table(found))
    draw(found).savefig(out, dpi=150)


if __name__ == "__main__":
    cyclopts.run(main)
