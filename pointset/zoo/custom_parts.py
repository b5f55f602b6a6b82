"""Model names that take their user-defined parts along into other processes."""

import pickle
import sys
from collections.abc import Callable, Collection
from hashlib import sha256
from typing import Any

from pointset.errors import PointsetError
from pointset.nn import registry
from pointset.nn.registry import Part
from pointset.zoo.names import parse_name, used_options
from pointset.zoo.options import ModelOptions

USUAL = ModelOptions()


def user_parts(name: str, options: ModelOptions, used: Collection[str] = ("weights", "pool_weights")) -> list[Part]:
    """The user-defined parts of a model: its own, and the weights functions that these options of it name."""
    lists = [getattr(options, option) or () for option in ("weights", "pool_weights") if option in used]
    names = dict.fromkeys(name for one in lists for name in one)
    functions = [registry.PARTS["weights", name] for name in names if ("weights", name) in registry.PARTS]
    parts = [member.part for choice in parse_name(name) for member in choice.members]
    return [part for part in parts if part.user_defined] + functions


def source_digests(name: str, options: ModelOptions = USUAL) -> dict[str, str]:
    """A digest of the source code of each user-defined part that a model uses: other code makes another run."""
    parts = user_parts(name, options, used_options(name))
    return {f"{part.kind} {part.name}": sha256(part.source.encode()).hexdigest()[:16] for part in parts}


class CarriedName(str):
    """The name of a model that registers its parts in the process in which it is unpickled."""

    __slots__ = ("packed",)
    packed: list[bytes]

    def __reduce__(self) -> tuple[Callable[..., str], tuple[Any, ...]]:
        return arrive, (str(self), self.packed)


def carried(name: str, options: ModelOptions = USUAL) -> str:
    """The name of a model with these options, with its user-defined parts attached if it has any.

    Raises:
        PointsetError: a part cannot be copied into another process.
    """
    packed = [pack(part) for part in user_parts(name, options)]
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
        registry.enter(part)
    return name


def pack(part: Part) -> bytes:
    """A part as bytes, with the code of the module that defines it."""
    import cloudpickle

    if is_torchs(part):
        return cloudpickle.dumps(part)
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


def is_torchs(part: Part) -> bool:
    """True for a function of torch, which every process has."""
    return (part.make.__module__ or "torch").partition(".")[0] == "torch"
