"""Escape user-defined labels and class names, which may contain markup, in Markdown."""

import re

from pointset.errors import escaped

MARKUP = re.compile(r"[\\`*_\[\]<>|#&~$]")
INSIDE = re.compile(r"(?<=\w)\\_(?=\w)")


def in_markdown(text: str) -> str:
    """Escape text so that Markdown shows it literally, on one line."""
    return INSIDE.sub("_", MARKUP.sub(r"\\\g<0>", escaped(text)))  # an underscore inside a word needs no escape


def in_table(text: str, style: str) -> str:
    """Escape text for a table cell in one of tabulate's formats."""
    return in_markdown(text) if style == "github" else escaped(text)
