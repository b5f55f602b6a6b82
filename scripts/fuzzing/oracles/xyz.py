"""Lines of three or six numbers."""

import itertools
import re

import numpy as np

from fuzzing.oracles.words import BLANKS, finite, lines_of, require, without_mark


def read(content: bytes) -> tuple[np.ndarray, np.ndarray | None]:
    """Points and normals, if there are any."""
    rows = []
    styles = set()
    for line in lines_of(without_mark(content)):
        text = re.split(rb"#|//", line)[0].strip(BLANKS)
        if text:
            words, style = split(text)
            styles.add(style)
            rows.append([finite(word) for word in words])
    require(bool(rows), "no points")
    require(len(styles) == 1, "lines of several styles")
    require(len({len(row) for row in rows}) == 1 and len(rows[0]) in (3, 6), "numbers on a line")
    table = np.array(rows)
    return table[:, :3], table[:, 3:] if table.shape[1] == 6 else None


def split(text: bytes) -> tuple[list[bytes], tuple[bytes, bool]]:
    """Words of a line, the mark between them, and whether blanks stand beside each mark."""
    for mark in (b",", b";"):
        if mark in text:
            parts = text.split(mark)
            beside = {left[-1:].isspace() or right[:1].isspace() for left, right in itertools.pairwise(parts)}
            require(len(beside) == 1, "separators of several styles")
            return [part.strip(BLANKS) for part in parts], (mark, beside.pop())
    return text.split(), (b" ", True)
