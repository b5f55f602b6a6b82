"""The grid of an experiment's runs, and the check that an output folder belongs to the experiment."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pointset.comparison.experiment import Entry, Experiment
from pointset.comparison.run_spec import Size, of_run, of_size
from pointset.comparison.runs import Run
from pointset.evaluation.costs import multiply_adds
from pointset.runs.claims import check_claim, claim
from pointset.zoo.carried import carried


def make_runs(experiment: Experiment, out: Path) -> list[Run]:
    """All runs of the grid; seeds vary slowest, so that a table of all models is available early."""
    return [
        make_run(experiment, out, entry, size, seed)
        for seed in experiment.seeds
        for size in experiment.task.sizes
        for entry in experiment.models
    ]


def longest_first(experiment: Experiment, runs: Sequence[Run]) -> list[Run]:
    """Sort runs by cost, highest first, within each seed and size, so that workers end at about the same time."""
    entries = {entry.label: entry for entry in experiment.models}
    work = {group: _work(experiment, entries[group[0]], group[1]) for group in {(run.label, run.size) for run in runs}}
    places = {place: number for number, place in enumerate(dict.fromkeys((run.seed, run.size) for run in runs))}
    return sorted(runs, key=lambda run: (places[run.seed, run.size], -work[run.label, run.size]))


def _work(experiment: Experiment, entry: Entry, size: Size) -> int:
    """Multiply-adds of a model; 0 if it cannot be built, which its runs will report."""
    task = experiment.task
    with suppress(Exception):  # a user-defined part may raise anything
        return multiply_adds(task.build(entry.name, entry.options(experiment.model), 0, size), task.elements(size))
    return 0


def make_run(experiment: Experiment, out: Path, entry: Entry, size: Size, seed: int) -> Run:
    """One run of the grid; its folder does not depend on the other models."""
    options = entry.options(experiment.model)
    return Run(
        label=entry.label,
        model=entry.name,
        parts=carried(experiment.task.zoo_name(entry.name), options),
        size=size,
        seed=seed,
        task=experiment.task,
        model_options=options,
        recipe=experiment.recipe,
        threads=experiment.threads,
        folder=out / "runs" / f"{entry.slug}{of_run(size, seed)}",
    )


def check_folder(experiment: Experiment, out: Path) -> None:
    """Raise a PointsetError if the folder belongs to another experiment; does not write or wait."""
    protocol = experiment.protocol()
    check_claim(out / "protocol.json", protocol, list(protocol), "comparison")


def prepare_sets(experiment: Experiment, progress: bool) -> dict[Size, dict[str, Any]]:
    """Prepare the sets of every size, and return their descriptions; writes nothing into the comparison's folder."""
    return {size: experiment.task.prepare(size, experiment.recipe, progress) for size in experiment.task.sizes}


def claim_folder(experiment: Experiment, out: Path, prepared: Mapping[Size, dict[str, Any]]) -> None:
    """Save the protocol and the data's descriptions in the folder, which the caller must own.

    Raises:
        PointsetError: the folder belongs to another protocol or other data.
    """
    protocol = experiment.protocol()
    claim(out / "protocol.json", protocol, list(protocol), "comparison")
    for size, description in prepared.items():
        claim(out / f"sets{of_size(size)}.json", description, list(description), "comparison")
