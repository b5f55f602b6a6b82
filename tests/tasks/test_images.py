"""Images for sets: splits, folders, scaling, and messages for damaged files."""

from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.image import imsave

from pointset.data.batches import epoch_generator
from pointset.errors import PointsetError
from pointset.tasks.experiments import TASKS
from pointset.tasks.images import Embedding, characters, digits, read_image
from pointset.zoo.options import ModelOptions


def drawn(folder: Path, alphabets: int = 2, each: int = 10, images: int = 3) -> Path:
    """Dark strokes on white, as in Omniglot, of 20 x 20 pixels; the position of the stroke determines the character."""
    for number in range(alphabets * each):
        place = folder / f"alphabet{number % alphabets}" / f"character{number:02d}"
        place.mkdir(parents=True)
        for image in range(images):
            pixels = np.ones((20, 20), dtype=np.float32)
            pixels[number % 20, image:] = 0.0
            imsave(place / f"{image}.png", pixels, cmap="gray", vmin=0, vmax=1)
    return folder


def test_digits_are_split_by_image_class_by_class():
    from sklearn.datasets import load_digits

    train, test = digits("train"), digits("test")
    assert len(train.labels) + len(test.labels) == 1797
    assert (train.side, train.pixels.shape[1]) == (8, 64)
    assert train.pixels.min() == 0
    assert train.pixels.max() == 1
    whole = {row.tobytes(): label for row, label in zip(*load_digits(return_X_y=True), strict=True)}
    assert len(whole) == 1797, "no two images are the same, so that they can be told apart"
    for part in (train, test):
        for row, label in zip((part.pixels * 16).double().numpy(), part.labels.tolist(), strict=True):
            assert whole.pop(row.tobytes()) == label, "in one split, with its own label"
    assert torch.bincount(test.labels).tolist() == [int(n) // 5 for n in np.bincount(load_digits().target)]


def test_a_folder_of_characters_is_split_by_character(tmp_path):
    folder = drawn(tmp_path / "characters")
    train, test = characters(folder, "train"), characters(folder, "test")
    assert (train.classes, test.classes) == (16, 4)
    assert (len(train.labels), len(test.labels)) == (48, 12)
    assert train.pixels.shape == (48, 28 * 28)
    rows = {tuple(image.view(28, 28).sum(dim=1).argmax().item() for image in part.pixels) for part in (train, test)}
    assert len(rows) == 2
    assert not set.intersection(*map(set, rows)), "no character is in both"
    assert train.pixels.mean() < 0.2, "light on dark"


@pytest.mark.parametrize(
    ("name", "model", "output"), [("counting", "SAB + PMA", (3, 1)), ("anomaly", "SAB + max", (3, 8, 1))]
)
def test_a_folder_of_ones_own_makes_sets(name, model, output, tmp_path):
    task = TASKS[name](data=str(drawn(tmp_path / "own")))
    assert task.describe() == {"train": {"images": 48, "classes": 16}, "test": {"images": 12, "classes": 4}}
    batch = task.draw(3, epoch_generator(0, 0))
    assert batch.X.shape[2] == 784
    assert task.build(model, ModelOptions(dim=8, heads=2), seed=0)(batch.X, batch.mask).shape == output


def test_too_few_characters_are_refused(tmp_path):
    with pytest.raises(PointsetError, match="has 4 characters with images, too few: give a folder that has"):
        characters(drawn(tmp_path, 2, 2), "train")


def test_a_file_that_is_not_an_image_is_named(tmp_path):
    (tmp_path / "image.png").write_bytes(b"no image")
    with pytest.raises(PointsetError, match=r"image\.png"):
        read_image(tmp_path / "image.png")
    with pytest.raises(PointsetError, match=r"gone\.png"):
        read_image(tmp_path / "gone.png")


@pytest.mark.parametrize(
    ("side", "parameters"),
    [
        (8, (64 * 5 + 5) + (5 * 5 + 5)),
        (12, (9 * 5 + 5) + 2 * (45 * 5 + 5) + (5 * 2 * 2 * 5 + 5)),  # 12 -> 6 -> 3 -> 2
    ],
)
def test_embeddings_see_one_image_at_a_time(side, parameters):
    torch.manual_seed(0)
    module = Embedding(side, 5)
    assert sum(parameter.numel() for parameter in module.parameters()) == parameters
    X = torch.rand(2, 3, side**2)
    Z = module(X)
    assert Z.shape == (2, 3, 5)
    assert torch.allclose(Z[1, 2], module(X[1:, 2:])[0, 0], atol=1e-6)
