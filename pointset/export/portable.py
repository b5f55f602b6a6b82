"""Makes a copy of a model that torch.export can record: one graph for sets of any size.

Attention, scores, norms and context models detect that they are being exported, and use the same operations for all
sizes.
"""

import copy

from torch import nn


def portable(model: nn.Module) -> nn.Module:
    """A copy of a model for export: on the CPU, in evaluation mode."""
    copied = copy.deepcopy(model).cpu().eval().requires_grad_(False)
    for module in copied.modules():
        if hasattr(module, "allow_single_element"):
            # torch-geometric's batch norm branches on the number of rows; in evaluation mode both branches are equal.
            setattr(module, "allow_single_element", False)  # noqa: B010 - not an attribute of every module
    return copied
