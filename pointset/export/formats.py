"""The two formats of exported models: `torch.export` (.pt2) and ONNX.

A format converts an exported program to the bytes of a file, and opens a file as a function. The description of a model
is stored in its file under `pointset.json`: in a .pt2 file as an extra file, and in an ONNX file as a metadata entry.
"""

import copy
import io
import json
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from pointset.errors import PointsetError, require_extra
from pointset.runs.atomic import check_writable

RunModel = Callable[..., Sequence[Tensor]]
"""A function: points [B, n, inputs], and mask [B, n] if the file has this input -> [logits, probabilities]."""
OUTPUTS = ("logits", "probabilities")

DESCRIPTION = "pointset.json"
"""The name under which both formats store the description of a model, as JSON."""
EXAMPLE = (3, 37)
"""Numbers of sets and points in the example input of an export. They differ from each other and from layer widths."""


class Pt2:
    """A `torch.export` program (Python, C++): `logits, probabilities = torch.export.load(file).module()(points)`."""

    suffix = ".pt2"
    title = "torch.export"
    needed = ()

    def write(self, program: ExportedProgram, description: dict[str, Any]) -> bytes:
        """Return the content of the file."""
        file = io.BytesIO()
        torch.export.save(program, file, extra_files={DESCRIPTION: json.dumps(description, indent=2)})
        return file.getvalue()

    def open(self, path: Path) -> RunModel:
        """Return a function that runs the file."""
        with path.open("rb") as file:
            return torch.export.load(file).module()


class Onnx:
    """ONNX with the inputs `points` and optionally `mask`, and the outputs `logits` and `probabilities`."""

    suffix = ".onnx"
    title = "ONNX"
    needed = ("onnx", "onnxscript", "onnxruntime")

    def write(self, program: ExportedProgram, description: dict[str, Any]) -> bytes:
        """Return the content of the file."""
        count = len(program.graph_signature.user_inputs)
        with _quiet():
            names: dict[str, Any] = {"input_names": ["points", "mask"][:count], "output_names": list(OUTPUTS)}
            sizes = dynamic_shapes(count)
            exported = torch.onnx.export(program, **names, dynamic_shapes=sizes, dynamo=True, verbose=False)
        assert exported is not None, "without a file name, the exporter returns the program"
        exported.model.metadata_props[DESCRIPTION] = json.dumps(description, indent=2)
        return exported.model_proto.SerializeToString()

    def open(self, path: Path) -> RunModel:
        """Return a function that runs the file."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = 1, 1
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

        def run(*inputs: Tensor) -> list[Tensor]:
            feeds = {name: each.numpy() for name, each in zip(("points", "mask"), inputs, strict=False)}
            return [torch.from_numpy(output) for output in session.run(OUTPUTS, feeds)]

        return run


FORMATS: dict[str, Pt2 | Onnx] = {form.suffix: form for form in (Pt2(), Onnx())}


def format_of(path: Path) -> Pt2 | Onnx:
    """Return the format for the suffix of a path."""
    if path.suffix.lower() not in FORMATS:
        raise PointsetError(f"the file name of an exported model must end in {' or '.join(FORMATS)}, got {path}")
    check_writable(path)
    form = FORMATS[path.suffix.lower()]
    require_extra("export", f"writing {form.title}", *form.needed)
    return form


class WithProbabilities(nn.Module):
    """A model with two outputs [B, classes]: logits, and probabilities softmax(logits / temperature)."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, points: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return logits and probabilities."""
        logits = self.model(points) if mask is None else self.model(points, mask)
        probabilities = (logits.double() / getattr(self.model, "temperature", 1.0)).softmax(dim=1)
        return logits, probabilities.to(logits.dtype)


def record(model: nn.Module, inputs: int, mask: bool) -> ExportedProgram:
    """Export a copy of a model, on the CPU in evaluation mode, as a program for any number of sets of any size.

    The dynamic sizes are declared (`Dim`), not inferred, so that torch raises an error if the computation of the model
    depends on a size. With inferred sizes, a .pt2 program would silently be restricted to some sizes, and ONNX would
    give wrong results. If `mask` is True, the program has a mask [B, n] as its second input.
    """
    model = WithProbabilities(copy.deepcopy(model).cpu().eval().requires_grad_(False)).eval()
    for module in model.modules():
        if hasattr(module, "allow_single_element"):
            # torch-geometric's batch norm branches on the number of rows. In evaluation mode, both branches are equal.
            setattr(module, "allow_single_element", False)  # noqa: B010 - not an attribute of every module
    points, real = torch.zeros(*EXAMPLE, inputs), torch.ones(EXAMPLE, dtype=torch.bool)
    arguments = (points, real) if mask else (points,)
    with _quiet(), torch.no_grad():
        program = torch.export.export(model, arguments, dynamic_shapes=dynamic_shapes(len(arguments)), strict=False)
    for node in program.graph.nodes:  # stack traces contain local paths and would fill half of a small file
        node.meta.pop("stack_trace", None)
    return program


def dynamic_shapes(count: int) -> tuple[dict[int, Dim], ...]:
    """Return the dynamic sizes of each of the `count` inputs: points, and optionally the mask."""
    return ({0: Dim("batch", min=1), 1: Dim("n", min=1)},) * count


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress torch's log messages and warnings during an export. Errors are still raised."""
    disabled = logging.root.manager.disable
    with warnings.catch_warnings(), redirect_stderr(io.StringIO()):  # after a failure, torch prints the graph
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(disabled)
