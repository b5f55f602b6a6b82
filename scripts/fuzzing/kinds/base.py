"""What every kind of input offers, and the judge of single files."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Protocol

import numpy as np

from fuzzing.mutations import Mutation, mutate
from fuzzing.oracles.words import Illegal
from fuzzing.verdicts import Outcome, of_error


class Kind(Protocol):
    """Something that can be damaged and read."""

    @property
    def name(self) -> str:
        """As on the command line."""

    def case(self, random: Random, folder: Path) -> Outcome:
        """Make one damaged input in an empty folder, read it, and judge what came of it."""


@dataclass(frozen=True)
class FileKind:
    """Single files of one format.

    Attributes:
        name: on the command line.
        suffix: of the files.
        seeds: good files.
        mutations: of which each file gets a few.
        read: the toolkit's reading of a file.
        oracle: what the file says, or Illegal.
        difference: what the two readings differ in; nothing if they agree.
    """

    name: str
    suffix: str
    seeds: Sequence[bytes]
    mutations: Sequence[Mutation]
    read: Callable[[Path], Any]
    oracle: Callable[[bytes], Any]
    difference: Callable[[Any, Any], str]

    def case(self, random: Random, folder: Path) -> Outcome:
        """Mutate one of the seeds and judge the reading of it."""
        content = mutate(random.choice(self.seeds), random, self.mutations)
        return self.judge(content, folder / f"mutated{self.suffix}")

    def judge(self, content: bytes, path: Path) -> Outcome:
        """Write a file, let both read it, and compare."""
        path.write_bytes(content)
        try:
            ours = self.read(path)
        except Exception as error:
            outcome = of_error(error, path, content)
            if outcome.verdict != "refused":
                return Outcome(outcome.verdict, outcome.detail, content)
            try:
                quietly(self.oracle, content)
            except Illegal:
                return outcome
            return Outcome("strict", outcome.detail, content)
        try:
            truth = quietly(self.oracle, content)
        except Illegal as illegal:
            return Outcome("illegal", f"{illegal}", content)
        difference = self.difference(ours, truth)
        return Outcome("differs", difference, content) if difference else Outcome("alike")


def quietly(oracle: Callable[[Any], Any], content: Any) -> Any:
    """What an oracle says; its warnings are not the toolkit's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return oracle(content)


def same_numbers(ours: np.ndarray, truth: np.ndarray) -> bool:
    """Whether numbers are the same, or the same rounded to float32."""
    with np.errstate(over="ignore"):
        rounded = truth.astype(np.float32)
    return bool(((ours == truth) | (ours == rounded)).all())
