"""User-defined parts: tried on small sets when a model is built, and taken along into other processes."""

import itertools
import pickle
import sys
from collections.abc import Callable, Collection, Sequence
from hashlib import sha256
from typing import Any

import torch
from torch import Tensor, nn

from pointset.errors import REPEATED, PointsetError, described, one_line, place_in_own_code
from pointset.nn import registry
from pointset.nn.layers import in_evaluation_mode
from pointset.nn.registry import Part
from pointset.zoo.names import parse_name, used_options
from pointset.zoo.options import ModelOptions

SETS, SIZES = 2, (3, 4)
"""Several sets of two sizes, so that neither a lost axis nor an output that grows with the set passes."""


def user_parts(name: str, options: ModelOptions, used: Collection[str] = ("weights", "pool_weights")) -> list[Part]:
    """The user-defined parts of a model: its own, and the weights functions that these options of it name."""
    lists = [getattr(options, option) or () for option in ("weights", "pool_weights") if option in used]
    names = dict.fromkeys(name for names in lists for name in names)
    functions = [registry.PARTS["weights", name] for name in names if ("weights", name) in registry.PARTS]
    parts = [member.part for choice in parse_name(name) for member in choice.members]
    return [part for part in parts if part.user_defined] + functions


def source_digests(name: str, options: ModelOptions | None = None) -> dict[str, str]:
    """A digest of the source code of each user-defined part that a model uses: other code makes another run."""
    parts = user_parts(name, options or ModelOptions(), used_options(name))
    return {f"{part.kind} {part.name}": sha256(part.source.encode()).hexdigest()[:16] for part in parts}


class CarriedName(str):
    """The name of a model that registers its parts in the process in which it is unpickled."""

    __slots__ = ("packed",)
    packed: list[bytes]

    def __reduce__(self) -> tuple[Callable[..., str], tuple[Any, ...]]:
        return arrive, (str(self), self.packed)


def carried(name: str, options: ModelOptions | None = None) -> str:
    """The name of a model with these options, with its user-defined parts attached if it has any."""
    parts = user_parts(name, options or ModelOptions())
    if not parts:
        return name
    carried = CarriedName(name)
    carried.packed = [_pack(part) for part in parts]
    return carried


def arrive(name: str, packed: list[bytes]) -> str:
    """Register the parts that came with the name of a model, and return the name."""
    for content in packed:
        try:
            registry.enter(pickle.loads(content))
        except Exception as error:  # whatever its modules raise when they are imported
            raise PointsetError(f"{name} has a part that cannot be rebuilt in this process: {error}") from error
    return name


def _pack(part: Part) -> bytes:
    """A part as bytes, with the code of the module that defines it; every process has torch."""
    import cloudpickle

    module = part.make.__module__ or "torch"
    if module.partition(".")[0] == "torch":
        return cloudpickle.dumps(part)
    cloudpickle.register_pickle_by_value(sys.modules[module])
    try:
        return cloudpickle.dumps(part)
    except Exception as error:  # pickling anything may raise anything
        raise PointsetError(
            f"{part.kind} {part.name!r} cannot be copied into worker processes ({error}): move it to a file that "
            "has nothing else"
        ) from error
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[module])


def check_encoder(part: Part, modules: Sequence[nn.Module], inputs: int, dim: int) -> None:
    """Raise a PointsetError unless modules called in turn give rows [B, n, dim] of points [B, n, inputs]."""
    _try(part, modules, inputs, f"[B, n, dim], with dim={dim}", lambda X, rows: rows.shape == (*X.shape[:2], dim))


def check_pooling(part: Part, pool: nn.Module, width: int) -> None:
    """Raise a PointsetError unless a pooling gives [B, d] or [B, rows, d] of rows [B, n, width]."""
    shapes = set()

    def fits(X: Tensor, pooled: Tensor) -> bool:
        shapes.add(pooled.shape[1:])
        return pooled.dim() in (2, 3) and len(pooled) == SETS and len(shapes) == 1

    _try(part, [pool], width, "[B, d] or [B, rows, d], the same d and rows for every n", fits)


def _try(
    part: Part, modules: Sequence[nn.Module], width: int, wanted: str, fits: Callable[[Tensor, Tensor], bool]
) -> None:
    """Try modules in turn on sets of each size, without a mask and with one."""
    generator, called = torch.Generator().manual_seed(0), f"{part.kind} {part.name!r}"
    for size, padded in itertools.product(SIZES, (0, 1)):
        X = torch.randn(SETS, size, width, generator=generator)
        mask = torch.arange(size).expand(SETS, size) < size - 1 if padded else None
        rows, kept = X, X.clone()
        for module in modules:
            try:
                with torch.no_grad(), in_evaluation_mode(module):
                    rows = module(rows, mask)
            except Exception as error:  # whatever a user's code raises
                message = one_line(error, REPEATED) or "no message"
                raise PointsetError(
                    f"{called} fails on X {list(X.shape)} {'with' if padded else 'without'} a mask: "
                    f"{type(error).__name__}: {message}{place_in_own_code(error)}"
                ) from error
            if not isinstance(rows, Tensor) or not rows.is_floating_point():
                raise PointsetError(f"{called} must give a tensor of floating numbers, got {described(rows)}")
        if not X.equal(kept):  # other poolings of the model, and the caller, have the same tensor
            raise PointsetError(f"{called} must not change X in place: let forward work on a copy, as in X = X + 1")
        if not fits(X, rows):
            raise PointsetError(f"{called} must give {wanted}, got {list(rows.shape)} for {list(X.shape)}")
