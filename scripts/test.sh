#!/usr/bin/env bash
# Set up .venv with the test extras, then check style and types and run every test.
#
#   bash scripts/test.sh                       everything
#   bash scripts/test.sh --fast                all but the tests marked slow: what one runs while working
#   bash scripts/test.sh tests/nn -k mask      arguments go to pytest, paths are those of the checkout
#
# PYTHON=/path/to/python chooses the interpreter; see scripts/setup.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

selection=()
if [ "${1:-}" = --fast ]; then
    selection=(-m "not slow")
    shift
fi
if [ $# = 0 ]; then  # a choice of tests is done sooner in one process
    selection+=(-n 4 --dist worksteal)  # more than two cores: tests wait for processes, browsers and the disk
fi

bash scripts/setup.sh test

echo "test: ruff (lint, format)"
.venv/bin/python -m ruff check
.venv/bin/python -m ruff format --check
echo "test: mypy (types)"
.venv/bin/python -m mypy
echo "test: pytest"
exec .venv/bin/python -m pytest ${selection[@]+"${selection[@]}"} "$@"
