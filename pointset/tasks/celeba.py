"""Sets of faces of CelebA: seven have both of two attributes, one has neither (arXiv 1810.00825, section 5.4).

CelebA (Liu et al., ICCV 2015) may not be redistributed; it is available from its authors.
"""

from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pointset.errors import PointsetError
from pointset.tasks.images import SPLIT_SEED, TEST_SHARE, Split, read_image
from pointset.tasks.set_problem import SetBatch

CELEBA = (
    "get list_attr_celeba.txt and img_align_celeba.zip of CelebA (https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html), "
    "unpack both into one folder and give it as --data FOLDER, or put them into $POINTSET_HOME/celeba; "
    "data=digits needs no files"
)
LIST = "list_attr_celeba.txt"
IMAGES = "img_align_celeba"
FACE_SIDE = 64


class FaceSets:
    """Draws sets from CelebA's list of attributes; an image is read when it is first drawn, and kept in memory.

    A fifth of the images is for tests. A pair of attributes is drawn only if enough images have both, and at least one
    image has neither.

    Args:
        folder: folder that contains LIST and IMAGES at any depth.
        split: "train" or "test".
        members: number of images of a set that have both attributes.

    Raises:
        PointsetError: a file is missing, or the list is damaged.
    """

    channels = 3
    side = FACE_SIDE

    def __init__(self, folder: Path, split: Split, members: int) -> None:
        self.members = members
        names, attributes, self.attribute_names = read_attributes(_find(folder, LIST))
        images = _find(folder, IMAGES)
        tests = np.random.default_rng(SPLIT_SEED).permutation(len(names)) < len(names) // TEST_SHARE
        kept = tests == (split == "test")
        self.files = [images / name for name, keep in zip(names, kept.tolist(), strict=True) if keep]
        self.attributes = attributes[torch.from_numpy(kept)]
        self.kept: dict[int, Tensor] = {}
        with_both = self.attributes.float().mT @ self.attributes.float()
        without = (~self.attributes).float()
        self.possible = (with_both >= members) & (without.mT @ without >= 1)
        self.possible.fill_diagonal_(False)
        if not self.possible.any():
            raise PointsetError(
                f"{folder}: no two attributes are shared by {members} of the {len(self.files)} images for {split} and "
                "absent from another: use all of CelebA"
            )

    def describe(self) -> dict[str, int]:
        """The numbers of images and attributes."""
        return {"images": len(self.files), "attributes": len(self.attribute_names)}

    def __call__(self, count: int, generator: torch.Generator) -> SetBatch:
        """Draw `count` sets; the target has the index of the stranger and, for pictures, the pair of attributes."""
        pairs = self.possible.nonzero()
        pairs = pairs[torch.randint(0, len(pairs), (count,), generator=generator)]
        strangers = torch.randint(0, self.members + 1, (count,), generator=generator)
        sets = [self._draw(*case, generator) for case in zip(pairs, strangers.tolist(), strict=True)]
        return SetBatch(torch.stack(sets), None, {"stranger": strangers, "attributes": pairs})

    def _draw(self, pair: Tensor, stranger: int, generator: torch.Generator) -> Float[Tensor, "n pixels"]:
        having = self.attributes[:, pair]
        both, neither = (found.nonzero()[:, 0] for found in (having.all(dim=1), ~having.any(dim=1)))
        chosen = both[torch.randperm(len(both), generator=generator)[: self.members]].tolist()
        chosen.insert(stranger, int(neither[torch.randint(0, len(neither), (), generator=generator)]))
        return torch.stack([self._image(place) for place in chosen])

    def _image(self, place: int) -> Float[Tensor, " pixels"]:
        if place not in self.kept:
            self.kept[place] = (read_image(self.files[place], FACE_SIDE, channels=3) * 255).round().to(torch.uint8)
        return self.kept[place].float() / 255


def read_attributes(path: Path) -> tuple[list[str], Bool[Tensor, "images attributes"], list[str]]:
    """Read CelebA's list: the names of the images, the attributes that each has, and the names of the attributes.

    The first line of the file is the number of images, the second the names of the attributes. Each further line is the
    name of an image, and 1 or -1 for each attribute.

    Raises:
        PointsetError: a line is damaged; the message names file and line.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise PointsetError(f"{path} cannot be read ({error}): download the original file again") from error
    if len(lines) < 3 or not lines[0].strip().isdecimal() or int(lines[0]) != len([x for x in lines[2:] if x.strip()]):
        raise PointsetError(f"{path} does not begin with the number of images: download the original file again")
    attributes = lines[1].split()
    names, values = [], []
    for number, line in enumerate(lines[2:], start=3):
        name, *marks = line.split() or [""]
        if not name:
            continue
        if len(marks) != len(attributes) or set(marks) - {"1", "-1"}:
            raise PointsetError(
                f"{path}, line {number}: expected {len(attributes)} marks (1 or -1) after the name of the image: "
                "download the original file again"
            )
        names.append(name)
        values.append([mark == "1" for mark in marks])
    return names, torch.tensor(values), attributes


def _find(folder: Path, name: str) -> Path:
    found = next(iter(sorted(folder.rglob(name))), None) if not (folder / name).exists() else folder / name
    if found is None:
        raise PointsetError(f"there is no {name} in {folder}: {CELEBA}")
    return found
