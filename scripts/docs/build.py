"""Build the site: put its pages together in build/docs-source, and let Sphinx make HTML of them in build/docs.

.venv/bin/python scripts/docs/build.py            # any warning is an error

The site's own pages lie here; guides, results and cards are taken from where they lie in the checkout, whose layout
the site has, so that links between them hold in both.
"""

import re
import shutil
import sys
from pathlib import Path

from help_page import help_page
from live_page import write_live_page
from reference_pages import write_reference
from sphinx.cmd.build import build_main

from pointset.data.catalogue.cards import list_cards, load_card

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
OWN = ("conf.py", "index.md", "changelog.md", "citing.md", "_static")
TAKEN = ("README.md", "LICENSE", "notebooks", "datasets/README.md", "scripts/experiments", "scripts/benchmark")
LEFT = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", "*.py", "*.toml")
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])+)\]\((?!\w+:)([^)#\s]+)(#[^)\s]*)?\)")


def stage(folder: Path) -> None:
    """Make `folder` anew with all that the site is made of."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in OWN:
        take(HERE / name, folder / name)
    for name in TAKEN:
        take(CHECKOUT / name, folder / name)
    for path in (folder / "scripts" / "experiments" / "results").rglob("*.md"):
        path.unlink()  # parts of the page of results
    write_reference(folder / "reference")
    (folder / "reference" / "commands.md").write_text(help_page(), encoding="utf-8")
    (folder / "datasets" / "cards.md").write_text(cards_page(), encoding="utf-8")
    write_live_page(folder / "extra" / "notebooks" / "live.html")
    for path in [*folder.rglob("*.md"), *folder.rglob("*.ipynb")]:
        path.write_text(without_links_out(path, folder), encoding="utf-8")


def take(source: Path, target: Path) -> None:
    """Copy a file or a folder."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=LEFT)
    else:
        shutil.copy(source, target)


def without_links_out(path: Path, folder: Path) -> str:
    """The text of a page; of a link to what is in the checkout and not on the site only the words are left."""

    def kept(found: re.Match[str]) -> str:
        target = path.parent / found[2]
        if target.is_file():
            return found[0]
        there = CHECKOUT / path.parent.relative_to(folder) / found[2]
        return found[1] if there.exists() else found[0]  # a link to nowhere is for Sphinx to name

    return LINK.sub(kept, path.read_text(encoding="utf-8"))


def cards_page() -> str:
    """What the cards say, in Markdown."""
    parts = ["# The datasets"]
    for name in list_cards():
        card = load_card(name)
        sizes = ", ".join(f"{count:,} to {split}" for split, count in card.splits.items())
        rows = {
            "Load it by": f'`pointset.load_dataset("{name}")`',
            "Shapes": f"{sizes}; {len(card.classes)} classes",
            "Licence": card.licence,
            "Cite": card.citation,
            "Described at": f"<{card.homepage}>" if card.homepage else "",
            "Known defects": " ".join(card.defects),
        }
        lines = [f"{key}\n: {value}\n" for key, value in rows.items() if value]
        parts += [f"## {card.title}", card.summary, *lines]
    return "\n\n".join(parts) + "\n"


def main() -> int:
    """Build the site; Sphinx's exit code."""
    source, out = CHECKOUT / "build" / "docs-source", CHECKOUT / "build" / "docs"
    stage(source)
    shutil.rmtree(out, ignore_errors=True)
    doctrees = CHECKOUT / "build" / "docs-doctrees"
    code = build_main(["-b", "html", "-E", "-W", "-q", "-d", str(doctrees), str(source), str(out)])
    if code == 0:
        print(f"docs: {out / 'index.html'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
