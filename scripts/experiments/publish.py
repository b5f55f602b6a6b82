"""Make a pretrained model of the package from a finished run: weights in 16 bits, run.json and a model card.

    python scripts/experiments/publish.py runs/frontier/runs/isab16-pma-n1000-seed0 --name isab16-pma.modelnet40-1024

The accuracies on the card are measured on the official test split. Corruption errors are read from the run, if its
comparison measured them (`robustness_seeds`). The weights are stored in 32 bits if 16 bits change an accuracy by more
than 0.1 percentage points.
"""

import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import cyclopts
import numpy as np
import saved
import torch
from cyclopts import Parameter
from safetensors.torch import save_file
from statsmodels.stats.proportion import proportion_confint
from torch import Tensor, nn

import pointset
from pointset import PointsetError, load_model
from pointset.data import load_card, load_like, normalize_points
from pointset.evaluation import Evaluation, evaluate, fit_temperature, measure_costs
from pointset.explain import exact_support

FOLDER = Path(pointset.__file__).parent / "zoo" / "trained"
SIZES = (64, 100, 256, 1024)
MOST_LOST = 0.001
"""Maximum change of an accuracy (0 to 1) by 16-bit weights."""
SUPPORT_EVERY = 10
"""The support is computed for every `SUPPORT_EVERY`-th test shape."""
WORST = 3
"""Number of confusions on the card."""
GENERATED = "The code, the shapes that it generates, and the weights are under the MIT licence."
TERMS = (
    "The code and the weights are under the MIT licence. The weights were fitted to the CAD models of ModelNet40, "
    "which were released for academic research. Their copyright stays with their authors: ask them before any other "
    "use."
)
app = cyclopts.App(name="publish.py", help=__doc__, result_action="return_value")


@app.default
def publish(
    run: Path,
    *,
    name: Annotated[str, Parameter(help="Name of model and training, such as isab16-pma.modelnet40-1024.")],
    data: Annotated[str, Parameter(help="Name of the card of the training data.")] = "modelnet40",
    command: Annotated[str, Parameter(help="Command that trains the model.")],
    folder: Annotated[Path, Parameter(help="Folder of the pretrained models.")] = FOLDER,
) -> None:
    """Measure the model of a run, write the folder of the pretrained model, and print its card."""
    model = load_model(run)
    description = model.description
    corrupted_at = description["data"]["preparation"]["points"]
    description["data"]["preparation"]["points"] = SIZES[-1]
    about = _about(description, data)
    tested = {size: _test(model, description, size) for size in SIZES}
    weights = _in_16_bits(model)
    model.load_state_dict(weights)
    halved = {size: _test(model, description, size) for size in SIZES}
    if any(abs(halved[size].accuracy - tested[size].accuracy) > MOST_LOST for size in SIZES):
        model = load_model(run)
        weights, halved = model.state_dict(), tested
    card = "\n".join(
        _card(
            title=f"{description['model']['name']}, trained on sets of {_sizes(description['recipe'])} points",
            data=data,
            parameters=sum(parameter.numel() for parameter in model.parameters()),
            multiply_adds=measure_costs([model], SIZES[-1], repeats=1)[0].multiply_adds,
            temperature=round(_temperature(model, description), 3),
            deciding=_deciding(model, description),
            failures=list(_confusions(halved[SIZES[-1]])),
            command=command,
            terms=GENERATED if load_card(data).kind == "generated" else TERMS,
            accuracy={str(size): _interval(found) for size, found in halved.items()},
            corruption_errors=_corruption_errors(run, corrupted_at),
        )
    )
    target = folder / name
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    saved.write_json(target / "run.json", about)
    save_file(weights, target / "model.safetensors")
    save_file(_check(model), target / "check.safetensors")
    (target / "card.toml").write_text(card + "\n", encoding="utf-8")
    print(card)


def _test(model: nn.Module, description: dict[str, Any], points: int) -> Evaluation:
    return evaluate(model, load_like(description["data"], "test", points=points))


def _temperature(model: nn.Module, description: dict[str, Any]) -> float:
    """The temperature that minimises the log loss on the validation split of the run."""
    train = load_like(description["data"], "train")
    held_out = evaluate(model, train.subset(description["validation"]))
    groups = train.grouping.groups[description["validation"]] if train.grouping else None
    return fit_temperature(held_out.logits, held_out.labels, groups=groups)


def _in_16_bits(model: nn.Module) -> dict[str, Tensor]:
    return {name: one.half() if one.is_floating_point() else one for name, one in model.state_dict().items()}


def _check(model: nn.Module) -> dict[str, Tensor]:
    """Four sets and their logits, with which an installation can test that it computes the same values."""
    points = normalize_points(torch.randn(4, 128, 3, generator=torch.Generator().manual_seed(0)), "unit-sphere")
    with torch.inference_mode():
        return {"points": points, "logits": model(points)}


def _about(description: dict[str, Any], data: str) -> dict[str, Any]:
    """The content of run.json, with the name of the data card in place of paths of the machine."""
    card, sets = load_card(data), description["data"]
    if (tuple(sets["classes"]), sets["preparation"]["up"]) != (card.classes, card.up):
        raise PointsetError(f"the run was trained on other classes or another upward axis than {data} has")
    model = {key: Path(value).name if key == "pretrained" else value for key, value in description["model"].items()}
    return description | {"model": model, "data": sets | {"name": data, "source": data}}


def _sizes(recipe: Mapping[str, Any]) -> str:
    first, last = recipe.get("train_points"), recipe.get("last_points") or recipe.get("train_points")
    if not first or not last:
        raise PointsetError("the run was trained on sets of one size: train with --train-points to publish a model")
    return f"{min(first[0], last[0]):,} to {max(first[1], last[1]):,}"


def _deciding(model: nn.Module, description: dict[str, Any]) -> int | None:
    """Median number of support points over test shapes; None if the model has no exact support."""
    test = load_like(description["data"], "test", points=SIZES[-1])
    supports = [exact_support(model, points) for points in test.points[::SUPPORT_EVERY]]
    counts = [int(support.points.sum()) for support in supports if support is not None]
    return round(float(np.median(counts))) if len(counts) == len(supports) else None


def _interval(found: Evaluation) -> list[float]:
    low, high = proportion_confint(int(found.right.sum()), len(found.right), method="wilson")
    return [round(float(share), 4) for share in (found.accuracy, low, high)]


def _confusions(found: Evaluation) -> Iterator[str]:
    """Sentences on the most frequent confusions: pairs of classes with the largest share of the true class."""
    counts = found.confusion
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    np.fill_diagonal(shares, 0.0)
    for place in np.argsort(shares, axis=None)[::-1][:WORST]:
        true, taken = np.unravel_index(place, shares.shape)
        yield (
            f"{found.classes[true]} is taken for {found.classes[taken]}: {counts[true, taken]} of {counts[true].sum()} "
            f"test shapes of {SIZES[-1]:,} points"
        )


def _corruption_errors(run: Path, points: int) -> dict[str, float]:
    if not (run / "robustness.json").exists():
        return {}
    found = json.loads((run / "robustness.json").read_text(encoding="utf-8"))
    return {"points": points, "clean": round(found["clean_error"], 4)} | {
        name: round(float(np.mean([*errors.values()])), 4) for name, errors in found["errors"].items()
    }


def _card(**fields: Any) -> Iterator[str]:
    """Yield the lines of a TOML file, tables last."""
    tables = {name: value for name, value in fields.items() if isinstance(value, dict) and value}
    for name, value in fields.items():
        if value is not None and not isinstance(value, dict):
            yield f"{name} = {json.dumps(value)}"
    for name, table in tables.items():
        yield f"\n[{name}]"
        for key, value in table.items():
            yield f"{key} = {json.dumps(value)}"


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(saved.run(app))
