"""Laying a report out: one HTML file that asks the network for nothing, and Markdown with figures beside it."""

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from pointset.comparison.gathering import Comparison
from pointset.comparison.markdown import in_markdown, in_table
from pointset.comparison.report.content import main_tables, sections, verdicts
from pointset.comparison.report.section import Section, Table
from pointset.comparison.results import commit_of, machine_of, origins
from pointset.runs import digests
from pointset.runs.atomic import sweep
from pointset.runs.provenance import command
from pointset.viz.writing import as_png


def write_report(comparison: Comparison) -> None:
    """Write report.html, report.md and figures/ into the folder of a comparison."""
    folder = comparison.folder
    found = list(sections(comparison))
    about = describe(comparison)
    figures = {section.name: as_png(section.chart, dpi=160) for section in found if section.chart is not None}
    (folder / "figures").mkdir(exist_ok=True)
    sweep(folder / "figures")
    for name, picture in figures.items():
        digests.write(folder / "figures" / f"{name}.png", picture)
    digests.write_text(folder / "report.md", as_markdown(comparison, found, about))
    digests.write_text(folder / "report.html", as_html(comparison, found, about, figures))


def describe(comparison: Comparison) -> dict[str, Any]:
    """What was run, where and with what, and how to repeat and cite it."""
    experiment, found = comparison.experiment, origins(comparison)
    commits = _each_once(commit_of(one) for one in found)
    return {
        "verdicts": verdicts(comparison),
        "title": experiment.title or f"{len(experiment.models)} models on {experiment.task.title}",
        "command": command(),
        "commit": commits,
        "metric": experiment.task.measured[0].name,
        "seeds": ", ".join(map(str, experiment.seeds)),
        "machine": f"{_each_once(machine_of(one) for one in found)}, "
        f"{experiment.threads} thread{'s' * (experiment.threads > 1)} a run",
        "versions": _each_once(_versions(one) for one in found),
        "configuration": json.dumps(experiment.as_dict(), indent=2),
        "cite": f"pointset ({commits}), seeds {', '.join(map(str, experiment.seeds))}: {comparison.caption()}",
    }


def _versions(origin: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {version}" for name, version in origin["versions"].items() if version != "absent")


def _each_once(words: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(words))


def as_html(
    comparison: Comparison, found: Sequence[Section], about: Mapping[str, Any], figures: Mapping[str, bytes]
) -> str:
    """The report as one HTML file, with the figures, PNG by the section's name, inside."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["inline"] = lambda section: _inline(figures[section.name])
    environment.filters["html_table"] = lambda table: _as_table(table, "html")
    template = environment.from_string(
        (files("pointset.comparison.report") / "template.html").read_text(encoding="utf-8")
    )
    reached, costs = main_tables(comparison, "html")
    return template.render(comparison=comparison, reached=reached, costs=costs, sections=found, about=about)


def as_markdown(comparison: Comparison, found: Sequence[Section], about: Mapping[str, Any]) -> str:
    """The report as Markdown; the figures lie in figures/."""
    parts = [f"# {in_markdown(about['title'])}", *map(in_markdown, (comparison.caption() + ".", *about["verdicts"]))]
    parts += main_tables(comparison, "github")
    parts += [f"- failed: {in_markdown(f'{one.name}: {one.reason}')}" for one in comparison.failures]
    for section in found:
        title = in_markdown(section.title)
        parts += [f"## {title}", in_markdown(section.text)]
        if section.chart is not None:
            parts.append(f"![{title}](figures/{section.name}.png)")
        if section.table:
            parts.append(_as_table(section.table, "github"))
    parts += [
        "## How to repeat and cite",
        f"```\n{about['command']}\n```",
        *(f"- {name}: {in_markdown(about[name])}" for name in ("commit", "seeds", "machine", "versions", "cite")),
        f"```json\n{about['configuration']}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def _as_table(table: Table, style: str) -> str:
    from tabulate import tabulate

    words = ("pair", "model", "class", "verdict")
    align = ["left" if name in words else "right" for name in table[0]]
    cells = [{name: in_table(str(cell), style) for name, cell in row.items()} for row in table]
    return tabulate(cells, headers="keys", tablefmt=style, colalign=align, disable_numparse=True)


def _inline(picture: bytes) -> str:
    """The picture as a data URI."""
    return "data:image/png;base64," + base64.b64encode(picture).decode("ascii")
