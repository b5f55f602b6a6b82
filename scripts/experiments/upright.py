"""How often `--up guess` is right: shapes of a folder that stand alike, turned at random by one of the 24 turns.

python scripts/experiments/upright.py path/to/modelnet9_obj --up z
"""

from pathlib import Path

import cyclopts
import numpy as np

from pointset.commands.terminal import as_table
from pointset.data.axes import TURNS, UsualUp
from pointset.data.catalogue.folders import list_shapes
from pointset.evaluation.upright import UPRIGHT_POINTS, best_turn, turn_scores
from pointset.training.loading import load_run
from pointset.zoo.pretrained import USUAL

SIZES = (1, 2, 5, 10, 20)


def main(folder: Path, *, up: UsualUp = "z", model: str = USUAL, draws: int = 200) -> None:
    """Print a row for each size of folder; `up` is the axis that points up in the files."""
    network, _ = load_run(model)
    rng, rows = np.random.default_rng(0), list[dict[str, str]]()
    files = [shape.path for shape in list_shapes(folder)]
    upright = [network.prepare(path, points=UPRIGHT_POINTS, up=up).raw for path in files]
    for size in SIZES:
        guesses = []
        for _ in range(draws):
            turn = rng.choice([*TURNS])
            # A turn of the file, which the guess must undo: the inverse matrix leads from upright to turned.
            clouds = [upright[index] @ TURNS[turn].astype(np.float32) for index in rng.choice(len(files), size, False)]
            guesses.append((turn, best_turn(turn_scores(network, clouds))))
        direction = [guess.up == turn.partition("@")[0] for turn, guess in guesses]
        is_sure = [guess.is_sure for _, guess in guesses]
        both = [right for right, sure in zip(direction, is_sure, strict=True) if sure]
        row = {"shapes": size, "direction %": 100 * np.mean(direction)}
        row["turn %"] = 100 * np.mean([guess.turn == turn for turn, guess in guesses])
        row |= {"sure %": 100 * np.mean(is_sure), "right where sure %": 100 * np.mean(both) if both else float("nan")}
        rows.append({name: f"{value:.4g}" for name, value in row.items()})
    print(as_table(rows))


if __name__ == "__main__":
    cyclopts.run(main)
