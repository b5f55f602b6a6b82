"""How a model is trained, as data. No torch is imported here, so that `pointset --help` answers at once."""

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
    "scale, stretch, stretch-wide, shift, shift-wide, jitter, turn, rotate-up, rotate-any, drop, background, crop, "
    "uneven, thin, cutmix-r, cutmix-k"
)
Augment = Annotated[tuple[str, ...], Meta(description=f"a list of any of {AUGMENTATION_NAMES}")]
ScheduleName = Literal["cosine", "step", "constant"]
if TYPE_CHECKING:
    Schedule = ScheduleName | Callable[[int, int], float]
else:
    Schedule = ScheduleName  # for the command line, where a function cannot be given


@explained
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

    epochs: Annotated[Count | None, COMMON] = None
    """Passes over the training shapes; None (in Python) means 50, or more for 1,200 steps."""
    steps: Count | None = None
    """Total number of optimizer steps, instead of `epochs`; the last epoch may be incomplete."""
    least_steps: Count | None = None
    """Least number of steps: with few shapes, training goes on beyond `epochs` until it has had as many."""
    batch_size: Count = 32
    """Shapes per step."""
    train_points: SizeRange | None = None
    """Minimum and maximum size of training sets: each batch draws a size between them, uniform on a logarithmic scale.
    The size of evaluated sets stays the same. None: training sets have the same size as evaluated sets."""
    last_points: SizeRange | None = None
    """The minimum and maximum in the last epoch: they change from `train_points` in the first epoch by a constant
    factor per epoch. None keeps them constant."""
    optimizer: Literal["adamw", "adam", "sgd", "muon"] = "adamw"
    """AdamW (arXiv 1711.05101), Adam (arXiv 1412.6980), stochastic gradient descent (momentum 0.9), or Muon (arXiv
    2502.16982), which orthogonalises the updates of hidden matrices and treats all other parameters as AdamW does; its
    learning rate may be two to four times AdamW's."""
    learning_rate: Annotated[Positive, COMMON] = 1e-3
    """Peak learning rate."""
    weight_decay: NonNegative | None = None
    """Weight decay of matrices only: norms, biases, inducing points and seeds are not decayed. It is decoupled in AdamW
    and Muon; in Adam and SGD it is an L2 penalty, added to the gradients. None means 0.01 for AdamW and Muon, 0 for the
    others."""
    schedule: Schedule = "cosine"
    """Learning rate after the warm-up: cosine decay to zero, drops at fixed steps, or constant. In Python also a
    function of (step, steps) that returns the factor of the learning rate, without a warm-up."""
    warmup: Share = 0.05
    """Share of all steps in which the learning rate rises linearly from zero."""
    step_every: Count = 20_000
    """Steps between the drops of schedule "step"."""
    step_factor: Positive = 0.3
    """Factor of the learning rate at each drop of schedule "step"."""
    label_smoothing: Share = 0.1
    """Share of the target probability that is spread over all classes."""
    class_weights: Literal["balanced"] | None = None
    """Weights of the classes in the loss: "balanced" weights are inverse to the square root of a class's number of
    training shapes, N_c ** -0.5, and 1 on average over the shapes: half way, on a logarithmic scale, between equal
    shapes and equal classes. For other weights, give `fit` a loss."""
    ordered: Literal["soft", "thresholds"] | None = None
    """Loss for ordered classes, such as sizes or grades of wear. Their order is that of their sorted names, or of the
    argument `classes` of `from_arrays`. "soft" has labels d_k = exp(-|k - k'|) / sum for class k' (Diaz and Marathe,
    CVPR 2019), in place of `label_smoothing`. "thresholds" asks for each but the first class whether a shape is of it
    or a later one (Frank and Hall, ECML 2001); as many classes are passed as thresholds. Baselines ignore it."""
    clip_norm: Positive | None = 1.0
    """Largest gradient norm; None does not clip."""
    augment: Augment = ("scale", "jitter")
    """Names of augmentations, in order: scale, stretch (a factor for each axis), shift, jitter, turn (by up to 18
    degrees), rotate-up, rotate-any, stretch-wide and shift-wide (as in DGCNN), drop (up to 7/8 of the points move onto
    the first), and background, crop, uneven and thin (imperfections of scans, in some of the clouds). With one of these
    five, local features are computed from each augmented set. Last may come cutmix-r or cutmix-k (PointCutMix,
    arXiv 2101.01461), which replaces random or neighbouring points by points of another shape; training accuracy then
    refers to the class with more points."""
    validation: Annotated[Share, COMMON] = 0.0
    """Share of the training shapes, class by class, that is held out for validation and early stopping."""
    patience: Count | None = None
    """Stop after this number of epochs without a better validation accuracy, and keep the best; needs `validation`."""
    precision: Precision = "float32"
    """Precision of matrix products in training. "bfloat16" is mixed precision (weights, sums and losses stay float32).
    It is faster on a GPU, and on a CPU with bfloat16 instructions (with AMX 1.7 to 2.9 times, at width 256 and 100
    points), but slower on other CPUs; models of width 64 gain little or nothing. Evaluation is always in float32."""
    device: str = "auto"
    """"auto" uses a GPU if there is one; otherwise a torch device name."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.patience is not None and self.validation == 0.0:
            raise PointsetError(f"patience={self.patience} needs a validation split: set validation, such as 0.1")
        for name in ("train_points", "last_points"):
            between = getattr(self, name)
            if between is not None and between[0] > between[1]:
                raise PointsetError(f"{name} must be the fewest and then the most points, got {list(between)}")
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
        """Return the number of optimizer steps, from the number in an epoch."""
        usual = max(USUAL_EPOCHS * per_epoch, USUAL_STEPS)
        return self.steps or max(usual if self.epochs is None else self.epochs * per_epoch, self.least_steps or 0)

    def sizes(self, epoch: int, epochs: int) -> SizeRange | None:
        """Return the fewest and the most points of training sets in an epoch, from 0; None if the dataset decides.

        They change from `train_points` to `last_points` by a constant factor per epoch.
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
        """Return the number of points of training sets as text; empty if it is that of evaluated sets."""
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
        """Return the fields as plain data, for JSON, with the decay where None stands for it.

        A schedule that is a function is described by its name and its factors at some steps.
        """
        fields = super().as_dict() | {"weight_decay": self.decay}
        if callable(schedule := self.schedule):
            factors = [round(float(schedule(step, 1000)), 6) for step in range(0, 1000, 111)]
            fields["schedule"] = {
                "name": getattr(schedule, "__qualname__", type(schedule).__qualname__),
                "factors": factors,
            }
        return fields
