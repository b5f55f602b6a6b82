"""Configurations for a first look: minutes on a laptop."""

from dataclasses import dataclass

from pointset.configuration import Count, Positive, Share
from pointset.data.options import DataOptions
from pointset.training.recipe import Recipe
from pointset.zoo.options import ModelOptions


@dataclass(frozen=True, kw_only=True)
class QuickModel(ModelOptions):
    """`ModelOptions` at a width that a laptop trains in seconds."""

    dim: Count = 64
    dropout: Share = 0.2


@dataclass(frozen=True, kw_only=True)
class QuickData(DataOptions):
    """`DataOptions` for small sets."""

    points: Count = 128


@dataclass(frozen=True, kw_only=True)
class QuickRecipe(Recipe):
    """`Recipe` for minutes, not hours."""

    epochs: Count = 50
    learning_rate: Positive = 2e-3
    augment: tuple[str, ...] = ("rotate-up", "scale", "jitter")
