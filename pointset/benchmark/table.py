"""The benchmark's rows as a Markdown table."""

from collections.abc import Sequence
from typing import Any

RIVALS = ("released", "sdpa", "torch-geometric", "torch", "aggregation")


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """One line per row; times of others as multiples of ours."""
    from tabulate import tabulate

    rivals = [name for name in RIVALS if any(name in row["ratios"] for row in rows)]
    return tabulate([_line(row, rivals) for row in rows], headers="keys", tablefmt="pipe", disable_numparse=True)


def _line(row: dict[str, Any], rivals: Sequence[str]) -> dict[str, str]:
    shown = {name: f"{row['ratios'][name]:.2f}" if name in row["ratios"] else "" for name in rivals}
    memory = row.get("memory_ratios", {}).get("released")
    return {
        "model": row["model"],
        "d": str(row["dim"]),
        "n": str(row["points"]),
        "work": row["kind"],
        "ms": f"{row['ms']:.1f}",
        **shown,
        "GFLOP": f"{row['gflop']:.1f}",
        "share of product rate": f"{row['share']:.0%}",
        "memory of released": "" if memory is None else f"{memory:.2f}",
    }
