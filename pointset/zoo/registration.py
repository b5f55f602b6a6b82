"""User-defined encoders and poolings: `register_pooling` and `register_encoder`."""

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

from torch import nn

from pointset.errors import PointsetError
from pointset.nn import registry
from pointset.nn.registry import Head, Kind, Part, Statistic
from pointset.zoo.names import OPTIONS

T = TypeVar("T", bound=Callable[..., Any])

NAME = re.compile(r"[a-z][a-z0-9_.+]*(<[a-z]+>|\[<[a-z]+>\])?")


def register_pooling(
    name: str,
    *,
    listed: str = "",
    statistic: Statistic = "max",
    head: Head = "hidden",
    packed: bool = False,
    export: bool = False,
    maps: bool = False,
    replace: bool = False,
) -> Callable[[T], T]:
    """Register a user-defined pooling: its name then works behind every encoder, as those of the package do.

        @pointset.register_pooling("top<k>", listed="top4")
        class TopPool(torch.nn.Module):
            '''Mean of the k largest values of each feature.'''

            def __init__(self, k: int) -> None:
                super().__init__()
                self.k = k

            def forward(self, X, mask=None):  # X [B, n, d], mask [B, n] or None: [B, d], or [B, rows, d]
                if mask is not None:
                    X = X.masked_fill(~mask[:, :, None], -torch.inf)
                X = X.topk(min(self.k, X.shape[1]), dim=1).values
                return X.where(X.isfinite(), 0.0).sum(dim=1) / X.isfinite().sum(dim=1).clamp(min=1)

        model = pointset.create_model("isab16-top8", classes=10)

    Its models can be trained, compared (in worker processes too), checked by `check_symmetry`, saved and loaded. A
    pooling made of the maximum, minimum, mean, sum or standard deviation of the rows is best written as a subclass of
    `pointset.nn.StatisticPool`: it is shorter, and it streams. The command line imports the files that the environment
    variable POINTSET_PARTS names.

    Args:
        name: lower case, without hyphens: "mine" gives the models rff-mine, isab16-mine, ... It may have a number as
            its argument: "top<k>", or "top[<k>]" with 1 as the default. The constructor takes that number, and any
            options of a model (`dim`, `heads`, ... or `attention`, the `AttentionOptions` of its blocks); other
            parameters need a default.
        listed: the name in `list_models`; needed if the argument is.
        statistic: what the layers of rffp subtract from each row before this pooling.
        head: "hidden" puts two layers behind the pooling, "linear" one, as behind PMA.
        packed: `forward` also takes rows [N, d] with a `pointset.nn.Packed` in place of the mask; if not, sets are
            padded.
        export: its steps are tensor operations that look at no size.
        maps: it has attention made of this package's blocks.
        replace: take the place of another user-defined pooling of this name.

    Raises:
        PointsetError: the name is taken, a parameter has no value, or `forward` takes no mask.
    """
    known = {"listed": listed, "statistic": statistic, "head": head, "packed": packed, "export": export, "maps": maps}
    return lambda make: _register(make, "pooling", name, replace, known)


def register_encoder(
    name: str,
    *,
    listed: str = "",
    activation: type[nn.Module] = nn.ReLU,
    packed: bool = False,
    export: bool = False,
    maps: bool = False,
    replace: bool = False,
) -> Callable[[T], T]:
    """Register a user-defined encoder: its name then works before every pooling, as in mine-max or mine-pma.

        @pointset.register_encoder("mine")
        class Mine(torch.nn.Module):
            def __init__(self, inputs: int, dim: int) -> None:
                super().__init__()
                self.rows = torch.nn.Linear(inputs, dim)

            def forward(self, X, mask=None):  # X [B, n, inputs], mask [B, n] or None: [B, n, dim]
                return self.rows(X).relu()

    The order of the rows is kept. A function that returns a list of such modules, to be called in turn, works too.

    Args:
        name: as for a pooling; the constructor may also take `inputs`, the numbers per point.
        activation: between the layers of the head.
        listed, packed, export, maps, replace: see `register_pooling`.

    Raises:
        PointsetError: as for a pooling.
    """
    known = {"listed": listed, "activation": activation, "packed": packed, "export": export, "maps": maps}
    return lambda make: _register(make, "encoder", name, replace, known)


def _register(make: T, kind: Kind, name: str, replace: bool, known: dict[str, Any]) -> T:
    part = Part(kind, name, make, source=source_of(make), **known)
    if not NAME.fullmatch(part.name):
        raise PointsetError(f"{part.kind} name {part.name!r} must be lower case, start with a letter, have no hyphen")
    if not part.pattern.fullmatch(part.listed):
        raise PointsetError(f"{part.kind} name {part.name!r} has an argument: give listed, an example of its names")
    _check_call(part)
    if taken := registry.find(part.kind, part.listed):
        _check_same(taken.part, part, replace)
        del registry.PARTS[part.kind, taken.part.name]
    registry.PARTS[part.kind, part.name] = part
    return make


def _check_call(part: Part) -> None:
    known = OPTIONS | {"attention", "pool_attention"} | part.pattern.groupindex.keys()
    known |= {"inputs", "statistic"} if part.kind == "encoder" else set()
    for name, parameter in part.parameters.items():
        has_value = parameter.default is not parameter.empty or parameter.kind.name.startswith("VAR_")
        if not has_value and name not in known:
            raise PointsetError(
                f"{part.kind} {part.name!r} needs {name!r}, which is not an option of a model: give it a default, or "
                f"take some of {', '.join(sorted(known))}"
            )
    forward = getattr(part.make, "forward", None)
    if forward is not None and len(inspect.signature(forward).parameters) < 3:
        raise PointsetError(f"{part.kind} {part.name!r} must have forward(self, X, mask), mask bool [B, n] or None")


def _check_same(taken: Part, part: Part, replace: bool) -> None:
    """Refuse a name that other code has; the same source code is a cell of a notebook that is run again."""
    same_source = taken.source == part.source != "" and taken.make.__qualname__ == part.make.__qualname__
    if taken.make is part.make or same_source or (replace and taken.user_defined):
        return
    remedy = ", or replace=True" if taken.user_defined else ""
    owner = f"{taken.make.__module__}.{taken.make.__qualname__}"
    raise PointsetError(f"{part.kind} name {part.name!r} is taken by {owner}: use another name{remedy}")


def source_of(make: Callable[..., Any]) -> str:
    """Source code of a class or function, of the methods alone for a class in a notebook; empty where there is none."""
    methods = [value for value in vars(make).values() if inspect.isfunction(value)]
    for found in ([make], methods):
        try:
            return "".join(map(inspect.getsource, found))
        except (OSError, TypeError):
            continue
    return ""
