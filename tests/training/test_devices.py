"""Random numbers of dropout depend on the seed, the epoch and the process."""

import torch
from torch import nn

import pointset
from pointset.training.devices import seeded_dropout
from pointset.training.recipe import Recipe


def drawn(seed: int, epoch: int, rank: int = 0) -> tuple[float, ...]:
    with seeded_dropout(seed, epoch, torch.device("cpu"), rank):
        return tuple(torch.rand(4).tolist())


def test_every_seed_epoch_and_process_draws_its_own_numbers_and_draws_them_again() -> None:
    keys = [(seed, epoch, rank) for seed in range(3) for epoch in range(3) for rank in range(3)]
    assert len({drawn(*key) for key in keys}) == len(keys)
    assert drawn(1, 2) == drawn(1, 2)


class Watched(nn.Module):
    """Records which units dropout kept in the first batch of each epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.5)
        self.layer = nn.Linear(3, 3)
        self.left: list[torch.Tensor] = []

    def forward(self, points: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        self.left.append(self.dropout(torch.ones(64)))
        return self.layer(points.amax(dim=1))


def test_a_training_drops_other_units_in_every_epoch(clouds_folder) -> None:
    train = pointset.load_dataset(clouds_folder, "train", 8)
    models = Watched(), Watched()
    for model in models:
        pointset.fit(model, train, Recipe(epochs=3, batch_size=len(train)), seed=2, progress=False)
    masks = [tuple(mask.tolist()) for mask in models[0].left]
    assert len(set(masks)) == len(masks) == 3
    assert masks == [tuple(mask.tolist()) for mask in models[1].left]
