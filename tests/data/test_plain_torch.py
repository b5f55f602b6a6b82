"""A training in plain PyTorch: sets in a DataLoader, augmentations as objects, a module of blocks."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

import pointset
from pointset.data import Compose, Jitter, RotateUp, Stretch
from pointset.nn import ISAB, PMA

EPOCHS, RATE = 15, 3e-3


def ellipsoids(count: int, split: str) -> pointset.PointSets:
    """Clouds of 24 to 32 points on ellipsoids: plates, balls and rods, whose heights overlap."""
    rng = np.random.default_rng(len(split))
    clouds = []
    for row in range(count):
        points = rng.normal(size=(int(rng.integers(24, 33)), 3))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        points[:, 2] *= np.exp(row % 3 - 1 + rng.normal(scale=0.4))
        clouds.append(points)
    return pointset.from_arrays(clouds, ["plate", "ball", "rod"] * (count // 3), split=split)


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.pool, self.head = ISAB(3, 32, 8), PMA(32), nn.Linear(32, 3)

    def forward(self, points: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        return self.head(self.pool(self.encoder(points, mask), mask)[:, 0])


def train_in_plain_torch(train: pointset.PointSets, test: pointset.PointSets, seed: int) -> float:
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    augment = Compose([RotateUp(degrees=18), Stretch(1.25), Jitter(0.01)])
    loader = DataLoader(train, batch_size=16, shuffle=True, generator=generator, collate_fn=pointset.data.collate)
    model = Network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    for _ in range(EPOCHS):
        for points, mask, labels in loader:
            logits = model(augment(points, generator, mask), mask)
            loss = nn.functional.cross_entropy(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
    right = 0
    with torch.no_grad():
        for points, mask, labels in DataLoader(test, batch_size=64, collate_fn=pointset.data.collate):
            right += int((model(points, mask).argmax(dim=1) == labels).sum())
    return right / len(test)


def train_by_fit(train: pointset.PointSets, test: pointset.PointSets, seed: int) -> float:
    torch.manual_seed(seed)
    recipe = pointset.Recipe(
        epochs=EPOCHS,
        batch_size=16,
        learning_rate=RATE,
        augment=("rotate-up-18", "stretch", "jitter"),
        label_smoothing=0.0,
    )
    model = Network()
    pointset.fit(model, train, recipe, seed=seed, progress=False)
    return pointset.evaluate(model, test).accuracy


def test_a_training_in_plain_torch_is_as_accurate_as_fit():
    train, test = ellipsoids(150, "train"), ellipsoids(120, "test")
    plain, fitted = ([run(train, test, seed) for seed in range(2)] for run in (train_in_plain_torch, train_by_fit))
    assert min(plain) > 0.75
    spread = max(np.std(plain + fitted, ddof=1), 2 / len(test))
    assert abs(np.mean(plain) - np.mean(fitted)) <= 2 * spread
