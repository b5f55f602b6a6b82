"""The fields of an attention map that pictures use."""

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class DrawnMap(Protocol):
    """What `pointset.attention_maps` gives, or anything with the same fields, such as weights of another library."""

    layer: str
    kind: Any
    weights: Any
    points_are: Any
