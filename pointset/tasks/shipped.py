"""The experiments included in the package. Imports must stay light, because `pointset --help` reads one of them."""

from pathlib import Path

from pointset.configuration import check, closest_spelling
from pointset.errors import PointsetError, quoted

TASKS_FOLDER = Path(__file__).parent
CHECKOUT = TASKS_FOLDER.parent.parent / "scripts" / "experiments"
FOLDERS = (TASKS_FOLDER / "experiments", CHECKOUT / "tasks")
"""Folders of experiments in an installed package, and in a checkout."""


def shipped_experiment(name: str) -> Path:
    """The file of an included experiment.

    Args:
        name: name of a task or an experiment; "quick" is the experiment of the quickstart, "own" that of
            `pointset compare --data FOLDER`.

    Returns:
        The path, for `pointset.read_experiment`.

    Raises:
        PointsetError: no shipped experiment has this name.
    """
    check("name", name, str)
    files = {file.stem: file for folder in FOLDERS for file in sorted(folder.glob("*.toml"))}
    for beside in ("quick", "own"):
        files.setdefault(beside, CHECKOUT / f"{beside}.toml")
    if name not in files:
        near = closest_spelling(name, list(files))
        raise PointsetError(f"no task is called {quoted(name)}: did you mean {near}? Shipped are {', '.join(files)}")
    return files[name]
