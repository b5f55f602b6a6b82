"""Write scripts/experiments/README.md, pages/ and figures/ from the saved results. No experiment is run.

python scripts/experiments/page.py                      # after a change in results/
python scripts/experiments/page.py --save runs/frontier # first copy a finished comparison to results/frontier
python scripts/experiments/page.py --check              # report pages and figures that are out of date

Studies that are not made by `pointset compare` have a text of their own: each results/NAME/study.md becomes a page.
"""

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import cyclopts
from cyclopts import Parameter
from frontiers import FIGURES, draw, front_table, written_digest
from saved import FOLDER, PREDICTIONS, RESULTS, Saved, read_all, run, save
from sections import SECTIONS, answer, grid, robustness

READING = """\
Unless a page states otherwise, results are for ModelNet40 (HDF5 clouds, 9,843 training shapes and 2,468 official test
shapes). The inputs are coordinates, and predictions are for one set of points per shape, not averaged over several sets
(votes). The accuracy is measured after the last epoch on all test shapes and given as mean ± standard deviation over
seeds. Recipes and models were selected on a validation split of the training shapes. Differences are tested at the 5 %
level over seeds and test shapes, for all pairs of models of a table ([level and power](pages/levels.md)).

A model is named ENCODER-POOLING: `isab16-pma` has induced set attention blocks (ISAB) with 16 inducing points and
pooling by multihead attention (PMA). The encoder `none` passes the inputs on to the pooling. The
[README](../../README.md#models) lists the encoders and poolings with their papers.

The tables that `pointset compare` writes have these columns:

- `95 % interval`: confidence interval of the accuracy, over seeds and test shapes.
- `against the best`: difference from the best row at the same number of points, in percentage points for accuracies, if
  the difference is significant.
- `published`: result of the paper.
- `against published`: difference from the result of the paper, with its number of standard errors. "agrees" means a
  difference of at most two standard errors.
- `points`: number of points of the test sets.
- `mean-class %`: mean of the accuracies of the classes.
- `ECE %`: expected calibration error.
- `M mult-adds`: millions of multiply-adds in the matrix products for one set.
- `ms a set`: latency for one set in milliseconds.
- `step MB`: peak memory of a training step.
- `train s`: training time in seconds on a shared machine, mean over seeds. Times are comparable only within a table.

The minimum detectable difference of two models is the smallest difference that is significant with the given number of
seeds and test shapes. Attention blocks have one of two forms: `reference` is that of the Set Transformer's released
code, and `paper` is that of equation 6 of the paper. Runs with `bfloat16` compute matrix products in bfloat16.

[The research log](NOTES.md) has ablations and negative results."""
MADE = (
    "`pointset compare FILE` runs an experiment. The table lists the files and titles of all experiments. `python "
    "scripts/experiments/page.py` generates this page and those in `pages/` from the results in [`results/`](results)."
)
COLUMNS = "The columns are defined under [How to read the tables](README.md#how-to-read-the-tables)."
PAGES = "pages"
LINK_HERE = re.compile(r"\]\((?!https?:|#)")
"""A relative link. Texts have links relative to this folder; `render` changes those in `pages/`."""
app = cyclopts.App(name="page.py", help=__doc__, result_action="return_value")


@app.default
def page(
    *,
    save_: Annotated[
        Path | None, Parameter(name="--save", help="Folder of a finished comparison to copy to results/.")
    ] = None,
    name: Annotated[str, Parameter(help="Name in results/; default: the name of the folder.")] = "",
    note: Annotated[
        tuple[str, ...], Parameter(help="Sentence below the table of the saved comparison; repeatable.")
    ] = (),
    check: Annotated[bool, Parameter(help="Write nothing; exit with 1 if a page or a figure is out of date.")] = False,
    folder: Annotated[Path, Parameter(help="Folder with README.md and results/.")] = FOLDER,
) -> int:
    """Write the pages and figures, or check them."""
    if save_ is not None:
        print(save(save_, name or save_.resolve().name, note, folder / "results"))
    if check:
        stale = outdated(folder)
        print("\n".join(f"{one} is out of date: run scripts/experiments/page.py" for one in stale) or "up to date")
        return int(bool(stale))
    write(folder)
    return 0


def write(folder: Path) -> None:
    """Write the pages and figures that are out of date; delete pages without results."""
    saved, pages = read_all(folder / "results"), render(read_all(folder / "results"))
    for name in outdated(folder):
        (folder / name).parent.mkdir(exist_ok=True)
        if name in FIGURES:
            draw(FIGURES[name], saved, folder / name)
        elif name in pages:
            (folder / name).write_text(pages[name], encoding="utf-8")
        else:
            (folder / name).unlink()


def outdated(folder: Path) -> list[str]:
    """Names of the pages and figures that differ from those of the saved results, and of pages without results."""
    saved = read_all(folder / "results")
    pages = render(saved)
    there = {f"{PAGES}/{file.name}": file.read_text(encoding="utf-8") for file in (folder / PAGES).glob("*.md")}
    there["README.md"] = (folder / "README.md").read_text(encoding="utf-8")
    stale = [name for name in sorted({*pages, *there}) if there.get(name) != pages.get(name)]
    return stale + [name for name, figure in FIGURES.items() if written_digest(folder / name) != figure.digest(saved)]


def render(saved: Mapping[str, Saved]) -> dict[str, str]:
    """The pages by name: README.md with the main results and the contents, and one page for each section and study."""
    pages: dict[str, list[str]] = {}
    for section in SECTIONS:
        parts = [f"# {section.title}", *([section.text] if section.text else [])]
        for name in section.names:
            parts += _result(saved[name], section.grid)
        if section.figures:
            parts += _frontiers(saved)
        if section.robust:
            parts += robustness(saved)
        pages[f"{PAGES}/{_slug(section.title)}.md"] = parts
    known = {name for section in SECTIONS for name in section.names}
    if others := [saved[name] for name in saved if name not in known]:
        pages[f"{PAGES}/further.md"] = ["# Further results", *(part for one in others for part in _result(one))]
    for study in sorted((FOLDER / "results").glob("*/study.md")):
        text = study.read_text(encoding="utf-8").rstrip()
        pages[f"{PAGES}/{study.parent.name}.md"] = [re.sub(r"(?m)^#(#+ )", r"\1", text)]
    texts = {name: LINK_HERE.sub("](../", "\n\n".join(parts)) + "\n" for name, parts in pages.items()}
    head = [*answer(saved), "## Contents", _contents(pages), "## How to read the tables", READING]
    return {"README.md": "\n\n".join([*head, "## The experiments", MADE, _experiments()]) + "\n"} | texts


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def _contents(pages: Mapping[str, Sequence[str]]) -> str:
    """A line for each page, with the titles of the experiments on it."""
    lines = []
    for name, parts in pages.items():
        inside = [part.removeprefix("## ").partition(" (`")[0] for part in parts if part.startswith("## ")]
        title = parts[0].partition("\n")[0].removeprefix("# ")
        lines.append(f"- [{title}]({name})" + (f": {'; '.join(dict.fromkeys(inside))}" if inside else ""))
    return "\n".join(lines)


def _experiments() -> str:
    """A table of all experiments: the file (its first lines state the purpose) and the title."""
    titles = {
        file: tomllib.loads(file.read_text(encoding="utf-8"))["title"]
        for file in sorted(FOLDER.rglob("*.toml"))
        if RESULTS not in file.parents
    }
    links = ((file.relative_to(FOLDER).as_posix(), title) for file, title in titles.items())
    return "\n".join(["| file | title |", "|---|---|", *(f"| [`{link}`]({link}) | {title} |" for link, title in links)])


def _result(one: Saved, as_grid: bool = False) -> list[str]:
    about = one.about
    there = [file for file in ("results.csv", "table.md", PREDICTIONS) if (one.folder / file).exists()]
    kept = ", ".join(f"[`{file}`](results/{one.name}/{file})" for file in there)
    threads = f"{about['threads']} thread{'s' * (about['threads'] > 1)} per run"
    rounded = f"; precision: {about['precision']}" if " and " in about.get("precision", "") else ""
    source = (
        f"{about['date']}, commit {about['commit']}; machine: {about['machine']}; {threads}{rounded}. Files: {kept}."
    )
    shown = list(grid(one)) if as_grid else [COLUMNS, one.table]
    command = f"```\n{about['command']}\n```"
    return [f"## {about['title']} (`{one.name}`)", *shown, *about["notes"], command, source, *one.reading]


def _frontiers(saved: Mapping[str, Saved]) -> Iterator[str]:
    for name, figure in FIGURES.items():
        yield f"## {figure.title}"
        yield f"![{figure.title}]({name})"
        yield from front_table(figure, saved)


if __name__ == "__main__":
    sys.exit(run(app))
