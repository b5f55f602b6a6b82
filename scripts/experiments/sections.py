"""The sections of the page, and the tables that a comparison does not write itself."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from frontiers import FIGURES, SIZES, all_rows
from saved import Saved, SavedRow, short, study_table

from pointset.evaluation.robustness import Robustness, robustness_table
from pointset.runs.spreadsheets import read_csv

FIGURE_FILE, FIGURE = next(iter(FIGURES.items()))


@dataclass(frozen=True)
class Section:
    """A heading, and the experiments under it."""

    title: str
    names: tuple[str, ...] = ()
    """Names of files scripts/experiments/NAME.toml and of folders in results/."""
    text: str = ""
    grid: bool = False
    """Show a table with a row per pooling and a column per encoder."""
    figures: bool = False
    robust: bool = False


SECTIONS = (
    Section("Encoder x pooling at 100 points", ("encoder_pooling_100",), grid=True),
    Section(
        "The frontier",
        ("frontier",),
        "The most accurate model for each budget. The figures show the rows of all tables on ModelNet40; bars are 95 % "
        "confidence intervals over seeds, for rows with at least three. Rows differ in recipe and length (the grid has "
        "ten epochs), not only in the model. Training times are from one machine; the steps of the grid, `frontier` "
        "and `minutes_1000` were timed alone, the other rows were trained beside another run.",
        figures=True,
    ),
    Section("The most accurate models", ("accurate_100", "accurate_100_wide", "accurate_1000")),
    Section(
        "Training in minutes",
        ("minutes_100", "five_minutes_100", "minutes_1000"),
        "Recipes for one CPU core, timed from the start of the process to the last test set.",
    ),
    Section(
        "Robustness",
        text=(
            "The corruptions of ModelNet40-C that need no renderer, and points dropped at random or in patches, at "
            "five severities; also fewer points at test time. mCE is the mean corruption error relative to the first "
            "row of the table: below 100 is more robust than that row. Values are means over the tested seeds."
        ),
        robust=True,
    ),
    Section(
        "Earlier recipes and ablations",
        ("modern", "modern_1000", "set_transformer_table4_100", "attention_weights", "pooling"),
        "The column of 100 points of table 4 of the Set Transformer, with 30 epochs in place of 2,000. The full recipe "
        "([`set_transformer_table4.toml`](set_transformer_table4.toml)) was not run.",
    ),
    Section(
        "Set problems without meshes",
        ("max_regression", "max_regression_decay", "clustering_short"),
        "The problems of the Set Transformer paper, beside its published results.",
    ),
)


def answer(saved: Mapping[str, Saved]) -> Iterator[str]:
    """How the page of results begins: three sentences, a figure and a table."""
    best = {
        size: max((r for r in all_rows(saved) if r.points == size and r.seeds > 1), key=lambda r: r.mean)
        for size in (1000, 100)
    }
    most, few = (f"{100 * row.mean:.1f} ± {100 * (row.deviation or 0):.1f} %" for row in best.values())
    cells = saved[SECTIONS[0].names[0]].rows
    by_encoder = {encoder: [row for row in cells if row.parts[0] == encoder] for encoder in ("none", "isab16")}
    tops = {encoder: max(own, key=lambda row: row.mean) for encoder, own in by_encoder.items()}
    maximum = next(row for row in by_encoder["none"] if row.parts[1] == "max")
    level = sum(row is tops["isab16"] or tops["isab16"].label in row.level for row in by_encoder["isab16"])
    yield "# Results on ModelNet40"
    gain, poolings = 100 * (tops["none"].mean - maximum.mean), len(by_encoder["isab16"])
    yield (
        f"Without an encoder {tops['none'].label} is {gain:.0f} percentage points above {maximum.label} at 100 points; "
        f"behind an `isab16` encoder {level} of {poolings} poolings are the best or do not differ significantly from "
        "the best. The highest accuracies on coordinates are "
        f"**{most} at 1,000 points** ({best[1000].label}) and **{few} at 100** ({best[100].label}); with "
        "[local features](pages/local_features.md) they are higher. Published accuracies after the last epoch: "
        "[PointNet 90.1 %, networks with local grouping 91.5 to 93.1 %](pages/published.md)."
    )
    yield f"![{FIGURE.title}]({FIGURE_FILE})"
    lines = []
    for title, sizes in SIZES.items():
        lines += [(title, dot.name, short(dot.cost), f"{dot.mean:.1f}") for dot in FIGURE.front(saved, sizes)]
    yield "The most accurate rows by multiply-adds (Pareto front):"
    yield study_table(lines, ("sets of", "model", FIGURE.axis, "accuracy %"), left=2, form="pipe")


SEVERAL = (
    "no significant difference from the best of its column (5 % level over seeds and test shapes, all pairs of the "
    "table)."
)
LONE = (
    "no significant difference of the only run from the best run of its column (McNemar's exact test over test shapes, "
    "Holm's correction over all pairs of the table). With one seed each, the table compares runs, not models."
)


def grid(one: Saved) -> Iterator[str]:
    """Tables of accuracies and costs with a row per pooling and a column per encoder, and a sentence on the best."""
    rows = one.rows
    encoders, poolings = (list(dict.fromkeys(parts)) for parts in zip(*(row.parts for row in rows), strict=True))
    at = {row.parts: row for row in rows}
    best = {encoder: max((r for r in rows if r.parts[0] == encoder), key=lambda r: r.mean) for encoder in encoders}
    lines = [
        [f"-{pooling}", *(_cell(at.get((encoder, pooling)), best[encoder]) for encoder in encoders)]
        for pooling in poolings
    ]
    yield study_table(lines, ["accuracy %", *(f"{encoder}-" for encoder in encoders)], form="pipe")
    lone = max(row.seeds for row in rows) == 1
    yield f"Bold: the best of its column. =: {LONE if lone else SEVERAL}"
    over_all = max(rows, key=lambda row: row.mean)
    level = ", ".join(over_all.level) or "none"
    yield (
        f"Best: {over_all.label}, {100 * over_all.mean:.1f} %. No significant difference from "
        f"{'that run' if lone else 'it'}: {level}."
    )
    costs = [[f"-{p}", *(_cost(at.get((e, p))) for e in encoders)] for p in poolings]
    heads = ["M mult-adds / train s / ms a set", *(f"{encoder}-" for encoder in encoders)]
    yield study_table(costs, heads, form="pipe")
    yield from one.table.split("\n\n")[1:]


def _cell(row: SavedRow | None, best: SavedRow) -> str:
    if row is None:
        return ""
    text = f"{100 * row.mean:.1f}" + (f" ± {100 * row.deviation:.1f}" if row.deviation is not None else "")
    if row is best:
        return f"**{text}**"
    return f"{text} =" if best.label in row.level else text


def _cost(row: SavedRow | None) -> str:
    if row is None:
        return ""
    if row.multiply_adds is None or row.latency_ms is None:
        return f"- / {row.seconds:,.0f} / -"
    return f"{short(row.multiply_adds / 1e6)} / {row.seconds:,.0f} / {row.latency_ms:.1f}"


def robustness(saved: Mapping[str, Saved]) -> Iterator[str]:
    """A table for each saved result that was tested on corrupted sets."""
    tested = [one for one in saved.values() if (one.folder / "robustness.csv").exists()]
    for one in tested:
        yield f"## {one.about['title']} (`{one.name}`)"
        yield _robustness_table(one)
        yield f"Every error: [`robustness.csv`](results/{one.name}/robustness.csv)."


def _robustness_table(one: Saved) -> str:
    runs: dict[tuple[str, str], dict[str, list[dict[str, str]]]] = {}
    for line in read_csv(one.folder / "robustness.csv"):
        runs.setdefault((line["model"], line["points"]), {}).setdefault(line["seed"], []).append(line)
    several = len({points for _, points in runs}) > 1
    table = robustness_table(
        {
            f"{model}, {int(points):,} points" if several else model: {s: _tested(own) for s, own in by_seed.items()}
            for (model, points), by_seed in runs.items()
        }
    )
    heads = [*dict.fromkeys(name for row in table for name in row if name != "seeds"), "seeds"]
    return study_table([[str(row.get(name, "")) for name in heads] for row in table], heads, form="pipe")


def _tested(lines: list[dict[str, str]]) -> Robustness:
    errors: dict[str, dict[int, float]] = {}
    for line in lines:
        errors.setdefault(line["test"], {})[int(line["level"])] = float(line["error"])
    clean, smaller = errors.pop("clean"), errors.pop("points", {})
    return Robustness(clean[0], errors, 0, {size: 1 - error for size, error in sorted(smaller.items())})
