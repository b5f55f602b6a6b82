"""User-defined encoders, poolings and weights functions: registered by name, and copied to worker processes."""

import inspect
import linecache
import pickle
import re
import sys
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from hashlib import sha256
from typing import Any, TypeVar

from torch import nn

from pointset.configuration import as_functions
from pointset.errors import PointsetError, quoted
from pointset.nn import registry
from pointset.nn.modules import Encoder, Pooling
from pointset.nn.registry import Entry, Kind, without_argument
from pointset.nn.simplex import WEIGHTS
from pointset.zoo.names import parse_name, used_options
from pointset.zoo.options import ModelOptions

T = TypeVar("T", bound=Callable[..., Any])

NAME = re.compile(r"[a-z][a-z0-9_.]*(<[a-z]+>|\[<[a-z]+>\])?")
BASES: dict[str, type] = {"encoder": Encoder, "pooling": Pooling}


def register_pooling(name: str, *, listed: str = "") -> Callable[[T], T]:
    """Register a user-defined pooling. Its name can then be combined with every encoder, as for other poolings.

    A class can be registered again, for example by running a notebook cell again: the new class replaces the old one.
    Use `check_symmetry` to test a pooling. The command line imports the files in the environment variable
    POINTSET_MODULES.

    Args:
        name: a name in lower case without hyphens or +: "mine" gives the models rff-mine, isab16-mine, isab16-mine+max,
            ... The name may have a number as argument: "low<k>", or "low[<k>]" if 1 is the default.
        listed: the name in `list_models`; required if the number is required.

    Returns:
        A decorator that returns the decorated subclass of `pointset.nn.Pooling`. The constructor is called with the
        number in the name. If a class needs more arguments, give it a classmethod `build(options, width)`, called with
        the options of the model and the width of the encoded vectors. Class attributes such as `export = True` describe
        what the pooling supports; see `pointset.nn.Pooling`.

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
    return _decorator("pooling", name, listed)


def register_encoder(name: str, *, listed: str = "") -> Callable[[T], T]:
    """Register a user-defined encoder. Its name can then be combined with every pooling, as in mine-max or mine-pma.

    Args:
        name, listed: see `register_pooling`.

    Returns:
        A decorator that returns the decorated subclass of `pointset.nn.Encoder`. The constructor is called with the
        number of inputs per point, the width of the encoded vectors, and the number in the name. If a class needs more
        arguments, give it a classmethod `build(options, inputs, pooling)`.

    Raises:
        PointsetError: the name is taken, or the class is not an encoder.

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
    return _decorator("encoder", name, listed)


def register_weights(name: str, *, export: bool = False) -> Callable[[T], T]:
    """Register a user-defined weights function. Its name is then allowed for `weights` and `pool_weights`.

    The function is called as f(logits, mask); see `pointset.nn.Weights`. A function can also be passed without a name,
    as in `weights=f`, but such a model cannot be saved.

    Args:
        name: a name in lower case, without hyphens.
        export: True if the function consists of tensor operations that do not depend on sizes.

    Returns:
        A decorator that returns the decorated function or class of torch modules. A class is built without arguments
        once per block, and may have parameters.

    Raises:
        PointsetError: the name is taken, or the decorated object is neither a function nor a class of torch modules.

    Example:
        >>> @pointset.register_weights("squared")
        ... def squared(logits, mask):  # [B, h, n, m], bool [B, 1, 1, m] or None: [B, h, n, m]
        ...     return logits.relu().square()
        >>> model = pointset.create_model("isab16-pma", classes=2, dim=16, weights="squared")
        >>> model(torch.rand(4, 9, 3)).shape
        torch.Size([4, 2])
    """
    return _decorator("weights", name, "", export)


def _decorator(kind: Kind, name: str, listed: str, export: bool = False) -> Callable[[T], T]:
    if not isinstance(name, str):
        call = f'@pointset.register_{kind}("mine")'
        raise PointsetError(f"register_{kind} needs a name: write {call} above the definition, got {quoted(name)}")
    return lambda module: _register(module, kind, name, listed, export)


def _register(module: T, kind: Kind, name: str, listed: str, export: bool = False) -> T:
    if not NAME.fullmatch(name):
        raise PointsetError(
            f"{kind} name {quoted(name)} must be lower case, start with a letter, have no hyphen and no +"
        )
    digest = digest_of_file(module) if callable(module) else ""
    entry = Entry(kind, name, module, listed or without_argument(name), export, digest)
    if not entry.pattern.fullmatch(entry.listed):
        raise PointsetError(f"{kind} name {name!r} has an argument: give listed, an example of a name")
    if kind == "weights":
        if name in WEIGHTS:
            raise PointsetError(f"weights name {name!r} is taken by pointset: use another name")
        if not callable(module) or (inspect.isclass(module) and not issubclass(module, nn.Module)):
            kinds = "a function or a class of torch modules"
            raise PointsetError(f"weights {name!r} must be {kinds}, got {quoted(module)}")
    elif not (isinstance(module, type) and issubclass(module, BASES[kind])):
        base = f"pointset.nn.{BASES[kind].__name__}"
        raise PointsetError(f"{kind} {quoted(name)} must be a subclass of {base}, got {quoted(module)}")
    if taken := registry.find_builder(kind, entry.listed):
        if not taken.entry.user_defined or _path_of(taken.entry.module) != _path_of(module):
            raise PointsetError(f"{kind} name {name!r} is taken by {_path_of(taken.entry.module)}: use another name")
        del registry.REGISTERED[kind, taken.entry.name]
    return registry.enter(entry)


def _path_of(module: Callable[..., Any]) -> str:
    return f"{module.__module__}.{getattr(module, '__qualname__', type(module).__qualname__)}"


def digest_of_file(module: Callable[..., Any]) -> str:
    """Return a digest of the file or notebook cell that defines a class or function, or else of its name."""
    functions = filter(inspect.isfunction, [module, *getattr(module, "__dict__", {}).values()])
    file = next((function.__code__.co_filename for function in functions), "")
    linecache.checkcache(file)
    text = "".join(linecache.getlines(file)) or _path_of(module)
    return sha256(text.encode()).hexdigest()[:16]


def user_defined(name: str, options: ModelOptions, used: Collection[str] = ("weights", "pool_weights")) -> list[Entry]:
    """Return the user-defined encoders, poolings and weights functions of a model with these options."""
    given = {"weights": options.attention.weights, "pool_weights": options.pool_weights or ()}
    names = dict.fromkeys(name for option in given if option in used for name in as_functions(given[option]))
    keys: list[tuple[Kind, Any]] = [("weights", name) for name in names]
    entries = [member.entry for builder in parse_name(name) for member in builder.members]
    functions = [registry.REGISTERED[key] for key in keys if key in registry.REGISTERED]
    return [entry for entry in entries if entry.user_defined] + functions


def source_digests(name: str, options: ModelOptions | None = None) -> dict[str, str]:
    """Return digests of the user-defined code that a model uses: a run with changed code counts as a new run."""
    entries = user_defined(name, options or ModelOptions(), used_options(name))
    return {f"{entry.kind} {entry.name}": entry.digest for entry in entries}


def pickled_entries(name: str, options: ModelOptions | None = None) -> list[bytes]:
    """Return the user-defined entries of a model, pickled with their code, for `register_pickled`."""
    return [_pickled(entry) for entry in user_defined(name, options or ModelOptions())]


def register_pickled(entries: Iterable[bytes]) -> None:
    """Register entries that another process pickled, unless this process has the same entries from unchanged files."""
    for content in entries:
        try:
            entry: Entry = pickle.loads(content)
        except Exception as error:  # importing its modules may raise anything
            raise PointsetError(f"a user-defined module cannot be rebuilt in this process: {error}") from error
        present = registry.REGISTERED.get((entry.kind, entry.name))
        # A copied entry is replaced: it may call code of other files, which may have changed.
        if present is None or present.copied or present.digest != entry.digest:
            registry.enter(replace(entry, copied=True))


def _pickled(entry: Entry) -> bytes:
    """Return an entry as bytes, with its code unless the code is part of torch."""
    import cloudpickle

    module = sys.modules.get(entry.module.__module__ or "torch")
    if module is None or module.__name__.partition(".")[0] == "torch":
        return cloudpickle.dumps(entry)
    cloudpickle.register_pickle_by_value(module)
    try:
        return cloudpickle.dumps(entry)
    except Exception as error:  # pickling anything may raise anything
        raise PointsetError(
            f"{entry.kind} {entry.name!r} cannot be copied to worker processes ({error}): move it to a separate file"
        ) from error
    finally:
        cloudpickle.unregister_pickle_by_value(module)
