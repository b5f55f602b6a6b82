"""Write scripts/experiments/README.md, pages/ and figures/ from the saved results, without running anything.

python scripts/experiments/page.py                      # after something in results/ has changed
python scripts/experiments/page.py --save runs/frontier # keep a finished comparison in results/frontier first
python scripts/experiments/page.py --check              # is the page up to date?

Studies that are not comparisons have their own text: every results/NAME/study.md becomes a page.
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
Unless a page states otherwise, results are for ModelNet40 (HDF5 clouds, 9,843 training and 2,468 official test shapes)
with coordinates as inputs and without votes. Accuracy is measured after the last epoch on all test shapes and is given
as mean ± standard deviation over seeds. Recipes and models were selected on a validation split of the training shapes.
Significance is tested at the 5 % level over seeds and test shapes, for all pairs of models of a table
([level and power](pages/levels.md)).

A model is named ENCODER-POOLING: `isab16-pma` has induced set attention blocks (ISAB) with 16 inducing points and
pooling by multihead attention (PMA); `none` means no encoder. The [README](../../README.md#models) lists the encoders
and poolings with their papers.

The columns of the tables that `pointset compare` writes have these meanings:

- `95 % interval`: confidence interval of the accuracy, over seeds and test shapes.
- `against the best`: difference from the best row at the same number of points, if it is significant. Differences of
  accuracies are in percentage points.
- `published`, `against published`: the result of the paper. "agrees" means a difference of at most two standard errors;
  other differences are given with their number of standard errors.
- `points`: number of points of the test sets.
- `mean-class %`: mean of the accuracies of the classes.
- `ECE %`: expected calibration error.
- `M mult-adds`: millions of multiply-adds in the matrix products for one set.
- `ms a set`: latency for one set.
- `step MB`: peak memory of a training step.
- `train s`: training time in seconds, mean over seeds, on a shared machine. It is comparable within a table only.

The minimum detectable difference of two models is the smallest difference that is significant with the given number of
seeds and test shapes. Attention form `reference` is that of the Set Transformer's released code, and `paper` is
equation 6 of the paper. Runs with `bfloat16` compute matrix products in bfloat16.

[The research log](NOTES.md) has ablations and negative results."""
MADE = (
    "`python scripts/experiments/page.py` generates these pages from [`results/`](results). "
    "`pointset compare FILE` runs an experiment. The table lists the files and titles of all experiments."
)
COLUMNS = "The columns are defined under [How to read the tables](README.md#how-to-read-the-tables)."
PAGES = "pages"
LINK_HERE = re.compile(r"\]\((?!https?:|#)")
"""A link to a file of this folder, which is above that of the pages."""
app = cyclopts.App(name="page.py", help=__doc__, result_action="return_value")


@app.default
def page(
    *,
    save_: Annotated[Path | None, Parameter(name="--save", help="Folder of a finished comparison to keep.")] = None,
    name: Annotated[str, Parameter(help="Name to keep it under; default: the folder's name.")] = "",
    note: Annotated[tuple[str, ...], Parameter(help="A sentence to print below its table; repeatable.")] = (),
    check: Annotated[bool, Parameter(help="Write nothing; exit code 1 if page or figures are not up to date.")] = False,
    folder: Annotated[Path, Parameter(help="Folder of the page, which contains results/.")] = FOLDER,
) -> int:
    """Write the page."""
    if save_ is not None:
        print(save(save_, name or save_.resolve().name, note, folder / "results"))
    if check:
        stale = outdated(folder)
        print("\n".join(f"{one} is out of date: run scripts/experiments/page.py" for one in stale) or "up to date")
        return int(bool(stale))
    write(folder)
    return 0


def write(folder: Path) -> None:
    """Write the pages, and the figures that have changed."""
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
    """Names of the pages and figures that are out of date: others than the saved rows give, or of no result."""
    saved = read_all(folder / "results")
    pages = render(saved)
    there = {f"{PAGES}/{file.name}": file.read_text(encoding="utf-8") for file in (folder / PAGES).glob("*.md")}
    there["README.md"] = (folder / "README.md").read_text(encoding="utf-8")
    stale = [name for name in sorted({*pages, *there}) if there.get(name) != pages.get(name)]
    return stale + [name for name, figure in FIGURES.items() if written_digest(folder / name) != figure.digest(saved)]


def render(saved: Mapping[str, Saved]) -> dict[str, str]:
    """The pages by name: README.md with the answer and the contents, and one for each section and study."""
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
    """A line for each page, with the results on it."""
    lines = []
    for name, parts in pages.items():
        inside = [part.removeprefix("## ").partition(" (`")[0] for part in parts if part.startswith("## ")]
        title = parts[0].partition("\n")[0].removeprefix("# ")
        lines.append(f"- [{title}]({name})" + (f": {'; '.join(dict.fromkeys(inside))}" if inside else ""))
    return "\n".join(lines)


def _experiments() -> str:
    """A table of all experiments: the file, whose first lines state its purpose, and the title."""
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
