"""Numbers in lines of text: parsed by numpy, then line by line only to name the wrong one."""

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from pointset.errors import PointsetError

COMMENT = re.compile(rb"(?:#|//)[^\r\n]*")


def parse_table(path: Path, content: bytes, *, widths: Sequence[int], first_line: int = 1) -> np.ndarray:
    """Parse lines of numbers, separated by blanks, commas or semicolons; empty lines and comments are skipped.

    Args:
        path: named in errors.
        content: the text.
        widths: allowed numbers per line; all lines have the same.
        first_line: its number in the file.

    Returns:
        float64 [lines, width], finite.

    Raises:
        PointsetError: the text is empty, or a line is wrong: it is named with what was expected.
    """
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise PointsetError(f"{path}: expected plain text, found UTF-16: save it as UTF-8")
    text = content.removeprefix(b"\xef\xbb\xbf")
    if b"#" in text or b"//" in text:
        text = COMMENT.sub(b"", text)
    text = text.replace(b",", b" ").replace(b";", b" ").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    lines = text.split(b"\n")
    width = next((len(line.split()) for line in lines if line.strip()), 0)
    if not width:
        raise PointsetError(f"{path}: expected lines of {_words(widths)} numbers, found an empty file")
    try:
        table = np.loadtxt((line for line in lines if line.strip()), dtype=np.float64, ndmin=2, comments=None)
    except ValueError:
        table = None
    if table is None or width not in widths or not np.isfinite(table).all():
        wrong = next(_wrong_lines(lines, widths, width, first_line), "cannot be read as numbers")
        raise PointsetError(f"{path}, {wrong}" if wrong.startswith("line") else f"{path}: {wrong}")
    return table


def _wrong_lines(lines: Sequence[bytes], widths: Sequence[int], width: int, first_line: int) -> Iterator[str]:
    for number, line in enumerate(lines, first_line):
        words = line.split()
        if not words:
            continue
        if len(words) not in widths:
            yield f"line {number}: expected {_words(widths)} numbers, found {len(words)}"
        elif len(words) != width:
            yield f"line {number}: expected {width} numbers as in the lines before, found {len(words)}"
        for word in words:
            try:
                finite = math.isfinite(float(word))
            except ValueError:
                yield f"line {number}: expected a number, found {word.decode(errors='replace')[:40]!r}"
                continue
            if not finite:
                yield f"line {number}: expected a finite number, found {word.decode(errors='replace')}"


def _words(widths: Sequence[int]) -> str:
    return " or ".join(map(str, widths))
