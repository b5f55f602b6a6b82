"""`pointset rank`: rank models by their predictions, with a test of each difference."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import pointset
from pointset.commands.flags import out_file
from pointset.commands.terminal import Result
from pointset.errors import PointsetError
from pointset.runs.atomic import write_atomically

if TYPE_CHECKING:
    from pointset.comparison.ranking import Ranking

PICTURES = (".svg", ".png", ".pdf")
TEXTS = (".md", ".tex")


def rank(
    files: list[Path],
    /,
    *,
    columns: tuple[str, ...] = (),
    level: float = 0.05,
    deterministic: tuple[str, ...] = (),
    output: Annotated[tuple[Path, ...], out_file("a ranking", *TEXTS, *PICTURES)] = (),
) -> Result:
    """Rank models by their predictions, and test whether differences are significant for new seeds and new items.

    Every file has one row per item, with the columns "item", "label" and "prediction". A file of several models or
    seeds also has the columns "model" and "seed". Files of `pointset classify -o` and `pointset evaluate -o`, and
    folders of `pointset compare`, can be used unchanged.

    Example: `pointset rank svm.csv network-seed0.csv network-seed1.csv --columns item=uid label=truth -o ranking.md`

    Args:
        files: Predictions (.csv), or folders of `pointset compare`.
            If there is no column "model", the file name is the name of the model, and an ending such as "-seed3"
            gives the seed.
        columns: Names of the columns, if they differ: item=COLUMN label=COLUMN prediction=COLUMN model=COLUMN
            seed=COLUMN.
        level: Probability that any difference is found significant if all models are equally good.
        deterministic: Models whose training does not depend on a seed, such as a support vector machine.
        output: Files to write: tables in Markdown (.md) or LaTeX (.tex), or a figure of all pairs of models (.svg, .png
            or .pdf).
    """
    if wrong := next((word for word in columns if "=" not in word), None):
        raise PointsetError(f"--columns must be pairs such as item=uid, got {wrong!r}")
    named = dict(word.split("=", 1) for word in columns)
    ranking = pointset.rank(files, named, level=level, deterministic=deterministic)
    for path in output:
        _write(ranking, path)
    return Result(ranking.as_dict(), *str(ranking).splitlines())


def _write(ranking: "Ranking", path: Path) -> None:
    suffix = path.suffix.lower()
    if suffix in PICTURES:
        from pointset.comparison.charts import draw_matrix  # imports matplotlib

        if (figure := draw_matrix(ranking)) is None:
            raise PointsetError(
                f"{path} would show pairs of models, but there is only one model: give predictions of another"
            )
        pointset.viz.save(figure, path)
        return
    text = ranking.as_markdown() if suffix == ".md" else ranking.as_latex()
    write_atomically(path, partial(Path.write_text, data=text, encoding="utf-8"))
