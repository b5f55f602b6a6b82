"""Write a report: one self-contained HTML file, and Markdown with a folder of figures."""

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

from pointset.comparison.report.sections import (
    Section,
    Table,
    costs_text,
    not_drawn,
    sections,
    verdicts,
    without_a_model,
)
from pointset.comparison.results import Comparison
from pointset.comparison.tables import (
    commit_of,
    in_markdown,
    in_table,
    is_words,
    machine_of,
    make_columns,
    make_table,
    origins,
)
from pointset.runs import digests
from pointset.runs.atomic import sweep
from pointset.runs.provenance import command
from pointset.viz.color import COLORS, FAINT, INK
from pointset.viz.writing import as_png, as_svg

PARTS = ("template.html", "report.css", "report.js")
SCHEME = {
    "#000000": "ink",
    INK: "ink",
    FAINT: "faint",
    "#bbbbbb": "mid",
    "#eeeeee": "line",
    "#ffffff": "paper",
    **{color: f"c{place}" for place, color in enumerate(COLORS) if color != "#000000"},
}
"""CSS variables of the page, which has a light and a dark scheme, by the colour that they replace."""
SHEET = re.compile(r'(<path d="[^"]*") style="fill: #ffffff"/>')
"""The white background of a figure or of its axes."""


def write_report(comparison: Comparison) -> None:
    """Write report.html, report.md and figures/ into the folder of a comparison."""
    folder = comparison.folder
    made = list(sections(comparison))
    about = describe(comparison)
    files = draw(made)
    (folder / "figures").mkdir(exist_ok=True)
    sweep(folder / "figures")
    for name, content in files.items():
        digests.write(folder / "figures" / name, content)
    for name in digests.read_list(folder / "figures").keys() - files.keys():
        digests.remove(folder / "figures" / name)  # left over from an earlier report
    digests.write_text(folder / "report.md", as_markdown(comparison, made, about))
    digests.write_text(folder / "report.html", as_html(comparison, made, about, files))


def draw(made: Sequence[Section]) -> dict[str, bytes]:
    """Contents of all files in figures/, by name; a section that cannot be drawn loses its pictures and says why."""
    files: dict[str, bytes] = {}
    for section in made:
        try:
            files |= _draw_section(section)
        except Exception as error:
            section.chart, section.tiles, section.page = None, (), None
            section.text = " ".join(filter(None, (section.text, not_drawn(section.title, error))))
    return files


def _draw_section(section: Section) -> dict[str, bytes]:
    """Charts as SVG, tiles as PNG, and an HTML page."""
    files = {}
    if section.chart is not None:
        files[f"{section.name}.svg"] = as_svg(section.chart, section.name).encode()
    for index, tile in enumerate(section.tiles):
        files[tile_name(section, index)] = as_png(tile.picture, dpi=140, colors=64)
    if section.page is not None:
        files[f"{section.name}.html"] = section.page.html.encode()
    return files


def describe(comparison: Comparison) -> dict[str, Any]:
    """Verdicts, command, commit, machine, versions, configuration and citation, for the report's texts."""
    experiment, origins_of_runs = comparison.experiment, origins(comparison)
    commits = _each_once(commit_of(origin) for origin in origins_of_runs)
    return {
        "verdicts": verdicts(comparison),
        "without": without_a_model(comparison),
        "costs": costs_text(comparison.rows),
        "title": experiment.title or f"{len(experiment.models)} models on {experiment.task.title}",
        "command": command().replace(" --report", ""),  # with --report the command would not run anything
        "commit": commits,
        "metric": comparison.metrics[0].name,
        "seeds": ", ".join(map(str, experiment.seeds)),
        "machine": f"{_each_once(machine_of(origin) for origin in origins_of_runs)}, "
        f"{experiment.threads} thread{'s' * (experiment.threads > 1)} a run",
        "versions": _each_once(_versions(origin) for origin in origins_of_runs),
        "configuration": json.dumps(experiment.as_dict(), indent=2),
        "cite": f"pointset ({commits}), seeds {', '.join(map(str, experiment.seeds))}: {comparison.caption()}",
    }


def _versions(origin: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {version}" for name, version in origin["versions"].items() if version != "absent")


def _each_once(words: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(words))


def as_html(
    comparison: Comparison, made: Sequence[Section], about: Mapping[str, Any], drawn: Mapping[str, bytes]
) -> str:
    """The report as one HTML file; `drawn` has the contents of the figures' files, by name."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup, escape

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["chart"] = lambda section: Markup(inline_chart(section, drawn))
    environment.filters["tile"] = lambda section, index: inline_tile(tile_name(section, index), drawn)
    environment.filters["breakable"] = lambda text: escape(text).replace("/", Markup("/<wbr>"))
    environment.tests["words"] = is_words
    parts = {name: (files("pointset.comparison.report") / name).read_text(encoding="utf-8") for name in PARTS}
    template = environment.from_string(parts["template.html"])
    metrics, rows = comparison.metrics, comparison.rows
    reached, costs = (_as_rows(make_columns(rows, metrics, part=part)) for part in ("metrics", "costs"))
    return template.render(
        comparison=comparison,
        reached=reached,
        costs=costs,
        best=[place for place, row in enumerate(rows) if row.best],
        sections=made,
        about=about,
        style=Markup(parts["report.css"]),
        script=Markup(parts["report.js"]),
    )


def _as_rows(columns: Mapping[str, Sequence[str]]) -> Table:
    return [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]


def as_markdown(comparison: Comparison, made: Sequence[Section], about: Mapping[str, Any]) -> str:
    """The report as Markdown that links to figures/."""
    parts = [f"# {in_markdown(about['title'])}", *map(in_markdown, (comparison.caption() + ".", *about["verdicts"]))]
    metrics, rows = comparison.metrics, comparison.rows
    parts += [make_table(rows, metrics, "github", part="metrics", emphasized=True)]
    parts += [f"Without a model: {in_markdown(about['without'])}."] if about["without"] else []
    parts += [make_table(rows, metrics, "github", part="costs", emphasized=True)]
    parts += [f"- failed: {in_markdown(f'{failure.name}: {failure.reason}')}" for failure in comparison.failures]
    for section in made:
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
        yield f"![{caption}](figures/{tile_name(section, place)})\n{caption}: {in_markdown(tile.text)}"
    if section.page is not None:
        yield f"[figures/{section.name}.html](figures/{section.name}.html)"
    if section.table:
        yield _as_table(section.table)


def _as_table(table: Table) -> str:
    from tabulate import tabulate

    align = ["left" if is_words(name) else "right" for name in table[0]]
    heads = [in_table(name, "github") for name in table[0]]
    cells = [[in_table(str(cell), "github") for cell in row.values()] for row in table]
    return tabulate(cells, heads, tablefmt="github", colalign=align, disable_numparse=True)


def tile_name(section: Section, index: int) -> str:
    """File name of the tile with this index."""
    return f"{section.name}-{index + 1}.png"


def inline_chart(section: Section, files: Mapping[str, bytes]) -> str:
    """A chart as inline SVG, whose size and colours come from the page's style sheet."""
    svg = files[f"{section.name}.svg"].decode()
    svg = re.sub(r"<style.*?</style>", "", svg, flags=re.DOTALL)  # it would apply to the whole page
    svg = SHEET.sub(r'\1 style="fill: none"/>', svg)  # shows the page's own background
    svg = re.sub(r'style="[^"]*"', lambda match: _in_scheme(match.group()), svg)
    return re.sub(r' width="[^"]*" height="[^"]*"', ' role="img"', svg, count=1)


def _in_scheme(style: str) -> str:
    """A style attribute with the page's font and colours."""
    style = re.sub(r"font-family: [^;\"]*;? ?", "", style)
    return re.sub(r"#[0-9a-f]{6}", lambda match: _variable(match.group()), style)


def _variable(color: str) -> str:
    return f"var(--{SCHEME[color]})" if color in SCHEME else color


def inline_tile(name: str, files: Mapping[str, bytes]) -> str:
    """A picture as a data URI."""
    return "data:image/png;base64," + base64.b64encode(files[name]).decode("ascii")
