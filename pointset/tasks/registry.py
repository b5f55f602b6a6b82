"""Tasks by name."""

import dataclasses
import difflib
from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any

from msgspec import Meta

from pointset.comparison.experiment import Table, unknown_key
from pointset.comparison.task import Task
from pointset.configuration import Cores
from pointset.errors import PointsetError, quoted
from pointset.inputs import takes

TASKS = {
    "classification": "classification.task.Classification",
    "max-regression": "max_regression.MaxRegression",
    "clustering": "clustering.Clustering",
    "counting": "counting.Counting",
    "anomaly": "anomaly.Anomaly",
}
"""The module and the class of each task, in this package."""
KEYS: Mapping[str, Any] = {
    "title": str,
    "task": str,
    "models": Annotated[list[Any], Meta(description="a list of names, or of tables with a name")],
    "seeds": Annotated[int | list[int], Meta(description="whole numbers")],
    "threads": Cores,
    "model": Table,
    "recipe": Table,
    "options": Table,
    "published": Annotated[dict[str, dict[str, Any]], Meta(description="a table for each model")],
}
"""Keys of an experiment's file for every task, and their types; other keys are options of the task."""


def list_tasks() -> list[str]:
    """The names of all tasks.

    Returns:
        Names for `create_task`.

    Example:
        >>> "max-regression" in pointset.tasks.list_tasks()
        True
    """
    return list(TASKS)


@takes(name=str)
def create_task(name: str, **options: Any) -> Any:
    """Create a task.

    Args:
        name: one of `list_tasks()`.
        options: fields of the class of the task, such as `data` for counting.

    Returns:
        The `Task`.

    Raises:
        PointsetError: the name or an option is unknown, or the value of an option is not allowed.

    Example:
        >>> pointset.tasks.create_task("clustering").most
        500
    """
    task, known = _class(name)
    for option in options:
        if option not in known:
            having = f"its options are {', '.join(known)}" if known else "it has no options"
            raise PointsetError(f"{name} has no option {quoted(option)}: {having}")
    return task(**options)


def task_from_file(name: str | None, options: Mapping[str, Any]) -> Task:
    """Create a task from the options in the file of an experiment; the default name is classification."""
    task, known = _class(name or "classification")
    for option in options:
        if option not in known:
            raise PointsetError(unknown_key(option, [*KEYS, *known]))
    return task.from_file(options)


def _class(name: str) -> tuple[Any, list[str]]:
    """The class of a task, and the names of its options."""
    if name not in TASKS:
        near = difflib.get_close_matches(str(name), TASKS, n=1, cutoff=0.0)
        raise PointsetError(f"no task is called {quoted(name)}: did you mean {near[0]}? Tasks are {', '.join(TASKS)}")
    module, _, kind = TASKS[name].rpartition(".")
    task = getattr(import_module(f"pointset.tasks.{module}"), kind)
    return task, [field.name for field in dataclasses.fields(task)]
