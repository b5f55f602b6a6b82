"""The sections of the results pages, and tables that `pointset compare` does not write."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from frontiers import FIGURES, SIZES, all_rows
from saved import Saved, SavedRow, read_csv, short, study_table

from pointset.evaluation import Robustness, robustness_table

FIGURE_FILE, FIGURE = next(iter(FIGURES.items()))


@dataclass(frozen=True)
class Section:
    """A results page: its title, and the experiments on it."""

    title: str
    names: tuple[str, ...] = ()
    """Names of files scripts/experiments/NAME.toml and of folders in results/."""
    text: str = ""
    grid: bool = False
    """True for tables with a row per pooling and a column per encoder in place of the table of the comparison."""
    figures: bool = False
    """True for the figures of accuracy against cost."""
    robust: bool = False
    """True for the tables of results on corrupted sets."""


SECTIONS = (
    Section("Encoder x pooling at 100 points", ("encoder_pooling_100",), grid=True),
    Section(
        "The frontier",
        ("frontier",),
        "This page compares models by accuracy and cost. The cost is the number of multiply-adds or the training time. "
        "The figures show the rows of all tables on ModelNet40, with 95 % confidence intervals for rows with at least "
        "three seeds. The rows differ not only in the model, but also in the recipe and the number of epochs. The "
        "training times of the figure are from one machine. For `encoder_pooling_100`, `frontier` and `minutes_1000`, "
        "they were measured without other work on the machine. During the runs of `minutes_100` and "
        "`five_minutes_100`, another model was trained on the machine.",
        figures=True,
    ),
    Section("The most accurate models", ("accurate_100", "accurate_100_wide", "accurate_1000")),
    Section(
        "Training in minutes",
        ("minutes_100", "five_minutes_100", "minutes_1000"),
        "With the recipes on this page, training a model takes 1 to 13 minutes on one CPU core.",
    ),
    Section(
        "Robustness",
        text=(
            "Models are tested on corrupted test sets at five severities, and on test sets with fewer points. The "
            "corruptions are those of ModelNet40-C that need no renderer, and points that are dropped at random or in "
            "patches. Corrupted sets have 100 points. The training sets have 64 to 1,024 points (`frontier`) or 100 "
            "points (`set_transformer_table4_100`).\n\n"
            "The columns of the tables have the error on clean test sets, the mean error over all corruptions and "
            "severities, the mean corruption error relative to the first row (mCE; lower is more robust), the accuracy "
            "at 16 to 100 points, and the number of tested seeds. Values are means over these seeds."
        ),
        robust=True,
    ),
    Section(
        "Earlier recipes and ablations",
        ("modern", "modern_1000", "set_transformer_table4_100", "attention_weights", "pooling"),
        "The experiments on this page have three subjects: a more recent recipe than that of the Set Transformer "
        "paper, the recipe of the paper (table 4, with 30 instead of 2,000 epochs), and other functions for attention "
        "weights and other poolings. The recipe of the paper with all epochs "
        "([`set_transformer_table4.toml`](set_transformer_table4.toml)) was not run.",
    ),
    Section(
        "Set problems without meshes",
        ("max_regression", "max_regression_decay", "clustering_short"),
        "This page has two problems of the Set Transformer paper and compares our results with those of the paper. In "
        "max regression, a model predicts the largest of the numbers in a set. The metric is the mean absolute error "
        "(MAE). In amortised clustering, a model predicts the parameters of a mixture of Gaussians from a set of "
        "points. The metric is the log-likelihood.",
    ),
)


def answer(saved: Mapping[str, Saved]) -> Iterator[str]:
    """The head of README.md: the main results, a figure and a table."""
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
    yield "\n".join(
        (
            "- **Accuracy.** The highest accuracies of models on coordinates (mean ± standard deviation over seeds) "
            f"are {most} at 1,000 points (`{best[1000].label}`) and {few} at 100 points (`{best[100].label}`). Models "
            "with [local features](pages/local_features.md) have 90.3 to 90.5 % at 1,024 points.",
            f"- **Pooling.** At 100 points and without an encoder, the accuracy of `{tops['none'].label}` is "
            f"{gain:.0f} percentage points above that of `{maximum.label}`. With the encoder `isab16`, {level} of "
            f"{poolings} poolings have the highest accuracy or do not differ significantly from it.",
            "- **Published accuracies** of other networks after the last epoch are 90.1 % for PointNet, and 91.5 to "
            "93.1 % for networks with local grouping that are trained by gradient descent "
            "([table](pages/published.md)).",
        )
    )
    yield f"![{FIGURE.title}]({FIGURE_FILE})"
    lines = []
    for title, sizes in SIZES.items():
        lines += [(title, dot.name, short(dot.cost), f"{dot.mean:.1f}") for dot in FIGURE.front(saved, sizes)]
    yield (
        "The table has the Pareto front of the figure: every other model with the same or a smaller number of "
        "multiply-adds has a lower accuracy. The columns have the number of points, the model (with the experiment in "
        "brackets), the millions of multiply-adds for one set and the accuracy."
    )
    yield study_table(lines, ("sets of", "model", FIGURE.axis, "accuracy %"), left=2, form="pipe")


SEVERAL = (
    "poolings that do not differ significantly from the most accurate pooling of their column (5 % level, over seeds "
    "and test shapes, for all pairs of the table)."
)
LONE = (
    "runs that do not differ significantly from the most accurate run of their column (McNemar's exact test over test "
    "shapes, Holm's correction over all pairs of the table). Each model has one seed, so the table compares runs, not "
    "models."
)


def grid(one: Saved) -> Iterator[str]:
    """Tables of accuracies and costs with a row per pooling and a column per encoder, with the most accurate model."""
    rows = one.rows
    encoders, poolings = (list(dict.fromkeys(parts)) for parts in zip(*(row.parts for row in rows), strict=True))
    at = {row.parts: row for row in rows}
    best = {encoder: max((r for r in rows if r.parts[0] == encoder), key=lambda r: r.mean) for encoder in encoders}
    yield "The first table has the accuracy of each pooling (row) with each encoder (column)."
    lines = [
        [f"-{pooling}", *(_cell(at.get((encoder, pooling)), best[encoder]) for encoder in encoders)]
        for pooling in poolings
    ]
    yield study_table(lines, ["accuracy %", *(f"{encoder}-" for encoder in encoders)], form="pipe")
    lone = max(row.seeds for row in rows) == 1
    yield f"Bold marks the highest accuracy of a column. The sign = marks {LONE if lone else SEVERAL}"
    over_all = max(rows, key=lambda row: row.mean)
    interval = f"{100 * over_all.low:.1f} to {100 * over_all.high:.1f}"
    yield (
        f"The most accurate {'run' if lone else 'model'} is `{over_all.label}` with {100 * over_all.mean:.1f} % (95 % "
        f"interval {interval}). Of the {len(rows) - 1} other {'runs' if lone else 'models'}, {len(over_all.level)} do "
        f"not differ significantly from it ([list](results/{one.name}/table.md))."
    )
    yield (
        "The second table has three costs for each pair of encoder and pooling: millions of multiply-adds for one set, "
        "training time in seconds, and latency for one set in milliseconds."
    )
    costs = [[f"-{p}", *(_cost(at.get((e, p))) for e in encoders)] for p in poolings]
    heads = ["M mult-adds / train s / ms a set", *(f"{encoder}-" for encoder in encoders)]
    yield study_table(costs, heads, form="pipe")
    yield from (text for text in one.table.split("\n\n")[1:] if "not significant:" not in text)


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
        file = f"results/{one.name}/robustness.csv"
        yield f"The file [`robustness.csv`]({file}) has the error of each model for each corruption and severity."


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
