"""Shared by the tests of trainings: the toy training shapes, in sets of 32 points."""

import pytest

import pointset


@pytest.fixture(scope="session")
def train(clouds_folder):
    return pointset.load_dataset(clouds_folder, "train", 32)
