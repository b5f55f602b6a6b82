"""How often do the rules of `pointset compare` and `pointset judge` call equally good models different?

Tables of simulated runs: each item, each model on each item, each seed and each answer has a random effect, and a run
is right if their sum is positive. Equally good models that are called distinguishable are errors (level); one model
that is truly better should be found (power).

python scripts/experiments/levels.py                    # writes results/levels/ and figures/levels.svg
python scripts/experiments/levels.py --tables 100       # a quick look, written nowhere
"""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import cyclopts
import numpy as np
from cyclopts import Parameter
from numpy import ndarray
from saved import FOLDER, RESULTS, study_table, write_tables

from pointset.comparison.crossed import Spread, crossed_interval
from pointset.comparison.statistics import SIGNIFICANCE_LEVEL, seed_error
from pointset.runs.atomic import write_json

CASES: dict[str, tuple[int, int, Sequence[float]]] = {
    "2 models, 3 seeds": (3, 500, (0.1, 0.1)),
    "2 models, 3 seeds, one varies thrice": (3, 500, (0.3, 0.1)),
    "2 models, 5 seeds, one varies thrice": (5, 500, (0.3, 0.1)),
    "5 models, 3 seeds": (3, 500, (0.1,) * 5),
    "5 models, 3 seeds, one varies thrice": (3, 500, (0.3, *(0.1,) * 4)),
    "5 models, 5 seeds, one varies thrice": (5, 500, (0.3, *(0.1,) * 4)),
    "7 models, 3 seeds, one varies thrice, 2,000 items": (3, 2000, (0.3, *(0.1,) * 6)),
    "5 models, no variation over seeds": (3, 500, (0.0,) * 5),
}
"""Seeds, items, and the deviation over seeds of each model, in units of the noise of one answer."""
GAP = 0.4
"""Advantage of the last model, which varies little, where power is measured: about three points of accuracy."""
RULES = {"judge": "crossed: seeds and items together (judge)", "compare": "both tests: seeds and items (compare)"}
app = cyclopts.App(name="levels.py", help=__doc__, result_action="return_value")


def simulate(rng: np.random.Generator, seeds: int, items: int, deviations: Sequence[float], gap: float) -> ndarray:
    """Which answers are right, bool [models, seeds, items]; the last model is better by `gap`."""
    models = len(deviations)
    item, own = rng.normal(0, 2, items), rng.normal(0, 1, (models, 1, items))
    shift = rng.normal(0, 1, (models, seeds, 1)) * np.reshape(deviations, (-1, 1, 1))
    better = np.where(np.arange(models) == models - 1, gap, 0.0)[:, None, None]
    return 2 + better + item + own + shift + rng.normal(0, 1, (models, seeds, items)) > 0


def p_values(right: ndarray) -> dict[str, list[float]]:
    """The p-value of every pair by both rules; the test over items of `compare` is a normal one, for speed."""
    from scipy.stats import norm

    spreads = [Spread.of(scores) for scores in right]
    seeds, items = right.shape[1:]
    error = seed_error(right.mean(axis=2))
    values: dict[str, list[float]] = {rule: [] for rule in RULES}
    for a, b in itertools.combinations(spreads, 2):
        apart = a.item_means - b.item_means
        values["judge"].append(crossed_interval((a, b), apart).p_value)
        over_items = 2 * float(norm.sf(abs(apart.mean()) / (apart.std(ddof=1) / items**0.5)))
        over_seeds = error.of_difference(float(apart.mean()), seeds).p_value if error else 1.0
        values["compare"].append(max(over_items, over_seeds))
    return values


def rejects(p: Sequence[float]) -> bool:
    """True if Holm's correction leaves any pair below the level: its first step is Bonferroni's."""
    return min(p) * len(p) < SIGNIFICANCE_LEVEL


def measure(case: str, tables: int, gap: float) -> dict[str, float]:
    """The share of tables in which each rule calls a pair distinguishable."""
    rng = np.random.default_rng(0)
    found = [p_values(simulate(rng, *CASES[case], gap)) for _ in range(tables)]
    return {rule: float(np.mean([rejects(values[rule]) for values in found])) for rule in RULES}


def draw(results: Mapping[str, Mapping[str, Mapping[str, float]]], path: Path) -> None:
    """Two panels with a bar for each case and rule: level and power."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "levels"
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.6), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, what in zip(panels, ("level", "power"), strict=True):
        for offset, (rule, words) in zip((-0.2, 0.2), RULES.items(), strict=True):
            shares = [100 * case[what][rule] for case in results.values()]
            axes.barh(
                np.arange(len(shares)) + offset,
                shares,
                0.36,
                color={"judge": "#0072b2"}.get(rule, "#bbbbbb"),
                label=words,
            )
        axes.set_yticks(range(len(results)), list(results), fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlabel(
            {"level": "% of tables of equal models with an error", "power": "% of tables in which a pair is found"}[
                what
            ]
        )
    panels[0].invert_yaxis()
    panels[0].axvline(100 * SIGNIFICANCE_LEVEL, color="#1c1c1c", lw=0.8)
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False, fontsize=8
    )
    figure.savefig(path, metadata={"Date": None})


@app.default
def levels(
    *, tables: Annotated[int, Parameter(help="Tables for each level; a quarter of them for power.")] = 2000
) -> None:
    """Simulate, print, and with the full number of tables write the results and their figure."""
    results = {}
    for case in CASES:
        results[case] = {"level": measure(case, tables, 0.0), "power": measure(case, tables // 4, GAP)}
        print(
            case,
            {what: {rule: f"{100 * share:.1f} %" for rule, share in by.items()} for what, by in results[case].items()},
            flush=True,
        )
    if tables >= 2000:
        write(results, tables)


def write(results: Mapping[str, Mapping[str, Mapping[str, float]]], tables: int) -> None:
    """Keep the shares, their figure and their table for the results page."""
    write_json(RESULTS / "levels" / "levels.json", {"tables": tables, "gap": GAP, "cases": results})
    draw(results, FOLDER / "figures" / "levels.svg")
    write_tables("levels", [table(results)])


def table(results: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    """Level and power of each case and rule, in per cent."""
    columns = [(what, rule) for what in ("level", "power") for rule in RULES]
    lines = [[case, *(f"{100 * shares[what][rule]:.1f}" for what, rule in columns)] for case, shares in results.items()]
    return study_table(lines, ["case", *(f"{what} %, {rule}" for what, rule in columns)])


if __name__ == "__main__":
    app()
