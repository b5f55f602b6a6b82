"""Options of a training. This module does not import torch, so that `pointset --help` is fast."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from pointset.arguments import explained
from pointset.configuration import COMMON, Checked, Count, NonNegative, Positive, Share, SizeRange
from pointset.errors import PointsetError, quoted

USUAL_EPOCHS, USUAL_STEPS = 50, 1200

Precision = Literal["float32", "bfloat16"]
AUGMENTATION_NAMES = (
    "scale, stretch, stretch-wide, shift, shift-wide, jitter, rotate-up-18, rotate-up, rotate-any, drop, background, "
    "crop, uneven, thin, cutmix-r, cutmix-k"
)
Augment = Annotated[tuple[str, ...], Meta(description=f"a list of any of {AUGMENTATION_NAMES}")]
ScheduleName = Literal["cosine", "step", "constant"]
if TYPE_CHECKING:
    Schedule = ScheduleName | Callable[[int, int], float]
else:
    Schedule = ScheduleName  # for the command line, which cannot pass a function


@explained
@dataclass(frozen=True, kw_only=True)
class Recipe(Checked):
    """Options of a training. All models of a comparison have the same recipe.

    Example:
        >>> recipe = pointset.Recipe(epochs=30, learning_rate=2e-3, augment=("rotate-up", "jitter"))
        >>> recipe.schedule, recipe.batch_size
        ('cosine', 32)
        >>> pointset.Recipe(patience=5)
        Traceback (most recent call last):
        pointset.errors.PointsetError: patience=5 needs a validation split: set validation, such as 0.1
    """

    epochs: Annotated[Count | None, COMMON] = None
    """Passes over the training shapes. None (in Python) means 50 epochs or 1,200 steps, whichever is longer."""
    steps: Count | None = None
    """Total number of optimizer steps, instead of `epochs`. The last epoch may be incomplete."""
    min_steps: Count | None = None
    """Minimum number of optimizer steps. If `epochs` gives fewer steps, the training has more epochs."""
    batch_size: Count = 32
    """Shapes per step."""
    train_points: SizeRange | None = None
    """Minimum and maximum number of points per set in training. All sets of a batch have the same number of points,
    drawn log-uniformly between the two. None uses the number of points of the dataset, as evaluation always does."""
    last_points: SizeRange | None = None
    """Minimum and maximum number of points per set in the last epoch. Both numbers start at `train_points` and change
    by a constant factor per epoch. None uses `train_points` in all epochs."""
    optimizer: Literal["adamw", "adam", "sgd", "muon"] = "adamw"
    """AdamW (arXiv 1711.05101), Adam (arXiv 1412.6980), stochastic gradient descent (momentum 0.9), or Muon (arXiv
    2502.16982). Muon orthogonalises the updates of hidden matrices and updates all other parameters as AdamW does.
    Muon's learning rate can be 2 to 4 times AdamW's."""
    learning_rate: Annotated[Positive, COMMON] = 1e-3
    """Peak learning rate."""
    weight_decay: NonNegative | None = None
    """Weight decay of weight matrices. Norms, biases, inducing points and seeds have no weight decay. AdamW and Muon
    use decoupled weight decay. Adam and SGD add an L2 penalty to the gradients. None means 0.01 for AdamW and Muon, and
    0 for Adam and SGD."""
    schedule: Schedule = "cosine"
    """Schedule of the learning rate after the warm-up: cosine decay to zero, a step decay, or constant. In Python also
    a function of (step, steps) that returns a factor for the learning rate. It also replaces the warm-up."""
    warmup: Share = 0.05
    """Share of all steps in which the learning rate rises linearly from zero to its peak."""
    step_every: Count = 20_000
    """Number of steps between two drops of the learning rate, for schedule "step"."""
    step_factor: Positive = 0.3
    """Factor that multiplies the learning rate at each drop, for schedule "step"."""
    label_smoothing: Share = 0.1
    """Share of the target probability that is spread over all classes."""
    class_weights: Literal["balanced"] | None = None
    """Weights of the classes in the loss. "balanced" weights are proportional to N_c ** -0.5 for a class with N_c
    training shapes, and their mean over the shapes is 1. This is a compromise between equal weights of all shapes and
    equal total weights of all classes. None gives all shapes the same weight. For other weights, train in Python with
    `fit(loss=...)`.
    """
    ordered: Literal["soft", "thresholds"] | None = None
    """Loss for ordered classes, such as sizes or grades of wear. Classes are ordered by name, or as in the argument
    `classes` of `from_arrays`. "soft" trains with soft labels d_k = exp(-|k - k'|) / sum for the true class k' (Diaz
    and Marathe, CVPR 2019) instead of `label_smoothing`. "thresholds" trains K - 1 binary classifiers for K classes,
    one per threshold between neighbouring classes. The number of passed thresholds gives the predicted class (Frank and
    Hall, ECML 2001). Baselines ignore this option."""
    clip_norm: Positive | None = 1.0
    """Maximum norm of the gradient. A gradient with a larger norm is scaled down to this norm. None does not clip."""
    augment: Augment = ("scale", "jitter")
    """Names of augmentations, in order: scale, stretch (a factor for each axis), shift, jitter, rotate-up-18 (by up to
    18 degrees), rotate-up, rotate-any, stretch-wide and shift-wide (as in DGCNN), drop (replaces up to 7/8 of the
    points by the first point), and background, crop, uneven and thin (imperfections of scans, for some of the sets). If
    drop or one of the last four is used, local features are computed from each augmented set. The last name can be
    cutmix-r or cutmix-k (PointCutMix, arXiv 2101.01461), which replace random points (-r) or neighbouring points (-k)
    by points of another shape. The training accuracy then counts the class with more points as correct."""
    validation: Annotated[Share, COMMON] = 0.0
    """Share of each class's training shapes to hold out for validation and early stopping."""
    patience: Count | None = None
    """Early stopping: end the training after this number of epochs without a better validation accuracy, and keep the
    weights of the best epoch. Needs `validation`."""
    precision: Precision = "float32"
    """Precision of matrix products in training. "bfloat16" is mixed precision (weights, sums and losses stay float32).
    It is faster on GPUs and on CPUs with bfloat16 instructions (1.7 to 2.9 times as fast with AMX, at width 256 and 100
    points), and slower on other CPUs. Models of width 64 gain little or nothing. Evaluation is always in float32."""
    device: str = "auto"
    """A torch device name, or "auto", which uses a GPU if there is one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.patience is not None and self.validation == 0.0:
            raise PointsetError(f"patience={self.patience} needs a validation split: set validation, such as 0.1")
        for name in ("train_points", "last_points"):
            between = getattr(self, name)
            if between is not None and between[0] > between[1]:
                raise PointsetError(f"{name} must be a minimum and a maximum number of points, got {list(between)}")
        if self.last_points is not None and self.train_points is None:
            first = "needs the sizes of the first epoch: set train_points, such as [64, 128]"
            raise PointsetError(f"last_points={list(self.last_points)} {first}")

    def _check(self, name: str, value: Any, kind: Any) -> None:
        if name != "schedule" or not callable(value):
            return super()._check(name, value, kind)
        try:
            float(value(0, 1000))
        except (TypeError, ValueError) as error:
            raise PointsetError(
                "schedule must be a function of (step, steps) that returns the factor of the learning rate, or "
                f"{self.allowed_values(name)}, got {quoted(value)}"
            ) from error

    def total_steps(self, per_epoch: int) -> int:
        """Return the total number of optimizer steps. `per_epoch` is the number of steps per epoch."""
        usual = max(USUAL_EPOCHS * per_epoch, USUAL_STEPS)
        return self.steps or max(usual if self.epochs is None else self.epochs * per_epoch, self.min_steps or 0)

    def sizes(self, epoch: int, epochs: int) -> SizeRange | None:
        """Return the minimum and maximum number of points per set in an epoch, counted from 0.

        None means the number of points of the dataset.
        """
        first, last = self.train_points, self.last_points
        if first is None or last is None:
            return first
        passed = epoch / max(1, epochs - 1)
        smallest, largest = (round(a * (b / a) ** passed) for a, b in zip(first, last, strict=True))
        return smallest, largest

    @property
    def length_in_words(self) -> str:
        """Return the number of steps or of epochs as text."""
        if self.steps:
            return f"{self.steps} steps"
        if self.epochs is None:
            return f"{USUAL_EPOCHS} epochs or {USUAL_STEPS} steps, whichever is more"
        return f"{self.epochs} epoch{'s' * (self.epochs > 1)}"

    @property
    def sizes_in_words(self) -> str:
        """Return the number of points per set in training as text, which is empty for the number of the dataset."""
        ranges = filter(None, (self.train_points, self.last_points))
        words = [" to ".join(map(str, dict.fromkeys(bounds))) + " points" for bounds in ranges]
        return ", at the end of ".join(words)

    @property
    def decay(self) -> float:
        """Return the weight decay, or the default of the optimizer."""
        if self.weight_decay is not None:
            return self.weight_decay
        return 0.01 if self.optimizer in ("adamw", "muon") else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain data for JSON, with the default of `weight_decay` instead of None.

        A schedule that is a function is described by its name and its factors at ten of 1,000 steps.
        """
        fields = super().as_dict() | {"weight_decay": self.decay}
        if callable(schedule := self.schedule):
            factors = [round(float(schedule(step, 1000)), 6) for step in range(0, 1000, 111)]
            fields["schedule"] = {
                "name": getattr(schedule, "__qualname__", type(schedule).__qualname__),
                "factors": factors,
            }
        return fields
