"""Results on the terminal: tables for people, JSON for programs."""

import json
from typing import Any

from pointset.errors import escaped


def print_json(value: Any) -> None:
    """Print indented JSON."""
    print(json.dumps(value, indent=2))


def print_rows(rows: list[dict[str, Any]], as_json: bool = False) -> None:
    """Print a table with the keys as its head, or the rows as JSON."""
    from tabulate import tabulate

    if as_json:
        print_json(rows)
    else:
        cells = [
            {escaped(key): escaped(cell) if isinstance(cell, str) else cell for key, cell in row.items()}
            for row in rows
        ]
        named = any(isinstance(next(iter(row.values()), None), str) for row in cells)
        print(tabulate(cells, headers="keys", intfmt=",", disable_numparse=[0] if named else []))  # 007 is a name


def in_words(value: Any, separator: str) -> str:
    """Plain text; the separator stands between sentences, a comma between words."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {part:,}" if isinstance(part, int) else f"{key} {part}" for key, part in value.items())
    if isinstance(value, list | tuple):
        sentences = any(len(part) > 30 for part in value)
        return (separator if sentences else ", ").join(value)
    return str(value)


def in_hours(seconds: float) -> str:
    """A time as h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
