"""The report of a comparison: a folder of figures, and one HTML file with common sections and those of the task."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pointset.comparison.charts import draw_matrix, pareto
from pointset.comparison.results import Comparison, origins
from pointset.comparison.runs import of_size
from pointset.comparison.tables import is_words, make_cells
from pointset.comparison.task import Results, Section
from pointset.runs import records
from pointset.runs.provenance import command

PARETO_TEXT = (
    "Grey line: the Pareto frontier, the models that no cheaper model surpasses. Multiply-adds are counted; times are "
    "measured on the machine named below."
)
PAIRS_TEXT = (
    "The figure shows row minus column for each pair of models, in bold if the difference is significant. The "
    "significance level holds for all pairs of the table together."
)


def sections(comparison: Comparison) -> Iterator[Section]:
    """Yield all sections that have content. If there are several set sizes, titles and file names contain the size."""
    task = comparison.experiment.task
    for size in task.sizes:
        results = comparison.results(size)
        if not results.rows:
            continue
        for section in (*_common_sections(comparison, results), *task.sections(results)):
            if section.chart is None and not section.table:
                continue
            if len(task.sizes) > 1:
                section.title += f", {size:,} points"
            if section.name:
                section.name += of_size(size)
            yield section


def _common_sections(comparison: Comparison, results: Results) -> Iterator[Section]:
    """Yield the sections of one size that every task has."""
    metric, ranking = results.metrics[0], comparison.rankings[results.points]
    if ranking.pairs:
        text = f"{PAIRS_TEXT} {ranking.method}"
        yield Section("Significant differences", text, draw_matrix(ranking), "matrix", ranking.pair_table())
    bars = any(summary.interval for row in results.rows.values() for summary in row.metrics.values())
    text = PARETO_TEXT + " Bars: 95 % confidence intervals." * bars
    yield Section(f"{metric.name[:1].upper()}{metric.name[1:]} against cost", text, pareto(results), "pareto")


def write_report(comparison: Comparison) -> None:
    """Write report.html and figures/ into the folder of a comparison."""
    folder, figures = comparison.folder, comparison.folder / "figures"
    made, about = list(sections(comparison)), report_texts(comparison)
    charts = {f"{section.name}.svg": section.svg for section in made if section.chart}
    figures.mkdir(exist_ok=True)
    for name, svg in charts.items():
        records.write_text(figures / name, svg)
    for path in figures.iterdir():
        if path.name not in charts:
            path.unlink()  # left over from an earlier report
    records.write_text(folder / "report.html", as_html(comparison, made, about))


def report_texts(comparison: Comparison) -> dict[str, Any]:
    """Return conclusions, command, commit, machine, versions, configuration and citation, for the report's texts."""
    experiment, rows, made = comparison.experiment, comparison.rows, origins(comparison)
    costs = "M mult-adds: millions of multiply-adds for one set. ms a set: latency for one set. " * any(
        row.cost for row in rows
    )
    versions = (
        ", ".join(f"{name} {version}" for name, version in origin["versions"].items() if version != "absent")
        for origin in made
    )
    commits, machines = _distinct(map(commit_of, made)), _distinct(map(machine_of, made))
    seeds = ", ".join(map(str, experiment.seeds))
    return {
        "rankings": comparison.sentences(),
        "costs": f"{costs}train s: seconds of one training (CPU time without a GPU).",
        "title": experiment.title or f"{len(experiment.models)} models on {experiment.task.title}",
        "command": command().replace(" --report", ""),  # the command that repeats the runs
        "commit": commits,
        "metric": comparison.metrics[0].name,
        "seeds": seeds,
        "machine": f"{machines}, {experiment.threads} thread{'s' * (experiment.threads > 1)} a run",
        "versions": _distinct(versions),
        "configuration": json.dumps(experiment.as_dict(), indent=2),
        "cite": f"pointset ({commits}), seeds {seeds}: {comparison.caption()}",
    }


def commit_of(origin: Mapping[str, Any]) -> str:
    """Return the commit of one of the `origins`, or the package version if no commit is known."""
    return origin["commit"] or f"pointset {(origin['versions'] or {}).get('pointset', 'of an unrecorded version')}"


def machine_of(origin: Mapping[str, Any]) -> str:
    """Return the machine of one of the `origins`, as text."""
    if (machine := origin["machine"]) is None:
        return "an unrecorded machine"
    return f"{machine['system']}, {machine['cores']} cores, {machine['accelerator'] or 'no GPU'}"


def _distinct(words: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(words))


def as_html(comparison: Comparison, made: Sequence[Section], about: Mapping[str, Any]) -> str:
    """Return the report as one HTML file."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    loader = PackageLoader("pointset.comparison", "report")
    page = Environment(loader=loader, undefined=StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    page.tests["words"], page.filters["chart"] = is_words, lambda section: Markup(inline_chart(section.svg))
    metrics, rows = comparison.metrics, comparison.rows
    return page.get_template("template.html").render(
        comparison=comparison,
        reached=make_cells(rows, metrics, part="metrics"),
        costs=make_cells(rows, metrics, part="costs"),
        best=[number for number, row in enumerate(rows) if row.best],
        sections=made,
        about=about,
    )


def inline_chart(svg: str) -> str:
    """Return a chart as inline SVG, whose size comes from the page's style sheet."""
    svg = re.sub(r"<style.*?</style>", "", svg, flags=re.DOTALL)  # this style would apply to the whole page
    return re.sub(r' width="[^"]*" height="[^"]*"', ' role="img"', svg, count=1)
