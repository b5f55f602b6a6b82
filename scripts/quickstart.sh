#!/usr/bin/env bash
# Set up .venv, then train DeepSets and Set Transformers on the embedded dataset and compare them in one table.
#
#   bash scripts/quickstart.sh                     the default comparison: a few minutes on 2 cores
#   bash scripts/quickstart.sh --help              arguments are passed to `pointset compare`
#
# PYTHON=/path/to/python selects the interpreter; see scripts/setup.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bash scripts/setup.sh

echo "quickstart: pointset compare $*"
exec .venv/bin/pointset compare "$@"
