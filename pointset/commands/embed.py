"""`pointset embed`: write the embeddings of shapes."""

from pathlib import Path
from time import perf_counter
from typing import Annotated

from cyclopts import Parameter

from pointset.commands.flags import Reading, ReadingFlags, out_file
from pointset.commands.terminal import Result
from pointset.commands.trained import left_out, load_model, require_network, run_over_files
from pointset.errors import counted

EMBEDDER = "dumlp16-max+dumlp16.modelnet40-1024"
"""The default model. Its embeddings separate shapes of new classes better than those of all other pretrained models."""
EMBEDDING_MODEL_HELP = f"Folder of a run, or a trained model (see `pointset zoo --pretrained`); default: {EMBEDDER}."


def embed(
    files: list[Path],
    /,
    *,
    model: Annotated[str | None, Parameter(name="--model", help=EMBEDDING_MODEL_HELP)] = None,
    output: Annotated[Path, out_file("a file of embeddings", ".npz", ".csv")],
    reading: Annotated[Reading, ReadingFlags] = Reading(),
) -> Result:
    """Write one embedding (a feature vector) per shape. The embeddings of similar shapes have a small distance.

    You can use embeddings for nearest neighbours, clustering or a classifier.

    Example: `pointset embed path/to/meshes -o embeddings.npz`

    Args:
        files: Meshes, point clouds, and folders of these.
        output: File for the embeddings (.npz or .csv), with the names, classes and paths of the shapes.
    """
    import numpy as np

    from pointset.evaluation.shape_files import embed_files, in_folders, save_embeddings

    start = perf_counter()
    trained = load_model(EMBEDDER if model is None else model)
    if trained.description["model"].get("members"):
        require_network(trained, "used for embeddings")
    embeddings, failures = run_over_files(embed_files, trained, in_folders(files), reading, "embedding")
    shapes, rows = zip(*embeddings, strict=True)
    save_embeddings(output, trained.name, shapes, np.stack(rows))
    count, width, seconds = len(rows), len(rows[0]), perf_counter() - start
    data = {"output": str(output), "model": trained.name, "shapes": count, "width": width, "seconds": seconds}
    line = f"saved in {output}: {counted(count, 'shape')}, {width} numbers each, by {trained.name} in {seconds:.1f} s"
    return Result(data | {"left_out": failures}, line, *left_out(failures))
