"""Augmentations, by the names that recipes use."""

from collections.abc import Callable, Sequence

from pointset.data.axes import Axis
from pointset.data.imperfections import Background, Crop, Thin, Uneven
from pointset.data.mixing import CutMix
from pointset.data.transforms import Augmentation, Compose, Drop, Jitter, RotateAny, RotateUp, Scale, Shift, Stretch
from pointset.errors import PointsetError, quoted

AUGMENTATIONS: dict[str, Callable[[Axis], Augmentation]] = {
    "scale": lambda up: Scale(0.8, 1.25),
    "stretch": lambda up: Stretch(1.25),
    "stretch-wide": lambda up: Stretch(1.5),
    "shift": lambda up: Shift(0.1),
    "shift-wide": lambda up: Shift(0.2),  # from DGCNN's released code
    "jitter": lambda up: Jitter(0.01, 0.05),
    "rotate-up-18": lambda up: RotateUp(up, 18.0),  # from the released code of Deep Sets and of the Set Transformer
    "rotate-up": lambda up: RotateUp(up),
    "rotate-any": lambda up: RotateAny(),
    "drop": lambda up: Drop(0.875),
    "background": lambda up: Background(),
    "crop": lambda up: Crop(),
    "uneven": lambda up: Uneven(),
    "thin": lambda up: Thin(),
}
"""For each name, a function that takes the upward axis and returns the augmentation."""
SURROUNDINGS = {"drop", "background", "crop", "uneven", "thin"}
"""Names of augmentations that change the neighbours of points."""
MIXINGS = {"cutmix-r": CutMix("random"), "cutmix-k": CutMix("nearest")}


def augmentation_from_names(names: Sequence[str], up: Axis = "z") -> Compose:
    """Compose the augmentations that a recipe's `augment` names.

    Args:
        names: keys of `AUGMENTATIONS`, in the order of application.
        up: the axis that "rotate-up-18" and "rotate-up" rotate about.

    Returns:
        A function of points [B, n, d] and a generator.

    Raises:
        PointsetError: a name is unknown, or is in `MIXINGS`.

    Example:
        >>> pointset.data.augmentation_from_names(("rotate-up", "stretch-wide"), up="y")
        Compose([RotateUp(up='y', degrees=180.0), Stretch(limit=1.5)])
    """
    for name in names:
        if name in MIXINGS:
            raise PointsetError(f"augment: {name} mixes augmented shapes: put it last in a recipe")
        if name not in AUGMENTATIONS:
            known = ", ".join([*AUGMENTATIONS, *MIXINGS])
            raise PointsetError(f"augment must name any of {known}, got {quoted(name)}")
    return Compose([AUGMENTATIONS[name](up) for name in names])


def recipe_augmentations(names: Sequence[str], up: Axis = "z") -> tuple[Compose, CutMix | None]:
    """Return the augmentations that a recipe's `augment` names, and a `CutMix` if the last name is in `MIXINGS`."""
    mix = MIXINGS.get(names[-1]) if names else None
    return augmentation_from_names(names[:-1] if mix else names, up), mix
