"""Products of networks that differ, and a support vector machine on classical features.

python scripts/experiments/product.py path/to/modelnet40_ply_hdf5 --seed 0    # adds a row to results/product/

Temperatures and weights were chosen on the last fifth of each class of the training split, where the networks were
trained for 20, 20 and 12 epochs. The same command continues a run. Results: "Networks that differ" in
pages/local_features.md.
"""

import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cyclopts
import torch
from saved import FOLDER, keep_row
from saved import run as run_app
from torch import Tensor

from pointset import DataOptions, Recipe, evaluate, fit
from pointset.baselines.models import Mixture
from pointset.data.dataset import load_split
from pointset.training.checkpoints import core_seconds
from pointset.zoo.models import create_for
from pointset.zoo.options import ModelOptions

NAME = "product"
TURNED: dict[str, Any] = {"augment": ("stretch", "jitter", "cutmix-k"), "label_smoothing": 0.1}
app = cyclopts.App(name="product.py", help=__doc__, result_action="return_value")


@dataclass(frozen=True)
class Member:
    """One factor of the product."""

    title: str
    name: str
    temperature: float
    weight: float
    normalize: Any = "standardize"
    options: dict[str, Any] = field(default_factory=dict)
    """What differs from the model of near.toml."""
    recipe: dict[str, Any] = field(default_factory=dict)
    """What differs from the recipe of near.toml."""


DUMLP: dict[str, Any] = {"head_dim": 256, "head_norm": "batch"}
MEMBERS = (
    Member(
        "shifts", "dumlp16-max+dumlp16", 0.7, 1.0, options=DUMLP | {"local_features": "shifts"}, recipe={"epochs": 50}
    ),
    Member(
        "all, along principal axes",
        "dumlp16-max+dumlp16",
        0.8,
        0.5,
        "principal-axes",
        options=DUMLP | {"local_features": "all"},
        recipe=TURNED | {"epochs": 16},
    ),
    Member(
        "sparsemax",
        "rff-pma4",
        0.7,
        0.7,
        options={"dim": 128, "pool_weights": ("sparsemax",)},
        recipe={"epochs": 10, "augment": ("stretch-wide", "shift-wide", "jitter")},
    ),
    Member("features-svm", "features-svm", 1.0, 0.4),
)
PRODUCTS = {"product of the first, third and fourth": (0, 2, 3), "product of all": (0, 1, 2, 3)}
"""Places of the members of each product."""


def fit_member(member: Member, data: str, seed: int, run: Path) -> tuple[Tensor, Tensor, float]:
    """Logits of the test shapes, their labels, and processor seconds of the training, without neighbourhoods."""
    content = tomllib.loads((FOLDER / "near.toml").read_text(encoding="utf-8"))
    train, test = (load_split(data, split, DataOptions(normalize=member.normalize)) for split in ("train", "test"))
    if member.name.endswith("-svm"):
        fitted = fit(create_for(train, member.name, seed=seed), train, seed=seed)
    else:
        base = {"dim": 64, "norm": "batch", "dropout": 0.3, "pooled_dropout": 0.0} | content["model"]
        options = ModelOptions.from_dict(base | member.options)
        recipe = Recipe.from_dict(content["recipe"] | {"validation": 0.0} | member.recipe)
        train.with_local_features("both")  # computed once for all members
        model = create_for(train, member.name, options, seed=seed)
        fitted = fit(model, train, recipe, seed=seed, run=run / member.title.replace(" ", "_"))
    return torch.from_numpy(evaluate(fitted.model, test).logits), test.labels, core_seconds(fitted.history)


@app.default
def product(data: str, *, seed: int = 0, run: Path = Path("runs/product")) -> None:
    """Train the members one after the other, and test each and their products."""
    row: dict[str, Any] = {"seed": seed}
    logits, seconds = list[Tensor](), list[float]()
    for member in MEMBERS:
        own, labels, took = fit_member(member, data, seed, run / str(seed))
        row |= {f"{member.title} %": accuracy(own, labels), f"{member.title} core-s": f"{took:.0f}"}
        logits.append(own)
        seconds.append(took)
    for title, places in PRODUCTS.items():
        members = [MEMBERS[place] for place in places]
        mixture = Mixture([torch.nn.Identity() for _ in members], logits[0].shape[1])
        mixture.temperatures = torch.tensor([member.temperature for member in members])
        mixture.weights = torch.tensor([member.weight for member in members])
        found = accuracy(mixture.combine([logits[place] for place in places]), labels)
        minutes = sum(seconds[place] for place in places) / 60
        row |= {f"{title} %": found, f"{title} core-minutes": f"{minutes:.1f}"}
    keep_row(NAME, row)


def accuracy(logits: Tensor, labels: Tensor) -> str:
    """In percent."""
    return f"{100 * float((logits.argmax(dim=1) == labels).float().mean()):.2f}"


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(run_app(app))
