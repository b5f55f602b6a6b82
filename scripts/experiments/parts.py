"""Labels per point without neighbourhoods: set networks against edge convolutions on the parts of shapes10.

python scripts/experiments/parts.py    # writes results/parts/; 7 minutes of a core
"""

from collections.abc import Sequence
from typing import Annotated, Any

import cyclopts
import numpy as np
import torch
from cyclopts import Parameter
from saved import study_table, write_study
from torch import Tensor, nn

import pointset
from pointset.evaluation import evaluate_points
from pointset.nn.masks import full_mask
from pointset.training.recipe import Recipe

MODELS = ("rff-max", "isab16-pma", "edge16-max")
POINTS, DIM = 256, 64
CALIBRATION = 2
"""Epochs whose time says how many fit the budget."""
EPOCHS = 12
"""Epochs of the comparison by passes over the data."""
app = cyclopts.App(name="parts.py", help=__doc__, result_action="return_value")


@pointset.register_encoder("edge<k>", listed="edge16")
class EdgeConvolutions(nn.Module):
    """Three edge convolutions over the k nearest neighbours of each point in space, then a linear map of all outputs.

    max_j leaky(W [x_i, x_j - x_i] + b), which torch-geometric's `EdgeConv` computes edge by edge, equals
    leaky(U x_i + max_j V x_j + b), with V the right half of W and U the left half minus V: 10 times as fast.
    """

    def __init__(self, inputs: int, dim: int, k: int) -> None:
        super().__init__()
        self.k = k
        widths = (inputs, dim, dim)
        self.own = nn.ModuleList(nn.Linear(width, dim) for width in widths)
        self.near = nn.ModuleList(nn.Linear(width, dim, bias=False) for width in widths)
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in widths)
        self.join = nn.Linear(3 * dim, dim)

    def forward(self, X: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the rows, in the order of X; padded rows are far from all others."""
        sets, size, _ = X.shape
        places = X[..., :3].masked_fill(~full_mask(X, mask)[..., None], 1e6)
        near = torch.cdist(places, places).topk(min(self.k, size), largest=False).indices
        first = size * torch.arange(sets, device=X.device)[:, None, None]
        rows, outputs = X, []
        for own, other, norm in zip(self.own, self.near, self.norms, strict=True):
            values = other(rows).flatten(0, 1)[(near + first).flatten()].view(*near.shape, -1)
            rows = norm(nn.functional.leaky_relu(own(rows) + values.amax(dim=2), 0.2))
            outputs.append(rows)
        return nn.functional.leaky_relu(self.join(torch.cat(outputs, dim=2)), 0.2)


@app.default
def parts(
    *,
    budget: Annotated[float, Parameter(help="Core-seconds of training of each run.")] = 60.0,
    seeds: Annotated[int, Parameter(help="Number of seeds.")] = 2,
) -> None:
    """Train all models for the same time, and keep the runs and their tables for the results page."""
    torch.set_num_threads(1)
    train, test = (
        pointset.load_dataset("shapes10", split, POINTS, labels="part", progress=False) for split in ("train", "test")
    )
    rows = list[dict[str, Any]]()
    for name in MODELS:
        trial = pointset.fit(_make(name, train, 0), train, _recipe(CALIBRATION), progress=False)
        of_budget = max(CALIBRATION, int(budget / (trial.work / CALIBRATION)))
        runs = [("time", of_budget, seed) for seed in range(seeds)] + [("epochs", EPOCHS, 0)]
        for same, epochs, seed in runs:
            model = _make(name, train, seed)
            fitted = pointset.fit(model, train, _recipe(epochs), seed=seed, progress=False)
            result = evaluate_points(model, test)
            parameters = sum(parameter.numel() for parameter in model.parameters())
            about = {"same": same, "model": name, "seed": seed, "parameters": parameters, "epochs": epochs}
            scores = {"accuracy": result.accuracy, "mean_iou": result.mean_iou, **result.iou}
            rows.append({**about, "core_seconds": round(fitted.work), **{k: round(v, 6) for k, v in scores.items()}})
            print(rows[-1], flush=True)
    write_study("parts", rows, (by_budget(rows), by_part(rows)))


def _make(name: str, train: Any, seed: int) -> Any:
    return pointset.create_segmenter(
        name, len(train.point_classes), dim=DIM, dropout=0.0, norm="layer", head_norm="layer", seed=seed
    )


def _recipe(epochs: int) -> Recipe:
    return Recipe(epochs=epochs, learning_rate=2e-3, augment=("rotate-up", "scale", "jitter"))


def by_budget(rows: Sequence[dict[str, Any]]) -> str:
    """The table of the models, for the same time and for the same number of epochs."""
    heads = ["same", "model", "parameters", "epochs", "core-seconds", "seeds", "accuracy %", "mean_iou %"]
    lines = []
    for same in ("time", "epochs"):
        for name in MODELS:
            own = [row for row in rows if (row["same"], row["model"]) == (same, name)]
            line = [same, name, f"{int(own[0]['parameters']):,}", str(own[0]["epochs"])]
            line += [f"{_mean(own, 'core_seconds'):.0f}", str(len(own))]
            lines.append(line + [f"{100 * _mean(own, what):.1f}" for what in ("accuracy", "mean_iou")])
    return study_table(lines, heads, left=2)


def by_part(rows: Sequence[dict[str, Any]]) -> str:
    """The table of the parts, for the same number of epochs."""
    about = ("same", "model", "seed", "parameters", "epochs", "core_seconds", "accuracy", "mean_iou")
    by_epochs = {name: [row for row in rows if (row["same"], row["model"]) == ("epochs", name)] for name in MODELS}
    ious = {part: {name: _mean(own, part) for name, own in by_epochs.items()} for part in rows[0] if part not in about}
    order = sorted(ious, key=lambda part: ious[part]["isab16-pma"] - ious[part]["edge16-max"])
    lines = [[part, *(f"{100 * ious[part][name]:.1f}" for name in MODELS)] for part in order]
    return study_table(lines, ["part", *MODELS])


def _mean(rows: Sequence[dict[str, Any]], column: str) -> float:
    return float(np.mean([float(row[column] or 0) for row in rows]))


if __name__ == "__main__":
    app()
