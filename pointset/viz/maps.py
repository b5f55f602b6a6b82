"""What a picture needs of an attention map."""

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class DrawnMap(Protocol):
    """What `pointset.attention_maps` gives, or anything with the same fields, such as weights of another library."""

    layer: str
    kind: Any
    weights: Any
    points_are: Any
