"""How a model is trained, as data. No torch is imported here, so that `pointset --help` answers at once."""

from dataclasses import dataclass
from typing import Literal

from pointset.configuration import Checked, Count, NonNegative, Positive, Share
from pointset.errors import PointsetError

Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True, kw_only=True)
class Recipe(Checked):
    """How a model is trained. Every row of a comparison shares one recipe."""

    epochs: Count = 50
    """Passes over the training shapes."""
    steps: Count | None = None
    """Optimiser steps in all, in place of `epochs`; the last epoch is cut short."""
    batch_size: Count = 32
    """Shapes per step."""
    optimizer: Literal["adamw", "adam"] = "adamw"
    """AdamW decays weights directly; Adam adds no decay."""
    learning_rate: Positive = 1e-3
    """Peak learning rate."""
    weight_decay: NonNegative = 1e-2
    """AdamW's decay, on matrices only: norms, biases, inducing points and seeds are left alone."""
    schedule: Literal["cosine", "step", "constant"] = "cosine"
    """Learning rate after the warm-up: to zero along a cosine, by steps, or unchanged."""
    warmup: Share = 0.05
    """Share of all steps in which the rate rises linearly from zero."""
    step_every: Count = 20_000
    """Steps between the drops of schedule "step"."""
    step_factor: Positive = 0.3
    """What each drop multiplies the rate by."""
    label_smoothing: Share = 0.1
    """Share of the target spread over all classes."""
    clip_norm: Positive | None = 1.0
    """Largest gradient norm; None does not clip."""
    augment: tuple[str, ...] = ("scale", "jitter")
    """Augmentations in order, by name."""
    validation: Share = 0.0
    """Share of the training shapes, class by class, held out to watch and to stop on."""
    patience: Count | None = None
    """Epochs without a better validation accuracy before training stops and keeps the best; needs `validation`."""
    precision: Precision = "float32"
    """Of the matrix products while training: "bfloat16" is mixed precision (weights, sums and losses stay float32),
    faster on a GPU, and on a CPU that has instructions for it (with AMX 1.7 to 2.9 times, at width 256 and 100 points).
    Evaluation is always in float32."""
    device: str = "auto"
    """"auto" takes a GPU where there is one; else a torch device name."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.patience is not None and self.validation == 0.0:
            raise PointsetError(f"patience={self.patience} needs a validation split: set validation, such as 0.1")
