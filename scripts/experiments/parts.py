"""Labels per point without neighbourhoods: set networks against edge convolutions on the parts of shapes10.

python scripts/experiments/parts.py    # writes results/parts/; 7 minutes of a core
"""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import cyclopts
import numpy as np
import torch
from cyclopts import Parameter
from torch import Tensor, nn

import pointset
from pointset.evaluation import evaluate_points
from pointset.nn.masks import as_mask
from pointset.training.recipe import Recipe

FOLDER = Path(__file__).parent
MODELS = ("rff-max", "isab16-pma", "edge16-max")
POINTS, DIM = 256, 64
CALIBRATION = 2
"""Epochs whose time says how many fit the budget."""
STUDY = """## Labels per point, without neighbourhoods

How much does a network miss that knows a point only by its coordinates and by summaries of its set? The parts of
shapes10 ({classes} of them, such as seat, leg, drawer and handle) are known exactly. `edge16-max` has three edge
convolutions, as DGCNN's part segmentation (Wang et al., arXiv 1801.07829, section 5.3; the `EdgeConv` of
torch-geometric, with one layer), but over the 16 nearest neighbours in space in every layer. The head, the recipe and
the budget of {budget} core-seconds of training are the same for all. {points} points of each shape; means and standard
deviations of {seeds} seeds; {shapes} test shapes; mean IoU over classes.

{table}

{parts}

{words}

```
python scripts/experiments/parts.py
```

Every run: [`results.csv`](results/parts/results.csv).
"""
WORDS = ""
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
        places = X[..., :3].masked_fill(~as_mask(X, mask)[..., None], 1e6)
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
    """Train all models for the same time, and write the study for the results page."""
    torch.set_num_threads(1)
    train, test = (
        pointset.load_dataset("shapes10", split, POINTS, labels="part", progress=False) for split in ("train", "test")
    )
    rows = []
    for name in MODELS:
        epochs = 0
        for seed in range(seeds):
            if not epochs:
                trial = pointset.fit(_make(name, train, seed), train, _recipe(CALIBRATION), progress=False)
                epochs = max(CALIBRATION, int(budget / (trial.work / CALIBRATION)))
            model = _make(name, train, seed)
            fitted = pointset.fit(model, train, _recipe(epochs), seed=seed, progress=False)
            result = evaluate_points(model, test)
            parameters = sum(parameter.numel() for parameter in model.parameters())
            about = {"model": name, "seed": seed, "parameters": parameters, "epochs": epochs}
            scores = {"accuracy": result.accuracy, "mean_iou": result.mean_iou, **result.iou}
            rows.append({**about, "core_seconds": round(fitted.work), **{k: round(v, 6) for k, v in scores.items()}})
            print(rows[-1], flush=True)
    folder = FOLDER / "results" / "parts"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "results.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows(rows)
    write(folder)


def _make(name: str, train: Any, seed: int) -> Any:
    return pointset.create_segmenter(
        name, len(train.point_classes), dim=DIM, dropout=0.0, norm="layer", head_norm="layer", seed=seed
    )


def _recipe(epochs: int) -> Recipe:
    return Recipe(epochs=epochs, learning_rate=2e-3, augment=("rotate-up", "scale", "jitter"))


def write(folder: Path) -> None:
    """The study for the results page, from the saved runs."""
    from tabulate import tabulate

    with (folder / "results.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    by_model = {name: [row for row in rows if row["model"] == name] for name in MODELS}
    about = ("model", "seed", "parameters", "epochs", "core_seconds", "accuracy", "mean_iou")
    classes = [name for name in rows[0] if name not in about]
    table = [
        {
            "model": name,
            "parameters": f"{int(own[0]['parameters']):,}",
            "epochs": own[0]["epochs"],
            "accuracy %": _cell(own, "accuracy"),
            "mean IoU %": _cell(own, "mean_iou"),
        }
        for name, own in by_model.items()
    ]
    means = {
        label: {name: np.mean([float(row[label] or 0) for row in own]) for name, own in by_model.items()}
        for label in classes
    }
    order = sorted(classes, key=lambda label: means[label]["isab16-pma"] - means[label]["edge16-max"])
    lines = [{"IoU %": label, **{name: f"{100 * means[label][name]:.1f}" for name in MODELS}} for label in order]
    how: dict[str, Any] = {"headers": "keys", "tablefmt": "github", "disable_numparse": True}
    text = STUDY.format(
        table=tabulate(table, **how, colalign=("left", *["right"] * 4)),
        parts=tabulate(lines, **how, colalign=("left", *["right"] * len(MODELS))),
        classes=len(classes),
        budget=round(float(np.mean([float(row["core_seconds"]) for row in rows])), -1).__int__(),
        seeds=len({row["seed"] for row in rows}),
        points=POINTS,
        shapes=300,
        words=WORDS,
    )
    (folder / "study.md").write_text(text, encoding="utf-8")


def _cell(rows: Sequence[dict[str, str]], column: str) -> str:
    values = [100 * float(row[column]) for row in rows]
    return f"{np.mean(values):.1f} ± {np.std(values, ddof=1):.1f}"


if __name__ == "__main__":
    app()
