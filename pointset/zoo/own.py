"""Encoders and poolings of one's own: a name for them, and their way into other processes."""

import inspect
import pickle
import re
import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from hashlib import sha256
from typing import Any, Literal, TypeVar, Unpack

from torch import nn

from pointset.errors import PointsetError
from pointset.nn import registry
from pointset.nn.registry import Abilities, Kind, Part
from pointset.zoo.names import OPTIONS, parse_name

T = TypeVar("T", bound=Callable[..., Any])

NAME = re.compile(r"[a-z][a-z0-9_.+]*(<[a-z]+>|\[<[a-z]+>\])?")
GIVEN: dict[Kind, set[str]] = {"encoder": {"inputs", "statistic"}, "pooling": set()}
"""What a part may ask for beside options, attention and the argument of its name."""


def register_pooling(
    name: str,
    *,
    replace: bool = False,
    statistic: Literal["max", "mean"] = "max",
    head: Literal["hidden", "linear"] = "hidden",
    **abilities: Unpack[Abilities],
) -> Callable[[T], T]:
    """Give a pooling of your own a name, with which it stands behind every encoder.

        import torch
        from torch import nn
        import pointset

        @pointset.register_pooling("top<k>", listed="top4")
        class TopPool(nn.Module):
            '''Mean of the k largest values of each feature.'''

            def __init__(self, k: int) -> None:
                super().__init__()
                self.k = k

            def forward(self, X, mask=None):  # X [B, n, d], mask [B, n]: [B, d] or [B, rows, d]
                if mask is not None:
                    X = X.masked_fill(~mask[:, :, None], -torch.inf)
                X = X.topk(min(self.k, X.shape[1]), dim=1).values
                return X.where(X.isfinite(), 0.0).sum(dim=1) / X.isfinite().sum(dim=1).clamp(min=1)

        model = pointset.create_model("isab16-top8", classes=10)

    Its models train, are compared (in worker processes too), tested by `check_symmetry`, saved and loaded as those of
    the package are. A function of the largest, smallest or mean value, the sum or the standard deviation of the rows
    is shorter as a subclass of `pointset.nn.StatisticPool`, and streams. The command line loads the files that the
    environment variable POINTSET_PARTS names.

    Args:
        name: lower case, without hyphens: "mine" makes the models rff-mine, isab16-mine, ... An argument in it stands
            for a number: "top<k>", or "top[<k>]", where none means 1. The constructor takes it, and options of a model
            (`dim`, `heads`, ... or `attention`, the `AttentionOptions` of its blocks); other parameters need a default.
        replace: take the place of another class of your own that has this name.
        statistic: what the layers of rffp subtract from each row before this pooling.
        head: "hidden" has two layers behind the pooling, "linear" one, as PMA has.
        abilities: `listed`, the name in `list_models`, if the name has an argument; `packed`, whether it takes a
            `pointset.nn.Packed` in place of the mask (if not, sets are padded for it); `export`, whether its steps are
            tensor operations that look at no size; `maps`, whether it has attention made of this package's blocks.

    Raises:
        PointsetError: the name is taken by other code, or a parameter has no value, or `forward` takes no mask.
    """
    return lambda make: _register(make, replace, kind="pooling", name=name, statistic=statistic, head=head, **abilities)


def register_encoder(
    name: str, *, replace: bool = False, activation: type[nn.Module] = nn.ReLU, **abilities: Unpack[Abilities]
) -> Callable[[T], T]:
    """Give an encoder of your own a name, with which it stands before every pooling: "mine" makes mine-max, mine-pma.

    What is decorated is a class of modules called as `module(X, mask)`, or a function that returns a list of them, to
    be called in turn: from X [B, n, inputs] and a mask [B, n], True at real rows, or None, to rows [B, n, dim], each
    where it stood. Its parameters are those that a pooling may have (see `register_pooling`) and `inputs`, the numbers
    per point.

    Args:
        name: see `register_pooling`.
        replace: see `register_pooling`.
        activation: between the layers of the head.
        abilities: see `register_pooling`.

    Raises:
        PointsetError: see `register_pooling`.
    """
    return lambda make: _register(make, replace, kind="encoder", name=name, activation=activation, **abilities)


def _register(make: T, replace: bool, *, kind: Kind, name: str, **known: Any) -> T:
    if not NAME.fullmatch(name):
        raise PointsetError(f"{kind} name {name!r} must be lower case, begin with a letter and have no hyphen")
    part = registry.part(make, kind=kind, name=name, source=source_of(make), **known)
    if not part.pattern.fullmatch(part.listed):
        raise PointsetError(f"{kind} name {name!r} has an argument: give listed, an example of its names")
    _check_call(part)
    if taken := registry.find(kind, part.listed):
        _check_same(taken.part, part, replace)
        del registry.PARTS[kind, taken.part.name]
    registry.enter(part)
    return make


def _check_call(part: Part) -> None:
    known = OPTIONS | {"attention", "pool_attention"} | GIVEN[part.kind] | part.pattern.groupindex.keys()
    for name, parameter in part.parameters.items():
        needed = parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL
        if needed and parameter.kind is not parameter.VAR_KEYWORD and name not in known:
            raise PointsetError(
                f"{part.kind} {part.name!r} needs {name!r}, which is not an option of a model: give it a default, or "
                f"take some of {', '.join(sorted(known))}"
            )
    forward = getattr(part.make, "forward", None)
    if forward is not None and len(inspect.signature(forward).parameters) < 3:
        raise PointsetError(f"{part.kind} {part.name!r} must have forward(self, X, mask), mask bool [B, n] or None")


def _check_same(taken: Part, part: Part, replace: bool) -> None:
    """Refuse a name that other code has; the same text is the cell of a notebook that is run again."""
    same_text = taken.source == part.source != "" and taken.make.__qualname__ == part.make.__qualname__
    same = taken.make is part.make or same_text
    if not same and (taken.own or not replace):
        remedy = "" if taken.own else ", or replace=True"
        raise PointsetError(f"{part.kind} name {part.name!r} is taken by {taken.where}: use another name{remedy}")


def source_of(make: Callable[..., Any]) -> str:
    """The text of a class or function; in a notebook, of the functions of a class; empty if there is none."""
    for found in ([make], [value for value in vars(make).values() if inspect.isfunction(value)]):
        try:
            if text := "".join(map(inspect.getsource, found)):
                return text
        except (OSError, TypeError):
            continue
    return ""


def own_parts(name: str) -> list[Part]:
    """The parts of a model that are not the package's."""
    return [choice.part for choice in parse_name(name) if not choice.part.own]


def own_digests(name: str) -> dict[str, str]:
    """A digest of the text of each of these parts: runs with other code are other runs."""
    return {f"{part.kind} {part.name}": sha256(part.source.encode()).hexdigest()[:16] for part in own_parts(name)}


class CarriedName(str):
    """The name of a model that enters its parts into the registry of the process in which it is unpickled."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Callable[..., str], tuple[Any, ...]]:
        return arrive, (str(self), [pack(part) for part in own_parts(self)])


def carried(name: str) -> str:
    """The name, able to travel to a worker process with the parts of one's own that it names.

    Raises:
        PointsetError: one of them cannot be copied into another process.
    """
    for part in own_parts(name):
        pack(part)
    return CarriedName(name) if own_parts(name) else name


def arrive(name: str, packed: Iterable[bytes]) -> str:
    """Enter parts that came with the name of a model, and return the name.

    Raises:
        PointsetError: what a part is made of is not there in this process.
    """
    for content in packed:
        try:
            registry.enter(pickle.loads(content))
        except Exception as error:  # whatever its modules raise when they are imported
            raise PointsetError(f"{name} has a part that cannot be rebuilt in this process: {error}") from error
    return name


def pack(part: Part) -> bytes:
    """A part as bytes that need none of the files that it was written in."""
    import cloudpickle

    module = sys.modules.get(part.make.__module__)
    with ExitStack() as stack:
        if module is not None and module.__name__ != "__main__":  # that of __main__ is copied anyhow
            cloudpickle.register_pickle_by_value(module)
            stack.callback(cloudpickle.unregister_pickle_by_value, module)
        try:
            return cloudpickle.dumps(part)
        except Exception as error:  # pickling anything may raise anything
            raise PointsetError(
                f"{part.kind} {part.name!r} cannot be copied into worker processes ({error}): move it to a file that "
                "has nothing else"
            ) from error
