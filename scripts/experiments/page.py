"""Write scripts/experiments/README.md and its figures from the saved results; nothing is computed anew.

python scripts/experiments/page.py                      # after something in results/ has changed
python scripts/experiments/page.py --save runs/frontier # keep a finished comparison in results/frontier first
python scripts/experiments/page.py --save runs/frontier --add   # further seeds or rows, of another day or machine
python scripts/experiments/page.py --check              # does the page stand as it would be written?
"""

import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import cyclopts
from cyclopts import Parameter
from frontiers import FIGURES, draw, front_table, written_digest
from joining import PREDICTIONS
from saved import FOLDER, Saved, read_all, save
from sections import SECTIONS, grid, robustness

from pointset.errors import PointsetError
from pointset.runs.atomic import write_for_user, write_text

HEAD = """# Which pooling, at what cost

Written by `python scripts/experiments/page.py` from the saved results in [`results/`](results); change those, or the
script, not this page. What was tried on the way, and failed, is in [NOTES.md](NOTES.md).

All of it is real ModelNet40 (the repacked HDF5 clouds, 9,843 shapes to train on and the 2,468 official test shapes),
coordinates only, no voting, unless a table says otherwise. Accuracy is that of the last epoch on every test shape,
mean ± standard deviation over seeds; recipes and models were chosen on a held-out part of the training shapes.
M mult-adds: millions of multiply-adds of the matrix products of one set, counted. ms a set, step MB: latency of one
set, and the memory that a training step holds at its peak, measured on the machine of the table. train s: seconds of
training, mean over seeds, on a machine that did other work beside it: they compare within a table, and not with those
of a table from another day or machine."""
OPEN = "Open: not run yet, or not to its end."
app = cyclopts.App(name="page.py", help=__doc__, result_action="return_value")


@app.default
def page(
    *,
    save_: Annotated[Path | None, Parameter(name="--save", help="Folder of a finished comparison to keep.")] = None,
    name: Annotated[str, Parameter(help="What to keep it as; the folder's name when not given.")] = "",
    note: Annotated[tuple[str, ...], Parameter(help="A sentence to stand under its table; more than once.")] = (),
    timed: Annotated[
        Path | None, Parameter(help="What `compare ... --dry-run --json` printed, for its seconds.")
    ] = None,
    add: Annotated[bool, Parameter(help="Keep the runs that are kept already beside its own.", negative=())] = False,
    check: Annotated[bool, Parameter(help="Write nothing; exit code 1 if page or figures are not up to date.")] = False,
    folder: Annotated[Path, Parameter(help="Of the page, with results/ in it.")] = FOLDER,
) -> int:
    """Exit code 2, with one sentence, for a folder that cannot be kept."""
    try:
        if save_ is not None:
            print(save(save_, name or save_.resolve().name, note, folder / "results", timed, add))
    except PointsetError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if check:
        stale = outdated(folder)
        print("\n".join(f"{one} is out of date: start scripts/experiments/page.py" for one in stale) or "up to date")
        return int(bool(stale))
    write(folder)
    return 0


def write(folder: Path) -> None:
    """Write the page and the figures that have changed."""
    found = read_all(folder / "results")
    for figure in stale_figures(found, folder):
        (folder / figure).parent.mkdir(exist_ok=True)
        write_for_user(folder / figure, partial(draw, figure, found))
    write_text(folder / "README.md", render(found))


def outdated(folder: Path) -> list[str]:
    """The files that are not as they would be written."""
    found, page = read_all(folder / "results"), folder / "README.md"
    stale = [] if page.exists() and page.read_text(encoding="utf-8") == render(found) else [page.name]
    return stale + stale_figures(found, folder)


def stale_figures(found: Mapping[str, Saved], folder: Path) -> list[str]:
    """The figures that show other rows than are saved."""
    return [figure for figure in FIGURES if written_digest(folder / figure) != FIGURES[figure].digest(found)]


def render(found: Mapping[str, Saved]) -> str:
    """The page, as Markdown."""
    parts = [HEAD, *_experiments()]
    for number, section in enumerate(SECTIONS, start=1):
        parts.append(f"## {number}. {section.title}" if section.numbered else f"## {section.title}")
        parts += [section.text] if section.text else []
        for name in section.names:
            parts += _result(found[name], section.grid) if name in found else _open(name)
        if section.figures:
            parts += _frontiers(found)
        if section.robust:
            parts += robustness(found)
    known = {name for section in SECTIONS for name in section.names}
    if others := [found[name] for name in found if name not in known]:
        parts.append("## Further results")
        parts += [part for one in others for part in _result(one)]
    return "\n\n".join(parts) + "\n"


def _experiments() -> Iterator[str]:
    """Every experiment that is shipped: its file, which begins with what it is for, and its title."""
    yield "## The experiments"
    yield "`pointset compare FILE` or `pointset task FILE`; each begins with what it is for. `--dry-run` estimates."
    titles = {file: tomllib.loads(file.read_text(encoding="utf-8"))["title"] for file in sorted(FOLDER.rglob("*.toml"))}
    links = ((file.relative_to(FOLDER).as_posix(), title) for file, title in titles.items())
    yield "\n".join(["| file | |", "|---|---|", *(f"| [`{link}`]({link}) | {title} |" for link, title in links)])


def _open(name: str) -> list[str]:
    file = FOLDER / f"{name}.toml"
    meshes = file.exists() and tomllib.loads(file.read_text(encoding="utf-8"))["data"] == "modelnet40"
    data = "path/to/ModelNet40" if meshes else "path/to/modelnet40_ply_hdf5"
    command = f"pointset compare {file.relative_to(FOLDER.parent.parent)} --data {data}"
    lines = [command, f"python scripts/experiments/page.py --save runs/{name}"]
    return [f"### {name}", OPEN if file.exists() else f"{OPEN} `{name}.toml` is to be written.", _commands(lines)]


def _result(one: Saved, as_grid: bool = False) -> list[str]:
    about = one.about
    there = [file for file in ("results.csv", "table.md", PREDICTIONS) if (one.folder / file).exists()]
    kept = ", ".join(f"[`{file}`](results/{one.name}/{file})" for file in there)
    threads = f"{about['threads']} thread{'s' * (about['threads'] > 1)} a run"
    rounded = f"; trained in {about['precision']}" if " and " in about.get("precision", "") else ""
    source = f"{about['date']}, commit {about['commit']}; {about['machine']}, {threads}{rounded}. Every run: {kept}."
    shown = list(grid(one)) if as_grid else [one.table]
    command = _commands([about["command"]])
    return [f"### {about['title']} (`{one.name}`)", *shown, *about["notes"], command, source, *one.reading]


def _frontiers(found: Mapping[str, Saved]) -> Iterator[str]:
    for name, figure in FIGURES.items():
        yield f"### {figure.title}"
        yield f"![{figure.title}]({name})"
        yield from front_table(figure, found)


def _commands(lines: Sequence[str]) -> str:
    return "```\n" + "\n".join(lines) + "\n```"


if __name__ == "__main__":
    sys.exit(app())
