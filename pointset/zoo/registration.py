"""User-defined parts: how they are registered, tried on small sets when a model is built, and carried to processes."""

import inspect
import itertools
import pickle
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from hashlib import sha256
from types import FunctionType
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from pointset.configuration import check
from pointset.errors import REPEATED, PointsetError, described, one_line, place_in_own_code, quoted
from pointset.nn import registry
from pointset.nn.layers import in_evaluation_mode
from pointset.nn.parts import Encoder, Pooling
from pointset.nn.registry import Entry, Kind
from pointset.nn.simplex import WEIGHTS
from pointset.nn.weights import takes_mask
from pointset.zoo.names import parse_name, used_options
from pointset.zoo.options import ModelOptions

T = TypeVar("T", bound=Callable[..., Any])

PART_NAME = re.compile(r"[a-z][a-z0-9_.]*(<[a-z]+>|\[<[a-z]+>\])?")
BASES: dict[str, type] = {"encoder": Encoder, "pooling": Pooling}
_UNPICKLED: dict[tuple[Kind, str], Entry] = {}
SETS, SIZES = 2, (3, 4)
"""Several sets of two sizes, so that neither a lost axis nor an output that grows with the set passes."""


def register_pooling(name: str, *, listed: str = "") -> Callable[[T], T]:
    """Register a user-defined pooling: its name then works with every encoder, like those of the package.

    A later part of the same name takes its place, as when a cell of a notebook is run again.

    A pooling made of the maximum, minimum, mean, sum or standard deviation of the rows is best written as a subclass of
    `pointset.nn.StatisticPool`: it is shorter. The command line imports the files that the environment variable
    POINTSET_PARTS names.

    Args:
        name: lower case, without hyphens or +: "mine" gives the models rff-mine, isab16-mine, isab16-mine+max, ... It
            may have a number as its argument: "low<k>", or "low[<k>]" with 1 as the default.
        listed: the name in `list_models`; needed if the argument is.

    Returns:
        A decorator, which gives the class back: a subclass of `pointset.nn.Pooling`. The constructor gets the number in
        the name; a class that needs more has a `make`, which gets the options of the model and the width of the rows.
        What it can do is said by class attributes, such as `export = True`; see `pointset.nn.Pooling`.

    Raises:
        PointsetError: the name is taken, or the class is not a pooling.

    Example:
        >>> @pointset.register_pooling("low<k>", listed="low4")
        ... class LowPool(pointset.nn.Pooling):
        ...     '''Mean of the k smallest values of each feature.'''
        ...
        ...     def __init__(self, k):
        ...         super().__init__()
        ...         self.k = k
        ...
        ...     def forward(self, X, mask=None):  # X [B, n, d], mask [B, n] or None: [B, d], or [B, rows, d]
        ...         if mask is not None:
        ...             X = X.masked_fill(~mask[:, :, None], torch.inf)
        ...         X = X.topk(min(self.k, X.shape[1]), dim=1, largest=False).values
        ...         return X.where(X.isfinite(), 0.0).sum(dim=1) / X.isfinite().sum(dim=1).clamp(min=1)
        >>> model = pointset.create_model("isab16-low8", classes=10, dim=16)
        >>> pointset.check_symmetry(model).worst < 1e-4
        True
    """
    return lambda make: _register(make, "pooling", name, listed)


def register_encoder(name: str, *, listed: str = "") -> Callable[[T], T]:
    """Register a user-defined encoder: its name then works with every pooling, as in mine-max or mine-pma.

    Args:
        name, listed: see `register_pooling`.

    Returns:
        A decorator, which gives the class back: a subclass of `pointset.nn.Encoder`, whose constructor gets the numbers
        per point, the width of its rows and the number in the name; or that has a `make`.

    Raises:
        PointsetError: as for a pooling.

    Example:
        >>> @pointset.register_encoder("mine")
        ... class Mine(pointset.nn.Encoder):
        ...     def __init__(self, inputs, dim):
        ...         super().__init__()
        ...         self.rows = torch.nn.Linear(inputs, dim)
        ...
        ...     def forward(self, X, mask=None):  # X [B, n, inputs], mask [B, n] or None: [B, n, dim]
        ...         return self.rows(X).relu()
        >>> pointset.create_model("mine-max", classes=2, dim=16)(torch.rand(4, 9, 3)).shape
        torch.Size([4, 2])
    """
    return lambda make: _register(make, "encoder", name, listed)


def register_weights(name: str, *, export: bool = False) -> Callable[[T], T]:
    """Register a user-defined weights function: its name then works as `weights` and `pool_weights` of every model.

    See `pointset.nn.weights` for what it gets and what is asked of it. Without a name any function works too, as
    `weights=torch.sigmoid`, but in models that are not saved.

    Args:
        name: lower case, without hyphens.
        export: it takes a mask, and its steps are tensor operations that do not depend on sizes.

    Returns:
        A decorator, which gives the function back.

    Raises:
        PointsetError: the name is taken, or it is not a function of logits; a class must be of a module that is built
            without arguments, once for each block, and may be trained.

    Example:
        >>> @pointset.register_weights("squared")
        ... def squared(logits, mask=None):  # [B, h, n, m], bool [B, 1, 1, m] or None: [B, h, n, m]
        ...     return logits.relu().square()
        >>> sigmoid = pointset.register_weights("sigmoid")(torch.sigmoid)
        >>> model = pointset.create_model("isab16-pma", classes=2, dim=16, weights="squared", pool_weights="sigmoid")
        >>> model(torch.rand(4, 9, 3)).shape
        torch.Size([4, 2])
    """
    return lambda make: _register(make, "weights", name, "", export)


def _register(make: T, kind: Kind, name: str, listed: str, export: bool = False) -> T:
    check("name", name, str)
    entry = Entry(kind, name, make, listed, export, source_of(make) or _called(make) if callable(make) else "")
    if not PART_NAME.fullmatch(name):
        raise PointsetError(
            f"{kind} name {quoted(name)} must be lower case, start with a letter, have no hyphen and no +"
        )
    if not entry.pattern.fullmatch(entry.listed):
        raise PointsetError(f"{kind} name {name!r} has an argument: give listed, an example of its names")
    if kind == "weights":
        _check_function(entry)
    elif not (isinstance(make, type) and issubclass(make, BASES[kind])):
        base = f"pointset.nn.{BASES[kind].__name__}"
        raise PointsetError(f"{kind} {quoted(name)} must be a subclass of {base}, got {quoted(make)}")
    if taken := registry.find_part(kind, entry.listed):
        if not taken.entry.user_defined:
            raise PointsetError(f"{kind} name {name!r} is taken by {_called(taken.entry.make)}: use another name")
        del registry.REGISTERED[kind, taken.entry.name]
    return registry.enter(entry)


def _check_function(part: Entry) -> None:
    if not callable(part.make):
        raise PointsetError(f"weights {quoted(part.name)} must be a class or a function, got {quoted(part.make)}")
    if part.name in WEIGHTS:
        raise PointsetError(f"weights name {part.name!r} is taken by pointset: use another name")
    if "<" in part.name:
        raise PointsetError(f"weights name {part.name!r} has an argument, which no weights function takes")
    if inspect.isclass(part.make) and not issubclass(part.make, nn.Module):
        raise PointsetError(f"weights {part.name!r} must be a function or a torch.nn.Module, got {part.make}")
    if part.export and not takes_mask(part.make):
        raise PointsetError(f"weights {part.name!r} must take a mask to be exported: give it a parameter mask")


def _called(make: Callable[..., Any]) -> str:
    return f"{make.__module__}.{getattr(make, '__qualname__', type(make).__qualname__)}"


def source_of(make: Callable[..., Any]) -> str:
    """Source code of a class or function, and of those of its module that it names and that were defined before it."""
    functions = filter(inspect.isfunction, [make, *getattr(make, "__dict__", {}).values()])
    known = next((function.__globals__ for function in functions), {})
    found, own = [make], getattr(make, "__name__", "")
    for one in found:  # which grows
        words = {*re.findall(r"\w+", _own_source(one))} - {own}  # not what had its name before
        near = [known[word] for word in sorted(words & known.keys()) if isinstance(known[word], type | FunctionType)]
        found += [each for each in near if each.__module__ == make.__module__ and each not in found]
    return "".join(map(_own_source, found))


def _own_source(make: Callable[..., Any]) -> str:
    """Source code of a class or function, of the methods alone for a class in a notebook; empty where there is none."""
    methods = [value for value in getattr(make, "__dict__", {}).values() if inspect.isfunction(value)]
    with suppress(OSError, TypeError):
        # Python 3.13 takes the lines of a cell's class from the main program.
        if all(inspect.getfile(make) == inspect.getfile(method) for method in methods):
            return inspect.getsource(make)
    with suppress(OSError, TypeError):
        return "".join(map(inspect.getsource, methods))
    return ""


def user_parts(name: str, options: ModelOptions, used: Collection[str] = ("weights", "pool_weights")) -> list[Entry]:
    """The user-defined parts of a model: its own, and the weights functions that these options of it name."""
    lists = [getattr(options, option) or () for option in ("weights", "pool_weights") if option in used]
    names = dict.fromkeys(name for names in lists for name in names)
    functions = [registry.REGISTERED["weights", name] for name in names if ("weights", name) in registry.REGISTERED]
    parts = [member.entry for choice in parse_name(name) for member in choice.members]
    return [part for part in parts if part.user_defined] + functions


def source_digests(name: str, options: ModelOptions | None = None) -> dict[str, str]:
    """A digest of the source code of each user-defined part that a model uses: other code makes another run."""
    parts = user_parts(name, options or ModelOptions(), used_options(name))
    return {f"{part.kind} {part.name}": sha256(part.source.encode()).hexdigest()[:16] for part in parts}


def pickled_parts(name: str, options: ModelOptions | None = None) -> list[bytes]:
    """The user-defined parts of a model, with the code of the modules that define them, for `unpickle_parts`."""
    return [_pickled(part) for part in user_parts(name, options or ModelOptions())]


def unpickle_parts(parts: Iterable[bytes]) -> None:
    """Register parts that another process has pickled, unless they were registered here with the same source."""
    for content in parts:
        try:
            part: Entry = pickle.loads(content)
        except Exception as error:  # whatever its modules raise when they are imported
            raise PointsetError(f"a part cannot be rebuilt in this process: {error}") from error
        known = registry.REGISTERED.get(key := (part.kind, part.name))
        # What an equal source calls may have changed since another comparison sent it to this worker.
        if known is None or known.source != part.source or known is _UNPICKLED.get(key):
            registry.enter(part)
            _UNPICKLED[key] = part


def _pickled(part: Entry) -> bytes:
    """A part as bytes; every process has torch."""
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


def check_part(part: Entry, module: nn.Module, width: int, dim: int) -> None:
    """Try an encoder or a pooling on sets of each size, without a mask and with one.

    Raises:
        PointsetError: an encoder does not give rows [B, n, dim] of rows [B, n, width], or a pooling [B, d] or
            [B, rows, d].
    """
    generator, called = torch.Generator().manual_seed(0), f"{part.kind} {part.name!r}"
    pooled, trained = set[torch.Size](), part.kind == "pooling"  # what is before a pooling is trained
    for size, padded in itertools.product(SIZES, (0, 1)):
        # Times 1, so that it is no leaf: torch itself refuses to change one in place, in other words than below.
        X = torch.randn(SETS, size, width, generator=generator).requires_grad_(trained) * 1
        mask = torch.arange(size).expand(SETS, size) < size - 1 if padded else None
        kept = X.clone()
        try:
            with torch.set_grad_enabled(trained), in_evaluation_mode(module):
                rows = module(X, mask)
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
        if part.kind == "encoder":
            wanted, fits = f"[B, n, dim], with dim={dim}", rows.shape == (SETS, size, dim)
        else:
            pooled.add(rows.shape)
            wanted = "[B, d] or [B, rows, d], the same d and rows for every n"
            fits = rows.dim() in (2, 3) and len(rows) == SETS and len(pooled) == 1
        if not fits:
            raise PointsetError(f"{called} must give {wanted}, got {list(rows.shape)} for {list(X.shape)}")
    if trained and (not rows.requires_grad or torch.autograd.grad(rows.sum(), X, allow_unused=True)[0] is None):
        text = "passes no gradient on to X, so that an encoder before it is not trained: use functions of torch alone"
        warnings.warn(f"{called} {text}, without detach, numpy or argmax", UserWarning, stacklevel=2)
