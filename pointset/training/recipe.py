"""How a model is trained, as data. No torch is imported here, so that `pointset --help` answers at once."""

from dataclasses import dataclass
from typing import Any, Literal

from pointset.configuration import Batch, Checked, Decay, Length, NonNegative, Part, Positive, Share, SizeRange
from pointset.errors import PointsetError

STEP_EVERY, STEP_FACTOR = 20_000, 0.3

Precision = Literal["float32", "bfloat16", "auto"]


@dataclass(frozen=True, kw_only=True)
class Recipe(Checked):
    """How a model is trained. Every row of a comparison shares one recipe.

    Example:
        >>> recipe = pointset.Recipe(epochs=30, learning_rate=2e-3, augment=("rotate-up", "jitter"))
        >>> recipe.schedule, recipe.batch_size
        ('cosine', 32)
        >>> pointset.Recipe(patience=5)
        Traceback (most recent call last):
        pointset.errors.PointsetError: patience=5 needs a validation split: set validation, such as 0.1
    """

    LATER = ("points", "last_points", "points_share", "average")

    epochs: Length = 50
    """Passes over the training shapes."""
    steps: Length | None = None
    """Optimiser steps in all, in place of `epochs`; the last epoch is cut short."""
    batch_size: Batch = 32
    """Shapes per step."""
    points: SizeRange | None = None
    """Fewest and most points of the training sets: a number between them is drawn for each batch, with every doubling
    as likely as any other, whatever the size of the sets that are evaluated. None trains on sets of that size. As a
    flag it is --train-points."""
    last_points: SizeRange | None = None
    """The two numbers in the last epoch: from `points` in the first they grow, or shrink, by the same factor each
    epoch. None leaves them as they are."""
    points_share: Part | None = None
    """Where `points` says nothing: the share of the points of an evaluated set that a training set has; 1 and None are
    all."""
    optimizer: Literal["adamw", "adam", "sgd", "muon"] = "adamw"
    """AdamW (arXiv 1711.05101), Adam (arXiv 1412.6980), stochastic gradient descent with momentum, or Muon (arXiv
    2502.16982), which moves hidden matrices along orthogonal ones and all else as AdamW does; its learning rate may be
    two to four times AdamW's."""
    learning_rate: Positive = 1e-3
    """Peak learning rate."""
    weight_decay: NonNegative | None = None
    """On matrices only: norms, biases, inducing points and seeds are left alone. AdamW and Muon shrink the weights
    themselves; with Adam and SGD it is an L2 penalty, added to the gradients. None is 0.01 for AdamW and Muon, and none
    for the others."""
    momentum: Share | None = None
    """Of SGD alone; None is 0.9."""
    nesterov: bool = False
    """Nesterov's momentum, of SGD alone."""
    schedule: Literal["cosine", "step", "constant"] = "cosine"
    """Learning rate after the warm-up: to zero along a cosine, by steps, or unchanged."""
    warmup: Share = 0.05
    """Share of all steps in which the rate rises linearly from zero."""
    step_every: Length = STEP_EVERY
    """Steps between the drops of schedule "step"."""
    step_factor: Positive = STEP_FACTOR
    """What each drop multiplies the rate by."""
    label_smoothing: Share = 0.1
    """Share of the target spread over all classes."""
    clip_norm: Positive | None = 1.0
    """Largest gradient norm; None does not clip."""
    average: Decay | None = None
    """What an exponential moving average of the weights keeps of itself at each step, such as 0.998; batch norm's
    running statistics are averaged too. The averaged weights are validated, tested and saved, those that are trained
    are only in checkpoints; loss and accuracy of a line of history are those of training. It is ahead in mid-training,
    and level after a rate that has gone to zero. None keeps no average."""
    augment: tuple[str, ...] = ("scale", "jitter")
    """Augmentations in order, by name: scale, stretch (a factor for each axis), shift, jitter, turn (by up to 18
    degrees), rotate-up, rotate-any, stretch-wide and shift-wide (DGCNN's), and drop (up to 7 of 8 points move onto the
    first). After them may come cutmix-r or cutmix-k (PointCutMix, arXiv 2101.01461), which puts points of another shape
    in place of random or of neighbouring ones; training accuracy is then on the class that has more of the points."""
    validation: Share = 0.0
    """Share of the training shapes, class by class, held out to watch and to stop on."""
    patience: Length | None = None
    """Epochs without a better validation accuracy before training stops and keeps the best; needs `validation`."""
    precision: Precision = "float32"
    """Of the matrix products while training: "bfloat16" is mixed precision (weights, sums and losses stay float32),
    faster on a GPU, and on a CPU that has instructions for it (with AMX 1.7 to 2.9 times, at width 256 and 100 points).
    "auto" becomes one of the two at once, by a measurement of a tenth of a second which has the faster products of
    width 256 on this machine: results name what was taken. Models of width 64 gain little or nothing by it.
    Evaluation is always in float32."""
    device: str = "auto"
    """"auto" takes a GPU where there is one; else a torch device name."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.patience is not None and self.validation == 0.0:
            raise PointsetError(f"patience={self.patience} needs a validation split: set validation, such as 0.1")
        self._check_points()
        if self.precision == "auto":
            from pointset.training.precision import WORTH, bfloat16_speed  # torch, which takes seconds to import

            faster = bfloat16_speed(self.device) >= WORTH
            object.__setattr__(self, "precision", "bfloat16" if faster else "float32")
        if self.nesterov and self.momentum == 0.0:
            raise PointsetError("nesterov needs a momentum above 0: set momentum, such as 0.9, or leave nesterov out")
        only = {
            "momentum": (self.momentum is not None, self.optimizer, "sgd", "optimizer"),
            "nesterov": (self.nesterov, self.optimizer, "sgd", "optimizer"),
            "step_every": (self.step_every != STEP_EVERY, self.schedule, "step", "schedule"),
            "step_factor": (self.step_factor != STEP_FACTOR, self.schedule, "step", "schedule"),
        }
        for name, (given, chosen, needed, what) in only.items():
            if given and chosen != needed:
                raise PointsetError(
                    f"{name}={getattr(self, name)} has no effect with {what} {chosen!r}: leave it out, or choose "
                    f"{what} {needed!r}"
                )

    def _check_points(self) -> None:
        for name in ("points", "last_points"):
            between = getattr(self, name)
            if between is not None and between[0] > between[1]:
                raise PointsetError(f"{name} must be the fewest and then the most points, got {list(between)}")
        if self.last_points is not None and self.points is None:
            raise PointsetError(
                f"last_points={list(self.last_points)} needs those of the first epoch: set points, such as [64, 128]"
            )

    @property
    def decay(self) -> float:
        """The weight decay: as asked, or the optimizer's own."""
        if self.weight_decay is not None:
            return self.weight_decay
        return 0.01 if self.optimizer in ("adamw", "muon") else 0.0

    @property
    def inertia(self) -> float:
        """The momentum of SGD: as asked, or 0.9."""
        return 0.9 if self.momentum is None else self.momentum

    def as_dict(self) -> dict[str, Any]:
        """The fields as plain data, for JSON: numbers where None stands for one, and nothing of what is not used."""
        fields = super().as_dict() | {"weight_decay": self.decay, "momentum": self.inertia}
        unused = () if self.optimizer == "sgd" else ("momentum", "nesterov")
        return {name: value for name, value in fields.items() if name not in unused}
