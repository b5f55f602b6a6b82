#!/usr/bin/env bash
# Set up .venv with what the site needs, then build it in build/docs: open build/docs/index.html in a browser.
#
#   bash scripts/docs.sh           guides, results and reference; any warning is an error
#
# PYTHON=/path/to/python chooses the interpreter; see scripts/setup.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bash scripts/setup.sh docs

exec .venv/bin/python scripts/docs/build.py "$@"
