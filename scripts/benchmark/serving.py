"""Measure `pointset serve`: requests at once, their times, and the memory of its processes over many requests.

python scripts/benchmark/serving.py path/to/shapes --requests 2000 --at-once 50
"""

import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cyclopts
import numpy as np
import psutil
from requests import post

from pointset.data.catalogue.folders import list_shapes


def memory(server: psutil.Process) -> float:
    """The resident memory of a server and its processes, in MB."""
    return sum(process.memory_info().rss for process in [server, *server.children(recursive=True)]) / 1e6


def main(folder: Path, *, requests: int = 2000, at_once: int = 50) -> None:
    """Print a line after each tenth of the requests with shapes of a folder."""
    files = [(shape.path.name, shape.path.read_bytes()) for shape in list_shapes(folder)]
    command = [sys.executable, "-m", "pointset.cli", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        address = re.search(r"http://\S+", line)
        assert address is not None, line

        def ask(number: int) -> float:
            start = time.perf_counter()
            upload = {"file": files[number % len(files)]}
            post(f"{address[0]}/classify", files=upload, timeout=600).raise_for_status()
            return time.perf_counter() - start

        process, tenth = psutil.Process(server.pid), max(1, requests // 10)
        print(f"before: {memory(process):.0f} MB")
        with ThreadPoolExecutor(at_once) as threads:
            for first in range(0, requests, tenth):
                start = time.perf_counter()
                seconds = list(threads.map(ask, range(first, min(first + tenth, requests))))
                rate, (half, most) = len(seconds) / (time.perf_counter() - start), np.percentile(seconds, [50, 100])
                numbers = f"{rate:.0f} a second, median {half:.2f} s, longest {most:.2f} s, {memory(process):.0f} MB"
                print(f"{first + len(seconds)} requests, {at_once} at once: {numbers}", flush=True)
        server.terminate()


if __name__ == "__main__":
    cyclopts.run(main)
