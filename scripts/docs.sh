#!/usr/bin/env bash
# Set up .venv with the extra `docs`, then build the documentation site; its first page is build/docs/index.html.
#
#   bash scripts/docs.sh           any warning of Sphinx is an error
#
# PYTHON=/path/to/python selects the interpreter; see scripts/setup.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bash scripts/setup.sh docs

exec .venv/bin/python scripts/docs/build.py "$@"
