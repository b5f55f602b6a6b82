"""Measure the faithfulness of explanations of pretrained models by deletion and insertion on test shapes.

python scripts/experiments/faithful.py path/to/modelnet40_ply_hdf5    # writes results/faithful/
"""

from collections.abc import Sequence
from typing import Annotated, Any

import cyclopts
import numpy as np
import pandas as pd
from cyclopts import Parameter
from saved import study_table, write_study
from scipy import stats

import pointset
from pointset.explain import check_explanations

MODELS = ("isab16-pma", "dumlp16-max+dumlp16", "rff-pma4")
TRAINED_ON = "modelnet40-1024"
POINTS = 256
app = cyclopts.App(name="faithful.py", help=__doc__, result_action="return_value")


@app.default
def faithful(
    data: str, *, shapes: Annotated[int, Parameter(help="Number of test shapes, spread over all classes.")] = 80
) -> None:
    """Measure all explanations of the models, and write the areas under the curves and their tables."""
    rows = list[dict[str, Any]]()
    for name in MODELS:
        model = pointset.load_model(f"{name}.{TRAINED_ON}")
        test = pointset.load_dataset(data, split="test", points=POINTS, normalize=model.preparation.normalize)
        test = test.with_local_features(model.local_features)  # of whole clouds, kept if points are removed
        chosen = np.linspace(0, len(test) - 1, shapes).astype(int)
        curves = check_explanations(model, [test.points[index] for index in chosen])
        for explanation, by in curves.items():
            areas = by.areas
            rows += [
                {"model": name, "explanation": explanation, "shape": test.names[index]}
                | {what: round(float(area[place]), 6) for what, area in areas.items()}
                for place, index in enumerate(chosen)
            ]
        print(
            name,
            {key: {w: f"{100 * a.mean():.1f}" for w, a in by.areas.items()} for key, by in curves.items()},
            flush=True,
        )
    write_study("faithful", rows, (table(rows, what) for what in ("deletion", "insertion")))


def table(rows: Sequence[dict[str, Any]], what: str) -> str:
    """The table of mean areas, with 95 % intervals of the difference from a random order, for one test."""
    by_pair = pd.DataFrame(rows).groupby(["model", "explanation"])[what]
    areas, lines = {pair: 100 * own.to_numpy() for pair, own in by_pair}, []
    for explanation in dict.fromkeys(row["explanation"] for row in rows):
        line = [explanation]
        for model in MODELS:
            values, interval = areas.get((model, explanation)), ""
            if values is not None and explanation != "random":
                apart = values - areas[model, "random"]
                low, high = stats.t.interval(0.95, len(apart) - 1, apart.mean(), stats.sem(apart))
                interval = f" ({low:+.1f} to {high:+.1f})"
            line.append("" if values is None else f"{values.mean():.1f}{interval}")
        lines.append(line)
    return study_table(lines, [f"{what} %", *MODELS])


if __name__ == "__main__":
    app()
