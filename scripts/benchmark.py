"""`pointset bench` as a script: our blocks against what else there is, on this machine. See scripts/BENCHMARKS.md.

.venv/bin/python scripts/benchmark.py isab16-pma --dims 128 256 --points 100 1000 5000 --threads 2
"""

import sys

from pointset.cli import main

if __name__ == "__main__":
    main(["bench", *sys.argv[1:]])
