"""Model names that take their user-defined parts along into other processes."""

import pickle
import sys
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from pointset.errors import PointsetError
from pointset.nn import registry
from pointset.nn.registry import Part
from pointset.zoo.names import parse_name


def user_parts(name: str) -> list[Part]:
    """The user-defined parts of a model."""
    return [choice.part for choice in parse_name(name) if choice.part.user_defined]


def source_digests(name: str) -> dict[str, str]:
    """A digest of the source code of each user-defined part: other code makes another run."""
    return {f"{part.kind} {part.name}": sha256(part.source.encode()).hexdigest()[:16] for part in user_parts(name)}


class CarriedName(str):
    """The name of a model that registers its parts in the process in which it is unpickled."""

    __slots__ = ("packed",)
    packed: list[bytes]

    def __reduce__(self) -> tuple[Callable[..., str], tuple[Any, ...]]:
        return arrive, (str(self), self.packed)


def carried(name: str) -> str:
    """The name, with its user-defined parts attached if it has any.

    Raises:
        PointsetError: a part cannot be copied into another process.
    """
    packed = [pack(part) for part in user_parts(name)]
    if not packed:
        return name
    carried = CarriedName(name)
    carried.packed = packed
    return carried


def arrive(name: str, packed: list[bytes]) -> str:
    """Register the parts that came with the name of a model, and return the name.

    Raises:
        PointsetError: a part needs something that this process does not have.
    """
    for content in packed:
        try:
            part = pickle.loads(content)
        except Exception as error:  # whatever its modules raise when they are imported
            raise PointsetError(f"{name} has a part that cannot be rebuilt in this process: {error}") from error
        registry.PARTS[part.kind, part.name] = part
    return name


def pack(part: Part) -> bytes:
    """A part as bytes, with the code of the module that defines it."""
    import cloudpickle

    module = sys.modules[part.make.__module__]
    cloudpickle.register_pickle_by_value(module)
    try:
        return cloudpickle.dumps(part)
    except Exception as error:  # pickling anything may raise anything
        raise PointsetError(
            f"{part.kind} {part.name!r} cannot be copied into worker processes ({error}): move it to a file that "
            "has nothing else"
        ) from error
    finally:
        cloudpickle.unregister_pickle_by_value(module)
