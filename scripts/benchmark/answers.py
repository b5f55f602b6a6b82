"""How soon a live page answers, and how often while one drags: in a headless Chromium that draws on the CPU.

    pointset attend chair.off --live -o live.html
    taskset -c 1 .venv/bin/python scripts/benchmark/answers.py live.html

`taskset` leaves one core to the page, its drawing and this script together. Times begin with the navigation and end
when the bars have been painted; every load has a browser of its own, which has come to rest before. The drag moves the
slider "turn" sixty times a second. Processor time is that of all processes of the browser: where others are at work on
the machine, it says more than the clock.
"""

import shutil
from pathlib import Path
from statistics import median
from typing import Any

import cyclopts
import psutil  # type: ignore[import-untyped]
from playwright.sync_api import Browser, sync_playwright

OPTIONS = ["--no-sandbox"]
WATCH = """
window.seen = {};
const once = (name, there) => {
  const painted = () => { seen[name] ??= performance.now(); };
  if (!seen[name] && there) requestAnimationFrame(() => setTimeout(painted));
};
new MutationObserver(() => {
  const lists = document.querySelectorAll(".side .answer");
  once("the first answer", lists[0]?.children.length);
  once("that of the second model", lists[1]?.children.length);
  once("shape and maps", document.querySelector("#layers button"));
}).observe(document, { childList: true, subtree: true });
"""
ALL = 3
REST = 2000
"""Milliseconds that a browser has for its own beginning."""
DRAG = """([models, seconds]) => new Promise((done) => {
  const select = document.querySelectorAll(".side select")[1], turn = document.getElementById("turn");
  if (models === 1) { select.value = "no second model"; select.onchange(); }
  setTimeout(() => {
    let answers = 0, at = 0;
    const watched = new MutationObserver(() => { answers++; });
    watched.observe(document.querySelector(".side .answer"), { childList: true });
    const hand = setInterval(() => { turn.value = at = (at + 3) % 180; turn.oninput(); }, 1000 / 60);
    setTimeout(() => { clearInterval(hand); watched.disconnect(); done(answers / seconds); }, 1000 * seconds);
  }, 1000);
})"""


def measure(page: Path, loads: int = 5, seconds: float = 5.0) -> None:
    """Print the times of a page.

    Args:
        page: a file that `pointset attend --live` wrote.
        loads: of which the median is printed.
        seconds: of a drag.
    """
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    times: dict[str, list[float]] = {}
    with sync_playwright() as driver:
        for load in range(loads):
            browser = driver.chromium.launch(executable_path=chromium, args=OPTIONS)
            tab = opened(browser, page)
            for name, time in tab.evaluate("() => seen").items():
                times.setdefault(name, []).append(time)
            if load == loads - 1:
                drags = [(models, *dragged(tab, models, seconds)) for models in (2, 1)]
                points = tab.inner_text("#left")
            browser.close()
    for name, own in times.items():
        print(f"{name}: {median(own):.0f} ms, of {', '.join(f'{time:.0f}' for time in own)}")
    for models, rate, cost in drags:
        of = f"{models} model{'s' * (models > 1)}, {points}"
        print(f"{rate:.1f} answers a second of {of}; {cost:.0f} ms of processor time each")


def opened(browser: Browser, page: Path) -> Any:
    """The page in a tab of its own, when all of it is there."""
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    tab.wait_for_timeout(REST)
    tab.add_init_script(WATCH)
    tab.goto(page.resolve().as_uri(), wait_until="commit")
    for _ in range(300):
        if tab.evaluate("() => Object.keys(window.seen ?? {}).length") == ALL:
            return tab
        tab.wait_for_timeout(100)
    raise SystemExit(f"{page} has not answered after 30 s")


def dragged(tab: Any, models: int, seconds: float) -> tuple[float, float]:
    """Answers a second, and the milliseconds of processor time that one takes."""
    before = processor_seconds()
    rate = tab.evaluate(DRAG, [models, seconds])
    return rate, 1000 * (processor_seconds() - before) / (rate * seconds)


def processor_seconds() -> float:
    """Of all processes that this one started, and that they started."""
    times = [one.cpu_times() for one in psutil.Process().children(recursive=True) if "chrom" in one.name()]
    return sum(time.user + time.system for time in times)


if __name__ == "__main__":
    cyclopts.run(measure)
