"""Write the table of published accuracies on ModelNet40 in results/published/study.md from published.toml.

python scripts/experiments/published.py
"""

import tomllib
from collections.abc import Mapping
from typing import Any

from saved import RESULTS, study_table, write_tables

HEADS = (
    "network",
    "last epoch %",
    "best test epoch %",
    "reported %",
    "runs",
    "M parameters",
    "neighbours",
    "normals",
    "source",
)


def line(entry: Mapping[str, Any]) -> list[str]:
    """The cells of the row of a network."""
    last = f"{entry['last']:.1f}" if "last" in entry else ""
    last += f" ± {entry['deviation']:.1f}" if "deviation" in entry else ""
    numbers = [f"{entry[name]:.1f}" if name in entry else "" for name in ("best", "reported")]
    words = ["yes" if entry.get(name) else "no" for name in ("neighbours", "normals")]
    parameters = f"{entry['parameters']:g}" if "parameters" in entry else ""
    return [entry["name"], last, *numbers, str(entry["runs"]), parameters, *words, entry["source"]]


def write() -> None:
    """Write the table."""
    entries = tomllib.loads((RESULTS / "published" / "published.toml").read_text(encoding="utf-8"))["published"]
    write_tables("published", [study_table(map(line, entries), HEADS)])


if __name__ == "__main__":
    write()
