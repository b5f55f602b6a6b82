"""The interface of attention maps that the drawing functions use."""

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class DrawnMap(Protocol):
    """An `AttentionMap`, or any object with the same fields, for example with weights of another library."""

    layer: str
    kind: Any
    weights: Any
    points_are: Any
