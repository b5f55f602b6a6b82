"""Names in Markdown: labels and classes are other people's, and may look like markup."""

import re

from pointset.errors import escaped

MARKUP = re.compile(r"[\\`*_\[\]<>|#&~$]")
INSIDE = re.compile(r"(?<=\w)\\_(?=\w)")


def in_markdown(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return INSIDE.sub("_", MARKUP.sub(r"\\\g<0>", escaped(text)))  # a_b needs no escape, and reads better without


def in_table(text: str, style: str) -> str:
    """Text for a cell in one of tabulate's formats."""
    return in_markdown(text) if style == "github" else escaped(text)
