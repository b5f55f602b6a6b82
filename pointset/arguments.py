"""Suggestions for unknown arguments of functions and configurations, and texts of fields for `help`."""

import ast
import difflib
import inspect
import itertools
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from functools import wraps
from typing import Any, TypeVar, get_args

from pointset.errors import quoted

T = TypeVar("T", bound=Callable[..., Any])
IN_NAME = "the number in a name such as isab32-pma4"
ELSEWHERE = {
    **dict.fromkeys(("num_classes", "n_classes", "num_labels", "out_channels", "dim_output"), ("classes",)),
    **dict.fromkeys(("in_channels", "in_dim", "input_dim", "dim_input", "in_features"), ("inputs", "dim_in")),
    **dict.fromkeys(("width", "hidden_dim", "dim_hidden", "hidden_size", "d_model", "embed_dim"), ("dim",)),
    **dict.fromkeys(("num_heads", "n_heads", "nhead"), ("heads",)),
    **dict.fromkeys(("num_inducing_points", "num_inds", "inducing_points", "inducing"), ("inducing", IN_NAME)),
    **dict.fromkeys(("num_seeds", "n_seeds", "num_outputs", "seeds"), ("seeds", IN_NAME)),
    **dict.fromkeys(("num_layers", "n_layers", "depth"), ("layers",)),
    **dict.fromkeys(("ln", "layer_norm"), ("norm",)),
    **dict.fromkeys(("scheduler", "lr_scheduler"), ("schedule",)),
    **dict.fromkeys(("loss_fn", "criterion", "objective"), ("loss",)),
    "lr": ("learning_rate",),
    "early_stopping": ("patience",),
}
"""Names of options in other libraries, each with its names here. Errors suggest the first one that a function knows."""


def closest_spelling(key: object, known: Sequence[str]) -> str:
    """Return the known name that begins with `key` or, if there is none, the most similar known name.

    For the name of an option in other libraries, return its name here; see `ELSEWHERE`. A field of an argument is named
    `argument__field`.
    """
    field = str(key).rpartition("__")[2]
    for usual in ELSEWHERE.get(field, (field,)):
        if found := [name for name in known if name.rpartition("__")[2] == usual]:
            return found[0]
        if usual == IN_NAME:
            return usual
    begun = [name for name in known if name.startswith(str(key))]
    return (begun or difflib.get_close_matches(str(key), known, n=1, cutoff=0.0))[0]


def suggests(function: T) -> T:
    """Decorate a function so that the TypeError for an unknown argument suggests the most similar one.

    The suggestion may be a field of a configuration that the function takes. The TypeError for too many positional
    arguments names the first keyword-only argument.
    """
    name, parameters = function.__qualname__.removesuffix(".__init__"), inspect.signature(function).parameters
    by_name = [one.name for one in parameters.values() if one.kind == one.KEYWORD_ONLY]
    most = len(parameters) - len(by_name)

    @wraps(function)
    def call(*values: Any, **named: Any) -> Any:
        if unknown := [key for key in named if key not in parameters]:
            written = _written(function)
            nearest = closest_spelling(unknown[0], [*written])
            raise TypeError(f"{name} has no argument {quoted(unknown[0])}: use {written.get(nearest, nearest)}")
        if len(values) > most:
            raise TypeError(f"{name} takes {by_name[0]} by name, as in {by_name[0]}={quoted(values[most])}")
        return function(*values, **named)

    return call  # type: ignore[return-value]


def _written(function: Callable[..., Any], configuration: Any = None) -> dict[str, str]:
    """Return the text to suggest for each argument, and for each field of a configuration, such as `recipe__epochs`.

    The text of a field contains its allowed values.
    """
    parameters = [one for one in inspect.signature(function).parameters.values() if one.name != "self"]
    written = {
        one.name: f"{one.name}=...), {configuration.allowed_values(one.name)}" if configuration else one.name
        for one in parameters
    }
    for one in parameters:
        for kind in get_args(one.annotation) or (one.annotation,):
            if hasattr(kind, "allowed_values"):
                begun = f"{one.name}={kind.__name__}("
                written |= {f"{one.name}__{path}": begun + text for path, text in _written(kind, kind).items()}
    return written


def explained(cls: type) -> type:
    """Decorate a configuration so that `help` shows the text of each field and errors suggest fields (see `suggests`).

    The texts are the strings below the fields, which `--help-all` also shows. They are read when `help` is called.
    """
    cls.__init__ = suggests(cls.__init__)  # type: ignore[misc]
    cls.__doc__ = _Explanation(cls.__doc__ or "")  # type: ignore[assignment]
    return cls


class _Explanation:
    """The docstring of a configuration, followed by its fields."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __get__(self, _: object, cls: Any) -> str:
        return f"{inspect.cleandoc(self.text)}\n\nFields:\n{textwrap.indent(_fields_in_words(cls), '    ')}"


def _fields_in_words(cls: type) -> str:
    lines: list[str] = []
    for base in reversed([one for one in cls.__mro__ if is_dataclass(one)]):
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        body = definition.body  # type: ignore[attr-defined]
        for field, text in itertools.pairwise(body):
            match field, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                    lines += [f"{name}:", textwrap.indent(inspect.cleandoc(said), "    ")]
    return "\n".join(lines)
