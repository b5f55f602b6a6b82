"""Write a report: one self-contained HTML file, and Markdown with a folder of figures."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

from pointset.comparison.gathering import Comparison
from pointset.comparison.markdown import in_markdown, in_table
from pointset.comparison.report import figures
from pointset.comparison.report.content import costs_text, sections, verdicts, without_a_model
from pointset.comparison.results import commit_of, machine_of, origins
from pointset.comparison.section import Section, Table
from pointset.comparison.tables import is_words, make_columns, make_table
from pointset.runs import digests
from pointset.runs.atomic import sweep
from pointset.runs.provenance import command


def write_report(comparison: Comparison) -> None:
    """Write report.html, report.md and figures/ into the folder of a comparison."""
    folder = comparison.folder
    found = list(sections(comparison))
    about = describe(comparison)
    files = figures.draw(found)
    (folder / "figures").mkdir(exist_ok=True)
    sweep(folder / "figures")
    for name, content in files.items():
        digests.write(folder / "figures" / name, content)
    for name in digests.read_list(folder / "figures").keys() - files.keys():
        digests.remove(folder / "figures" / name)  # left over from an earlier report
    digests.write_text(folder / "report.md", as_markdown(comparison, found, about))
    digests.write_text(folder / "report.html", as_html(comparison, found, about, files))


def describe(comparison: Comparison) -> dict[str, Any]:
    """Verdicts, command, commit, machine, versions, configuration and citation, for the report's texts."""
    experiment, found = comparison.experiment, origins(comparison)
    commits = _each_once(commit_of(one) for one in found)
    return {
        "verdicts": verdicts(comparison),
        "without": without_a_model(comparison),
        "costs": costs_text(comparison.rows),
        "title": experiment.title or f"{len(experiment.models)} models on {experiment.task.title}",
        "command": command().replace(" --report", ""),  # with --report the command would not run anything
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
    comparison: Comparison, found: Sequence[Section], about: Mapping[str, Any], drawn: Mapping[str, bytes]
) -> str:
    """The report as one HTML file; `drawn` has the contents of the figures' files, by name."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup, escape

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["chart"] = lambda section: Markup(figures.inline_chart(section, drawn))
    environment.filters["tile"] = lambda section, place: figures.inline_tile(figures.tile_name(section, place), drawn)
    environment.filters["breakable"] = lambda text: escape(text).replace("/", Markup("/<wbr>"))
    environment.tests["words"] = is_words
    parts = {name: (files("pointset.comparison.report") / name).read_text(encoding="utf-8") for name in PARTS}
    template = environment.from_string(parts["template.html"])
    metrics, rows = comparison.experiment.task.measured, comparison.rows
    reached, costs = (_as_rows(make_columns(rows, metrics, part=part)) for part in ("metrics", "costs"))
    return template.render(
        comparison=comparison,
        reached=reached,
        costs=costs,
        best=[place for place, row in enumerate(rows) if row.best],
        sections=found,
        about=about,
        style=Markup(parts["report.css"]),
        script=Markup(parts["report.js"]),
    )


PARTS = ("template.html", "report.css", "report.js")


def _as_rows(columns: Mapping[str, Sequence[str]]) -> Table:
    return [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]


def as_markdown(comparison: Comparison, found: Sequence[Section], about: Mapping[str, Any]) -> str:
    """The report as Markdown that links to figures/."""
    parts = [f"# {in_markdown(about['title'])}", *map(in_markdown, (comparison.caption() + ".", *about["verdicts"]))]
    metrics, rows = comparison.experiment.task.measured, comparison.rows
    parts += [make_table(rows, metrics, "github", part="metrics", emphasized=True)]
    parts += [f"Without a model: {in_markdown(about['without'])}."] if about["without"] else []
    parts += [make_table(rows, metrics, "github", part="costs", emphasized=True)]
    parts += [f"- failed: {in_markdown(f'{one.name}: {one.reason}')}" for one in comparison.failures]
    for section in found:
        parts += _section_as_markdown(section)
    parts += [
        "## How to repeat and cite",
        f"```\n{about['command']}\n```",
        *(f"- {name}: {in_markdown(about[name])}" for name in ("commit", "seeds", "machine", "versions", "cite")),
        f"```json\n{about['configuration']}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def _section_as_markdown(section: Section) -> Iterator[str]:
    title = in_markdown(section.title)
    yield f"## {title}"
    if section.text:
        yield in_markdown(section.text)
    if section.chart is not None:
        yield f"![{title}](figures/{section.name}.svg)"
    for place, tile in enumerate(section.tiles):
        caption = in_markdown(tile.title)
        yield f"![{caption}](figures/{figures.tile_name(section, place)})\n{caption}: {in_markdown(tile.text)}"
    if section.page is not None:
        yield f"[figures/{section.name}.html](figures/{section.name}.html)"
    if section.table:
        yield _as_table(section.table)


def _as_table(table: Table) -> str:
    from tabulate import tabulate

    align = ["left" if is_words(name) else "right" for name in table[0]]
    cells = [{name: in_table(str(cell), "github") for name, cell in row.items()} for row in table]
    return tabulate(cells, headers="keys", tablefmt="github", colalign=align, disable_numparse=True)
