"""Images for sets, and their split."""

import numpy as np
import torch

from pointset.tasks.images import digits


def test_digits_are_split_by_image_class_by_class():
    from sklearn.datasets import load_digits

    train, test = digits("train"), digits("test")
    assert len(train.labels) + len(test.labels) == 1797
    assert train.pixels.shape[1] == 64
    assert train.pixels.min() == 0
    assert train.pixels.max() == 1
    whole = {row.tobytes(): label for row, label in zip(*load_digits(return_X_y=True), strict=True)}
    assert len(whole) == 1797, "no two images are the same, so that they can be told apart"
    for part in (train, test):
        for row, label in zip((part.pixels * 16).double().numpy(), part.labels.tolist(), strict=True):
            assert whole.pop(row.tobytes()) == label, "in one split, with its own label"
    assert torch.bincount(test.labels).tolist() == [int(n) // 5 for n in np.bincount(load_digits().target)]
