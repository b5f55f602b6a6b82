"""Convert docstrings and signatures of the source for Sphinx.

Docstrings are in the style of Google. In addition, an indented block is code, and text in single backticks is code or a
public name. Signatures have the annotations of the source, with short names of types.
"""

import ast
import dataclasses
import inspect
import re
import textwrap
from functools import cache
from itertools import takewhile
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from reference_pages import all_names, public

SECTION = re.compile(r"(Args|Attributes|Returns|Raises|Warns|Yields|Example|Examples|Source|Note):$")
MARKUP = re.compile(r"(\*\w(?:[^*]*\w)?\*(?!\w))|([|*])")
"""Emphasis, or a star or bar that reStructuredText would interpret as markup although it is none."""
CODE = re.compile(r"(?<![`:\w])`([^`\n]+)`(?![`_])")


def to_restructured_text(app: object, what: str, name: str, described: Any, options: object, lines: list[str]) -> None:
    """Convert the lines of a docstring in place."""
    lines[:] = [linked(line) for line in with_code_blocks(lines)]
    if what == "attribute":
        lines += values_of_field(name)
    if what in ("attribute", "property"):
        # napoleon interprets words before a colon in the first line as a type; a line with a backslash is invisible
        lines.insert(0, "\\")


def is_not_for_users(app: object, what: str, name: str, described: Any, skip: bool, options: object) -> bool | None:
    """Leave out constants of classes, and methods that scikit-learn adds to estimators with links to its own site."""
    return True if re.fullmatch("set_.*_request", name) or (name.isupper() and len(name) > 1) else None


def with_code_blocks(lines: list[str]) -> list[str]:
    """Return the lines with a code directive before each indented block outside of sections and lists."""
    changed: list[str] = []
    at_margin = True  # True if the last text was at the margin and did not begin a section or a list
    for index, line in enumerate(lines):
        begins = line.startswith("    ") and index > 0 and not lines[index - 1].strip()
        if begins and at_margin:
            language = "python" if looks_like_python(lines[index:]) else "text"
            changed += [f".. code-block:: {language}", ""]
            at_margin = False
        elif line.strip() and not line.startswith(" "):
            at_margin = not SECTION.match(line) and not line.startswith((">>>", "- ", "* "))
        changed.append(line)
    return changed


def looks_like_python(lines: list[str]) -> bool:
    """True if the indented block at the beginning of the lines is valid Python."""
    block = takewhile(lambda line: not line.strip() or line.startswith(" "), lines)
    try:
        ast.parse(textwrap.dedent("\n".join(block)))
    except SyntaxError:
        return False
    return True


@cache
def full_names() -> dict[str, str]:
    """Full public names by the full and short names that docstrings use."""
    names = {}
    for name in all_names():
        short = name.rpartition(".")[2]
        names[name] = name
        if short[0].isupper() or "_" in short:
            names[short] = name
    return names


def linked(line: str) -> str:
    """Return a line in which text in backticks is a link if it is a public name, and code otherwise."""
    if line.lstrip().startswith((">>>", "...")):
        return line

    parts = CODE.split(line)  # alternately text, and code in backticks
    words = [MARKUP.sub(lambda mark: mark[1] or f"\\{mark[2]}", text) for text in parts[::2]]
    codes = [
        f":py:obj:`{code} <{full_names()[code]}>`" if code in full_names() else f"``{code}``" for code in parts[1::2]
    ]
    return "".join(word + code for word, code in zip(words, [*codes, ""], strict=True))


def values_of_field(name: str) -> list[str]:
    """Return the lines on the values that the annotation of a field allows; empty for a plain type."""
    owner, _, field = name.rpartition(".")
    try:
        annotation = get_type_hints(public(owner), include_extras=True)[field]
    except (AttributeError, ImportError, KeyError, NameError, TypeError, ValueError):
        return []
    words = values(annotation)
    return ["", f"*Values:* {words}."] if words else []


def values(annotation: Any) -> str:
    """Return the allowed values of an annotation in words; empty for a plain type."""
    if get_origin(annotation) is Annotated:
        return next((meta.description for meta in annotation.__metadata__ if getattr(meta, "description", None)), "")
    if get_origin(annotation) is Literal:
        return ", ".join(f"``{value!r}``" for value in get_args(annotation))
    choices = ["``None``" if choice is type(None) else values(choice) for choice in get_args(annotation)]
    return " or ".join(choices) if choices and all(choices) else ""


def short_signature(
    app: object, what: str, name: str, described: Any, options: object, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """The signature as the source writes it."""
    if what == "class":
        if dataclasses.is_dataclass(described) or hasattr(described, "__struct_fields__"):
            return fields_of(described), None
        written = of_source(described.__init__)
        return (written[0] if written else signature), None
    if what in ("function", "method"):
        written = of_source(described)
        return written or (signature, returned)
    return signature, returned


def fields_of(cls: type) -> str:
    """Return the parameters of a dataclass with their defaults, without types, since the page lists the fields."""
    parameters = inspect.signature(cls).parameters.values()
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
    shown = [one.replace(default=Shown(one.default)) if one.default is not one.empty else one for one in plain]
    return str(inspect.Signature(shown))


class Shown:
    """A default value, which is shown by its `repr`, or as `...` if this is not valid Python."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        text = repr(self.value)
        return "..." if text.startswith("<") else text


def of_source(function: Any) -> tuple[str, str | None] | None:
    """Return parameters and result of a function from its source, without self; None if there is no source."""
    function = inspect.unwrap(getattr(function, "__func__", function))
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return None
    node = tree.body[0]
    if not isinstance(node, ast.FunctionDef):
        return None
    arguments = node.args
    if arguments.args and arguments.args[0].arg in ("self", "cls"):
        del arguments.args[0]
    return f"({ast.unparse(arguments)})", ast.unparse(node.returns) if node.returns else None
