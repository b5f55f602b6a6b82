"""What `pointset zoo` lists, kept: making every model takes seconds, and reading this file needs no torch.

`python scripts/zoo_listing.py` writes it anew after a part was added; a test says when.
"""

import json
import os
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("listing.json")
CLASSES = 40


def kept_rows() -> list[dict[str, Any]] | None:
    """What `describe_models` gives at its defaults; None where parts of one's own (POINTSET_PARTS) would be missing."""
    if os.environ.get("POINTSET_PARTS"):
        return None
    rows: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
    return rows
