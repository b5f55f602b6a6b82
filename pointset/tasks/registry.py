"""Tasks by name."""

import dataclasses
import difflib
from importlib import import_module
from typing import Any

from pointset.errors import PointsetError
from pointset.tasks.task import Task

TASKS = {
    "max-regression": "max_regression.MaxRegression",
    "clustering": "clustering.Clustering",
    "counting": "counting.Counting",
    "anomaly": "anomaly.Anomaly",
}
"""Where each is, in this package."""


def list_tasks() -> list[str]:
    """The names of all tasks."""
    return list(TASKS)


def create_task(name: str, **options: Any) -> Task:
    """Make a task.

    Args:
        name: one of `list_tasks()`.
        options: fields of the task's class, such as `data` of counting.

    Raises:
        PointsetError: the name or an option is unknown, or the option is no good.
    """
    if name not in TASKS:
        near = difflib.get_close_matches(str(name), TASKS, n=1, cutoff=0.0)
        raise PointsetError(f"no task is called {name!r}: did you mean {near[0]}? Tasks are {', '.join(TASKS)}")
    module, kind = TASKS[name].split(".")
    task = getattr(import_module(f"pointset.tasks.{module}"), kind)
    known = [field.name for field in dataclasses.fields(task)] if dataclasses.is_dataclass(task) else []
    for option in options:
        if option not in known:
            having = f"its options are {', '.join(known)}" if known else "it has no options"
            raise PointsetError(f"{name} has no use for {option}: {having}")
    return task(**options)
