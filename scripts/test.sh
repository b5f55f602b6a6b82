#!/usr/bin/env bash
# Set up .venv with the extra `test`, then check style and types and run the tests.
#
#   bash scripts/test.sh                       all tests
#   bash scripts/test.sh --fast                all tests except those marked slow
#   bash scripts/test.sh tests/nn -k mask      arguments are passed to pytest; paths start in the checkout
#
# PYTHON=/path/to/python selects the interpreter; see scripts/setup.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

selection=()
if [ "${1:-}" = --fast ]; then
    selection=(-m "not slow")
    shift
fi
if [ $# = 0 ]; then  # a few tests are faster in one process
    selection+=(-n 4 --dist worksteal)  # more processes than cores, because tests also wait for browsers and the disk
fi

bash scripts/setup.sh test

echo "test: ruff (lint, format)"
.venv/bin/python -m ruff check
.venv/bin/python -m ruff format --check
echo "test: mypy (types)"
.venv/bin/python -m mypy
echo "test: pytest"
exec .venv/bin/python -m pytest ${selection[@]+"${selection[@]}"} "$@"
