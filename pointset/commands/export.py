"""`pointset export`: write a trained model to a file that works without this package."""

import pointset
from pointset.commands.flags import Out
from pointset.commands.terminal import Result
from pointset.commands.trained import Model, load_model, require_network, usual


def export(*, model: Model = None, output: Out, mask: bool = False) -> Result:
    """Write a trained model as a torch.export program or as ONNX, and compare its outputs with those of the model.

    The exported model takes batches of any number of sets of any size, and returns the logits and the probabilities of
    `pointset classify`. The metadata of the file describe the classes, the inputs and the preparation of the points.
    The file is written only if the outputs equal those of the model up to rounding.

    Example: `pointset export --model runs/parts -o model.onnx --mask`

    Args:
        output: The file to write: .pt2 (torch.export) or .onnx (ONNX).
            ONNX needs `pip install "pointset-learn[export]"`.
        mask: Add a second input, mask [B, n] (True at real points), for sets of different sizes in one batch.
    """
    from pointset.export.formats import format_of
    from pointset.export.model import CHECKED

    format_of(output)  # a wrong name fails before anything is loaded
    trained = load_model(model)
    require_network(trained, "exported")
    difference = pointset.export_model(trained.network, output, mask=mask)
    size = output.stat().st_size
    bytes_in_words = f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"
    facts = {"model": trained.name, "output": str(output), "bytes": size}
    return Result(
        facts | {"difference": difference, "checked": [list(batch) for batch in CHECKED]},
        *usual(model),
        f"saved in {output}: {trained.description['model']['name']}, {bytes_in_words}",
        f"largest difference from the model's outputs: {difference:.1e} (checked on batches of 1 and 3 sets of 1, 100 "
        "and 1,500 points)",
    )
