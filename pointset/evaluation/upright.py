"""Which direction is up in files that do not say: the one in which a trained model knows the shapes best.

A shape that stands unlike those of training gets small logits, like a shape of an unknown class: the largest logit
tells them apart (Hendrycks et al., arXiv 1911.11132). A model of upright shapes knows a chair by its front too, so
each of the six directions is tried with four quarter turns about the vertical. All files of a folder share one turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pointset.data.axes import TURNS, UP_TO_Z
from pointset.data.catalogue.folders import ShapeFile
from pointset.data.options import POSES
from pointset.data.preparation import CLOUD_POINTS
from pointset.errors import PointsetError
from pointset.runs.progress import followed
from pointset.zoo.classifiers import Classifier
from pointset.zoo.predicting import padded_batches, predict

UPRIGHT_POINTS = 512
"""Most points of a shape."""
SHAPES = 32
"""Most shapes of a folder that are tried: ten were enough for every turn of `modelnet9_obj`."""
FEWEST, MARGIN = 5, 2.0
"""With fewer shapes, or a margin of fewer standard errors, the guess is unsure."""


@dataclass(frozen=True)
class Upright:
    """How shapes must be turned to stand as those of training."""

    turn: str
    """One of `pointset.data.axes.TURNS`, for the argument `up` of functions that read files."""
    second: str
    """The next best direction."""
    margin: float
    """Mean advantage over it, in standard errors over the shapes; 0 for one shape."""
    shapes: int
    """Number of shapes that were tried."""

    @property
    def up(self) -> str:
        """The direction that is up: "x", "-x", "y", "-y", "z" or "-z"."""
        return self.turn.partition("@")[0]

    @property
    def is_sure(self) -> bool:
        """True if there are enough shapes, and the next direction is clearly worse."""
        return self.shapes >= FEWEST and self.margin >= MARGIN

    def __str__(self) -> str:
        """The guess as a line for the user."""
        _, _, degrees = self.turn.partition("@")
        turned = f", then turned by {degrees} degrees" if degrees != "0" else ""
        line = f"up: {self.up}{turned} (--up {self.turn}), guessed from {self.shapes} shape{'s' * (self.shapes != 1)}"
        margin = f"{self.margin:.1f} standard errors before {self.second}" if self.shapes > 1 else f"then {self.second}"
        return f"{line} ({margin})" + ("" if self.is_sure else ": unsure, look at the shapes and give --up yourself")


def guess_up(model: Classifier, shapes: Sequence[ShapeFile | str | Path], *, progress: bool = False) -> Upright:
    """Guess the turn that all files share, from evenly spaced ones that can be read, as `--up guess` does.

    Args:
        model: a trained classifier, which knows shapes that stand upright best.
        shapes: files of meshes or clouds.
        progress: show progress.

    Returns:
        The turn, which `up` of `model.prepare` and of `evaluate --data` takes, and how sure it is.

    Raises:
        PointsetError: no file can be read, or the model takes shapes in any pose.

    Example:
        >>> np.save("one.npy", X[0])
        >>> model, _ = pointset.load_run("isab16-pma.shapes10")
        >>> pointset.guess_up(model, ["one.npy"]).is_sure  # one shape is not enough
        False
    """
    preparation = model.preparation
    wanted = UPRIGHT_POINTS if preparation.neighbourhoods == "none" else CLOUD_POINTS
    chosen = [shapes[index] for index in np.unique(np.linspace(0, len(shapes) - 1, SHAPES).astype(int))]
    clouds, reason = [], ""
    for shape in followed(chosen, "reading", "shape", len(chosen), show=progress):
        try:
            loaded = preparation.prepare(
                shape.path if isinstance(shape, ShapeFile) else shape,
                points=min(wanted, preparation.points),
                up=preparation.up,
            )
            clouds.append(np.concatenate([loaded.raw, loaded.points.numpy()[:, 3 : preparation.inputs]], axis=1))
        except (PointsetError, OSError) as error:
            reason = reason or str(error)
    if not clouds:
        raise PointsetError(f"no shape can be read to guess which direction is up: {reason}")
    return best_turn(turn_scores(model, clouds, progress))


def turn_scores(model: Classifier, clouds: Sequence[np.ndarray], progress: bool = False) -> np.ndarray:
    """The largest logit [24, N] of each cloud [n, inputs], turned by each of `TURNS`; see `guess_up`."""
    if model.preparation.normalize == POSES["any"]:
        raise PointsetError("the model takes shapes in any pose: leave out --up guess")
    scores = []
    for turn in followed(TURNS, "guessing which direction is up", "turn", len(TURNS), show=progress):
        sets = [model.prepare(cloud, up=turn, keep_outliers=True).points for cloud in clouds]
        scores.append(predict(model, padded_batches(sets)).logits.amax(dim=1).cpu().numpy())
    return np.stack(scores)


def best_turn(scores: np.ndarray) -> Upright:
    """The best turn for all shapes together, of their scores [24, N].

    A shape may have a heading of its own, so that the best of four counts for a direction.
    """
    count = scores.shape[1]
    by_heading = scores.reshape(len(UP_TO_Z), -1, count)
    directions = by_heading.max(axis=1)
    first, second = np.argsort(-directions.mean(axis=1), kind="stable")[:2].tolist()
    advantage = directions[first] - directions[second]
    error = advantage.std(ddof=1) / count**0.5 if count > 1 else np.inf
    turn = [*TURNS][first * by_heading.shape[1] + int(by_heading[first].sum(axis=1).argmax())]
    return Upright(turn, [*UP_TO_Z][second], float(advantage.mean() / max(error, 1e-9)), count)
