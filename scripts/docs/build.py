"""Build the documentation site: collect its pages in build/docs-source, and convert them to HTML in build/docs.

.venv/bin/python scripts/docs/build.py [FOLDER]        # FOLDER in place of build; any warning of Sphinx is an error

This folder has the pages that are only on the site. Guides, results and data cards are copied from the checkout. The
site has the same folders as the checkout, so links between pages are valid in both.
"""

import inspect
import re
import shutil
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import reference_pages
from cyclopts import App
from rich.console import Console
from sphinx.cmd.build import build_main

import pointset
from pointset.commands.app import make_app
from pointset.data import list_cards, load_card
from pointset.evaluation import CORRUPTIONS
from pointset.export import make_live_page
from pointset.viz import draw_clouds, save

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
OWN = ("conf.py", "index.md", "changelog.md", "citing.md", "models.md", "tools.md", "_static", "reference")
COPIED = ("README.md", "LICENSE", "notebooks", "datasets/README.md", "scripts/experiments", "scripts/benchmark")
IGNORED = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", "*.py", "*.toml")
MODELS = ("isab16-pma.modelnet40-1024", "rff-pma4.modelnet40-1024", "dumlp16-max+dumlp16.modelnet40-1024")
"""Pretrained models of the live page."""
APP = make_app(show_all=True)
WIDTH = 88
"""Width of the help of a command, in characters, that a page shows without scrolling."""
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])+)\]\((?!\w+:)([^)#\s]+)(#[^)\s]*)?\)")

CORRUPTIONS_TEXT = """# Corruptions of point clouds

`pointset.evaluation.corrupt` applies a corruption to an array of points:

```python
noisy = pointset.evaluation.corrupt(points, "background", severity=3, seed=0)   # [n, 3] or [B, n, 3], array or tensor
```

`pointset.evaluation.robustness(model, test)` evaluates a model on sets with each corruption. Most corruptions are those
of ModelNet40-C (arXiv 2201.12296) and follow the code of its authors. Its corruptions occlusion and lidar are left out,
because they need a renderer. The corruptions drop_global and drop_local are those of ModelNet-C (arXiv 2202.03377).
The pictures show severity 3. Each corruption has a list of its levels at severities 1 to 5, for shapes that are scaled
to the unit sphere.
"""


def stage(folder: Path) -> None:
    """Collect all sources of the site in an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in OWN:
        copy(HERE / name, folder / name)
    for path in folder.glob("*.md"):  # in the checkout, they are two folders deeper
        path.write_text(path.read_text(encoding="utf-8").replace("](../", "](scripts/"), encoding="utf-8")
    for name in COPIED:
        copy(CHECKOUT / name, folder / name)
    for path in (folder / "scripts" / "experiments" / "results").rglob("*.md"):
        path.unlink()  # their text is in the results pages
    (folder / "reference" / "commands.md").write_text(help_page(), encoding="utf-8")
    for package in reference_pages.packages():
        (folder / "reference" / f"{package}.rst").write_text(reference_pages.page(package), encoding="utf-8")
    (folder / "datasets" / "cards.md").write_text(cards_page(), encoding="utf-8")
    write_corruptions(folder / "corruptions")
    write_live_page(folder / "extra" / "notebooks" / "live.html")
    for path in [*folder.rglob("*.md"), *folder.rglob("*.ipynb")]:
        path.write_text(without_links_out(path, folder), encoding="utf-8")


def copy(source: Path, target: Path) -> None:
    """Copy a file or a folder."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=IGNORED)
    else:
        shutil.copy(source, target)


def without_links_out(path: Path, folder: Path) -> str:
    """The text of a page. Links to files of the checkout that are not on the site are replaced by their words."""

    def replaced(link: re.Match[str]) -> str:
        original = CHECKOUT / path.parent.relative_to(folder) / link[2]
        on_site = (path.parent / link[2]).is_file()
        return link[1] if original.exists() and not on_site else link[0]  # Sphinx reports links to missing files

    return LINK.sub(replaced, path.read_text(encoding="utf-8"))


def cards_page() -> str:
    """The page of the data cards, in Markdown."""
    blocks = ["# The datasets"]
    for name in list_cards():
        card = load_card(name)
        sizes = ", ".join(f"{count:,} to {split}" for split, count in card.splits.items())
        rows = {
            "Load it by": f'`pointset.load_dataset("{name}")`',
            "Shapes": f"{sizes}; {len(card.classes)} classes",
            "Licence": card.licence,
            "Cite": card.citation,
            "Described at": f"<{card.homepage}>" if card.homepage else "",
            "Known defects": " ".join(f"{defect}." for defect in card.defects),
        }
        lines = [f"{key}\n: {value}\n" for key, value in rows.items() if value]
        blocks += [f"## {card.title}", card.summary, *lines]
    return "\n\n".join(blocks) + "\n"


def subcommands(parser: App, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of every command, from the empty tuple for the program itself."""
    yield path
    for name in parser:
        if not name.startswith("-"):
            yield from subcommands(parser[name], (*path, name))


def printed_help(path: tuple[str, ...]) -> str:
    """The help of a command, as the program prints it."""
    out = StringIO()
    APP.help_print(list(path), console=Console(file=out, width=WIDTH, no_color=True, highlight=False))
    return "\n".join(line.rstrip() for line in out.getvalue().strip("\n").splitlines())


def help_page() -> str:
    """The page of the command line, in Markdown: the help that the program prints."""
    blocks = [
        "# Command line",
        "This page has the output of `pointset --help` and of `pointset COMMAND --help-all` for each command.",
    ]
    for path in subcommands(APP):
        blocks += [f"## {' '.join(('pointset', *path))}", f"```text\n{printed_help(path)}\n```"]
    return "\n\n".join(blocks) + "\n"


def write_corruptions(folder: Path) -> None:
    """Write corruptions.md and its pictures into an empty folder."""
    folder.mkdir(parents=True)
    chairs = pointset.load_dataset("shapes10", split="test", points=1024)
    points = chairs.points[chairs.labels.tolist().index(chairs.classes.index("chair"))]
    blocks = [CORRUPTIONS_TEXT]
    families = dict.fromkeys(corruption.family for corruption in CORRUPTIONS.values())
    for family in families:
        own = [corruption for corruption in CORRUPTIONS.values() if corruption.family == family]
        clouds = [points, *(pointset.evaluation.corrupt(points, corruption.name) for corruption in own)]
        names = ["clean", *(corruption.name for corruption in own)]
        save(draw_clouds(clouds, names=names), folder / f"{family}.png")
        blocks.append(f"## {family.capitalize()}\n\n![{family} at severity 3]({family}.png)")
        for corruption in own:
            levels = ", ".join(map(str, corruption.levels))
            origin = "not part of ModelNet40-C" if family == "dropout" else "ModelNet40-C"
            definition = inspect.cleandoc(corruption.apply.__doc__ or "").partition("\nSource")[0].strip()
            levels = f"Severities 1 to 5: {levels} ({origin})."
            blocks.append(f"### {corruption.name}\n\n```text\n{definition}\n```\n\n{levels}")
    (folder / "corruptions.md").write_text("\n\n".join(blocks) + "\n", encoding="utf-8")


def write_live_page(path: Path) -> None:
    """Write the live page with pretrained models of the package and its built-in shapes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    models = [pointset.load_model(name) for name in MODELS]
    make_live_page(models, title="Ask trained models of ModelNet40").save(path)


def main(build: Path = CHECKOUT / "build") -> int:
    """Build the site in a folder, and return the exit code of Sphinx."""
    source, out, doctrees = build / "docs-source", build / "docs", build / "docs-doctrees"
    stage(source)
    shutil.rmtree(out, ignore_errors=True)
    code = build_main(["-b", "html", "-E", "-W", "-q", "-d", str(doctrees), str(source), str(out)])
    if code == 0:
        print(f"docs: {out / 'index.html'}")
    return code


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
