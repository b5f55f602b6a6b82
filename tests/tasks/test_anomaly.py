"""Set anomaly detection: the sets, the equivariant model, the metrics, and a small imitation of CelebA."""

from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.image import imsave

from pointset.data.batches import epoch_generator
from pointset.errors import PointsetError
from pointset.evaluation.symmetry import check_symmetry
from pointset.tasks import SetBatch, create_task
from pointset.tasks.celeba import FaceSets, read_attributes
from pointset.tasks.images import digits
from pointset.zoo.options import ModelOptions

SMALL = ModelOptions(dim=8, heads=2, dropout=0.0)
TASK = create_task("anomaly")


def test_seven_belong_together_and_one_does_not():
    batch = TASK.draw(200, epoch_generator(0, 0))
    assert batch.X.shape == (200, 8, 64)
    assert batch.mask is None
    for labels, place in zip(batch.target["labels"].tolist(), batch.target["stranger"].tolist(), strict=True):
        stranger = labels.pop(place)
        assert len(set(labels)) == 1
        assert stranger != labels[0]


def test_strangers_are_anywhere_and_of_any_class():
    batch = TASK.draw(4000, epoch_generator(1, 0))
    assert torch.bincount(batch.target["stranger"]).tolist() == pytest.approx([500] * 8, abs=5 * 21)
    labels, place = batch.target["labels"], batch.target["stranger"][:, None]
    assert torch.bincount(labels.gather(1, place)[:, 0]).tolist() == pytest.approx([400] * 10, abs=5 * 19)
    assert torch.bincount(labels.flatten()).min() > 0.8 * 3200


def test_images_are_those_of_their_labels_and_of_their_split():
    train = {
        row.numpy().tobytes(): label for row, label in zip(digits("train").pixels, digits("train").labels, strict=True)
    }
    batch, test = TASK.draw(20, epoch_generator(0, 0)), TASK.test_sets()
    for image, label in zip(batch.X.flatten(0, 1), batch.target["labels"].flatten(), strict=True):
        assert train[image.numpy().tobytes()] == label
    assert not any(image.numpy().tobytes() in train for image in test[0].X.flatten(0, 1))
    assert [tuple(one.X.shape) for one in test] == [(250, 8, 64)] * 8


@pytest.mark.parametrize("row", TASK.rows)
def test_every_row_scores_elements_in_their_order_and_knows_the_set(row):
    model = TASK.model(row, SMALL, seed=0)
    batch = TASK.draw(5, epoch_generator(0, 0))
    output = model(batch.X)
    assert output.shape == (5, 8, 1)
    TASK.loss(output, batch).backward()
    idle = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert [name for name in idle if not name.endswith("key.bias")] == [], "a key's bias cancels where queries are few"
    found = check_symmetry(model, sizes=(3, 8), mask=False)
    assert found.kind == "equivariant"
    assert found.worst < 1e-4
    other = batch.X.clone()
    other[:, 7] = torch.rand(5, 64)
    assert not torch.allclose(model(other)[:, :7], output[:, :7]), "an element's logit depends on the others"


def test_padding_changes_nothing_and_gets_no_probability():
    model = TASK.model("SAB + PMA", SMALL, seed=0)
    X, mask = TASK.draw(3, epoch_generator(0, 0)).X, torch.arange(11) < 8
    padded = torch.cat([X, 9 * torch.rand(3, 3, 64)], dim=1)
    output = model(padded, mask.expand(3, -1))
    assert torch.allclose(output[:, :8], model(X), atol=1e-5)
    assert output.softmax(dim=1)[:, 8:].abs().max() == 0


def test_metrics_by_hand():
    """Two sets of three: in the first the stranger is found, in the second it is second.

    Scores .7 .2 .1 (stranger .7) and .6 .3 .1 (stranger .3): of 2 x 4 pairs stranger and other, 7 are in order; the
    average precision is (1/1 + 2/3) / 2.
    """
    outputs = [torch.tensor([[0.7, 0.2, 0.1]]).log()[:, :, None], torch.tensor([[0.6, 0.3, 0.1]]).log()[:, :, None]]
    batches = [SetBatch(torch.zeros(1, 3, 64), target={"stranger": torch.tensor([place])}) for place in (0, 1)]
    found = TASK.score(outputs, batches)
    assert found == pytest.approx({"AUROC": 7 / 8, "AUPR": (1 + 2 / 3) / 2, "accuracy": 0.5})


ATTRIBUTES = ["Bald", "Hat", "Smile", "Tie"]


def faces(folder: Path, images: int = 60) -> Path:
    """Faces of 12 x 10 pixels whose attributes are encoded in the red of the first four columns."""
    rng = np.random.default_rng(0)
    marks = rng.random((images, len(ATTRIBUTES))) < 0.6
    marks[:, 3] = False  # nobody has a tie
    (folder / "img_align_celeba").mkdir(parents=True)
    lines = [str(images), " ".join(ATTRIBUTES)]
    for number, row in enumerate(marks):
        name = f"{number:06d}.jpg"
        lines.append(f"{name} " + " ".join("1" if mark else "-1" for mark in row))
        pixels = np.zeros((12, 10, 3), dtype=np.uint8)
        for place, mark in enumerate(row):
            pixels[:, 2 * place : 2 * place + 2, 0] = 255 * mark
        imsave(folder / "img_align_celeba" / name, pixels)
    (folder / "list_attr_celeba.txt").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def celeba(tmp_path_factory) -> Path:
    return faces(tmp_path_factory.mktemp("celeba"))


def marks_of(image: torch.Tensor) -> list[bool]:
    """The attributes encoded in an image of 64 x 64 pixels, scaled from the central 10 x 10."""
    red = image.view(3, 64, 64)[0].mean(dim=0)
    return [bool(red[round((2 * place + 1) * 6.4)] > 0.5) for place in range(4)]


def test_seven_faces_have_both_attributes_and_one_has_neither(celeba):
    batch = FaceSets(celeba, "train", 7)(30, epoch_generator(0, 0))
    assert batch.X.shape == (30, 8, 3 * 64 * 64)
    for X, place, pair in zip(
        batch.X, batch.target["stranger"].tolist(), batch.target["attributes"].tolist(), strict=True
    ):
        shown = [[marks_of(image)[attribute] for attribute in pair] for image in X]
        assert shown.pop(place) == [False, False]
        assert shown == [[True, True]] * 7
        assert 3 not in pair, "no seven images have a tie"
    assert len({image.numpy().tobytes() for image in batch.X[0]}) <= 8


def test_faces_are_split_by_image(celeba):
    train, test = (FaceSets(celeba, split, 2) for split in ("train", "test"))
    assert not set(train.files) & set(test.files)
    assert (len(train.files), len(test.files)) == (48, 12)
    assert train.describe() == {"images": 48, "attributes": 4}


def test_celeba_through_the_task(celeba, monkeypatch):
    task = create_task("anomaly", data=str(celeba))
    batch = task.draw(2, epoch_generator(0, 0))
    model = task.model("SAB + max", SMALL, seed=0)
    assert model(batch.X).shape == (2, 8, 1)
    monkeypatch.setenv("POINTSET_HOME", str(celeba.parent))
    celeba.rename(celeba.parent / "celeba")
    try:
        again = create_task("anomaly", data="celeba").draw(2, epoch_generator(0, 0))
    finally:
        (celeba.parent / "celeba").rename(celeba)
    assert torch.equal(again.X, batch.X)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("60\n", "", "does not begin with the number of images"),
        ("60\n", "59\n", "does not begin with the number of images"),
        ("000000.jpg", "000000.jpg 1", r"line 3: expected 4 marks \(1 or -1\)"),
        (" -1\n", " 0\n", r"line 3: expected 4 marks \(1 or -1\)"),
    ],
)
def test_a_damaged_list_is_named_with_its_line(old, new, words, celeba, tmp_path):
    text = (celeba / "list_attr_celeba.txt").read_text()
    (tmp_path / "list_attr_celeba.txt").write_text(text.replace(old, new, 1))
    with pytest.raises(PointsetError, match=words):
        read_attributes(tmp_path / "list_attr_celeba.txt")


def test_an_attribute_list_that_is_not_text_is_a_clear_error(tmp_path):
    (tmp_path / "list_attr_celeba.txt").write_bytes(b"1\nBald\n\xff.jpg 1\n")
    with pytest.raises(PointsetError, match=r"cannot be read .*: download the original file again"):
        read_attributes(tmp_path / "list_attr_celeba.txt")


def test_the_error_for_missing_data_says_how_to_get_it(celeba, tmp_path, monkeypatch):
    monkeypatch.setenv("POINTSET_HOME", str(tmp_path))
    with pytest.raises(PointsetError, match=r"there is no folder .*celeba: get list_attr_celeba\.txt and img_align"):
        create_task("anomaly", data="celeba")
    with pytest.raises(PointsetError, match=r"there is no list_attr_celeba\.txt in .*: get list_attr"):
        create_task("anomaly", data=str(tmp_path)).draw(1, epoch_generator(0, 0))
    with pytest.raises(PointsetError, match="no two attributes are shared by 70 of the 48 images for train"):
        FaceSets(celeba, "train", 70)
