"""A page in a browser tab: its pictures, its maps and the mouse."""

import io
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray


@dataclass
class Seen:
    """An open page, with its console messages and requests."""

    tab: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def open(self, path: Path) -> None:
        """Open a file, and record what it reports and requests."""
        self.tab.on("console", lambda message: self.complaints.append(message.text))
        self.tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.tab.on("request", lambda request: self.requests.append(request.url))
        self.tab.goto(path.as_uri())

    def picture(self) -> NDArray[np.int16]:
        """The pixels [height, width, 3] of the page."""
        from PIL import Image

        # Two frames: one in which the page draws, one in which that is shown.
        self.tab.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return np.asarray(Image.open(io.BytesIO(self.tab.screenshot(full_page=True))).convert("RGB"), dtype=np.int16)

    def panels(self) -> list[NDArray[np.int16]]:
        """The pixels [height, width, 3] of every map."""
        picture = self.picture()
        boxes = self.tab.evaluate(
            """() => { const box = pointset.canvas.getBoundingClientRect(); return pointset.panels.map(
                (p) => [box.left + scrollX + p.left, box.top + scrollY + p.top, p.width, p.height]); }"""
        )
        corners = [[round(x) for x in (left, top, left + w, top + h)] for left, top, w, h in boxes]
        return [picture[top:bottom, left:right] for left, top, right, bottom in corners]

    def until(self, condition: str) -> None:
        """Wait until something holds in the page."""
        until(lambda: self.tab.evaluate(condition))

    def drag(self, right: int, down: int = 0, panel: int = 0) -> None:
        """Drag from the middle of a map."""
        x, y = self.middle(panel)
        self.tab.mouse.move(x, y)
        self.tab.mouse.down()
        self.tab.mouse.move(x + right, y + down, steps=4)
        self.tab.mouse.up()
        self.tab.mouse.move(2, 2)

    def place(self, point: int, panel: int = 0) -> tuple[float, float]:
        """The place of a point of a map in the window."""
        return tuple(
            self.tab.evaluate(
                """([panel, i]) => { const { left, top } = pointset.canvas.getBoundingClientRect();
                    const [x, y] = pointset.positionOf(pointset.panels[panel], i); return [left + x, top + y]; }""",
                [panel, point],
            )
        )

    def middle(self, panel: int) -> tuple[float, float]:
        """The middle of a map in the window."""
        return tuple(
            self.tab.evaluate(
                """(i) => { const box = pointset.canvas.getBoundingClientRect(), panel = pointset.panels[i];
                    return [box.left + panel.left + panel.width / 2, box.top + panel.top + panel.height / 2]; }""",
                panel,
            )
        )


def until(holds: Callable[[], bool]) -> None:
    """Wait by polling: playwright's own method evaluates text in the page, which its policy forbids."""
    for _ in range(1500):
        if holds():
            return
        time.sleep(0.02)
    pytest.fail("it never held")


def ink(panel: NDArray[np.int16]) -> int:
    """The number of pixels that differ from the background."""
    return int((panel.min(axis=2) < 240).sum())


def changed(before: list[NDArray[np.int16]], after: list[NDArray[np.int16]]) -> list[int]:
    """The number of clearly different pixels of each map."""
    return [int((np.abs(b - a).max(axis=2) > 40).sum()) for b, a in zip(before, after, strict=True)]
