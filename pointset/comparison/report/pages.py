"""Write a report: one self-contained HTML file, and a folder with its figures."""

import base64
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from pointset.comparison.report.sections import Section, costs_text, sections, verdicts, without_a_model
from pointset.comparison.results import Comparison
from pointset.comparison.tables import commit_of, is_words, machine_of, make_cells, origins
from pointset.runs import digests
from pointset.runs.atomic import sweep
from pointset.runs.provenance import command
from pointset.viz.color import COLORS, FAINT, INK

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
    """Write report.html and figures/ into the folder of a comparison."""
    folder, figures = comparison.folder, comparison.folder / "figures"
    made = list(sections(comparison))
    about = describe(comparison)
    contents = {name: content for section in made for name, content in section.files.items()}
    figures.mkdir(exist_ok=True)
    sweep(figures)
    for name, content in contents.items():
        digests.write(figures / name, content)
    for name in digests.read_list(figures).keys() - contents.keys():
        digests.remove(figures / name)  # left over from an earlier report
    digests.write_text(folder / "report.html", as_html(comparison, made, about))


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


def as_html(comparison: Comparison, made: Sequence[Section], about: Mapping[str, Any]) -> str:
    """The report as one HTML file."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup, escape

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["chart"] = lambda section: Markup(inline_chart(section.files[f"{section.name}.svg"].decode()))
    environment.filters["inline"] = lambda png: "data:image/png;base64," + base64.b64encode(png).decode("ascii")
    environment.filters["breakable"] = lambda text: escape(text).replace("/", Markup("/<wbr>"))
    environment.tests["words"] = is_words
    template, style, script = (
        (files("pointset.comparison.report") / name).read_text(encoding="utf-8")
        for name in ("template.html", "report.css", "report.js")
    )
    metrics, rows = comparison.metrics, comparison.rows
    return environment.from_string(template).render(
        comparison=comparison,
        reached=make_cells(rows, metrics, part="metrics"),
        costs=make_cells(rows, metrics, part="costs"),
        best=[number for number, row in enumerate(rows) if row.best],
        sections=made,
        about=about,
        style=Markup(style),
        script=Markup(script),
    )


def inline_chart(svg: str) -> str:
    """A chart as inline SVG, whose size and colours come from the page's style sheet."""
    svg = re.sub(r"<style.*?</style>", "", svg, flags=re.DOTALL)  # it would apply to the whole page
    svg = SHEET.sub(r'\1 style="fill: none"/>', svg)  # shows the page's own background
    svg = re.sub(r'style="[^"]*"', lambda match: _in_scheme(match[0]), svg)
    return re.sub(r' width="[^"]*" height="[^"]*"', ' role="img"', svg, count=1)


def _in_scheme(style: str) -> str:
    """A style attribute with the page's font and colours."""
    style = re.sub(r"font-family: [^;\"]*;? ?", "", style)
    return re.sub(
        r"#[0-9a-f]{6}", lambda color: f"var(--{SCHEME[color[0]]})" if color[0] in SCHEME else color[0], style
    )
