"""The set problems of the papers that need no meshes, each an experiment with the published figures beside ours.

    pointset task max-regression

A `Task` (see task.py) draws sets, builds the models of its table, and says what is good; everything else, from the grid
of model x seed to the table, is the same for all. Tasks by name are in registry.py.
"""

from typing import TYPE_CHECKING

from pointset.lazy import lazy_names

if TYPE_CHECKING:
    from pointset.tasks.comparison import TaskComparison, run_task_experiment
    from pointset.tasks.experiment import TaskExperiment, read_task_experiment, shipped_experiment
    from pointset.tasks.registry import create_task, list_tasks
    from pointset.tasks.task import Metric, SetBatch, Task

_HOMES = {
    "comparison": ("TaskComparison", "run_task_experiment"),
    "experiment": ("TaskExperiment", "read_task_experiment", "shipped_experiment"),
    "registry": ("create_task", "list_tasks"),
    "task": ("Metric", "SetBatch", "Task"),
}

__all__ = [
    "Metric",
    "SetBatch",
    "Task",
    "TaskComparison",
    "TaskExperiment",
    "create_task",
    "list_tasks",
    "read_task_experiment",
    "run_task_experiment",
    "shipped_experiment",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
