#!/usr/bin/env bash
# Make .venv in the checkout and install pointset into it, with the exact versions of scripts/constraints.txt.
#
#   bash scripts/setup.sh                  pointset and its required packages
#   bash scripts/setup.sh export,notebook  also the packages of these extras of pyproject.toml
#   bash scripts/setup.sh docs             also the packages that build the documentation site
#   bash scripts/setup.sh test             also the packages of the tests and of all other extras
#
# The extra open3d (400 MB) is for the samplers fps and poisson. The script uses uv if it is on the path, otherwise pip.
# If the script is run again, it installs only after a change of pyproject.toml or constraints.txt.
# PYTHON=/path/to/python selects the interpreter (3.11 or newer). Settings of pip are used: on a machine without a GPU,
# PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu selects the smaller build of torch.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

extra="${1:-}"
venv_python=.venv/bin/python

say() { echo "setup: $*"; }
fail() { echo "setup: $*" >&2; exit 2; }

is_recent() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

# The interpreter in PYTHON; otherwise Python 3.11, with which the constraints were made, or the first newer version.
find_python() {
    local candidate
    if [ -n "${PYTHON:-}" ]; then
        is_recent "$PYTHON" || fail "PYTHON=$PYTHON does not run or is older than Python 3.11: name another one"
        echo "$PYTHON"
        return
    fi
    for candidate in python3.11 python3.12 python3.13 python3.14 python3 python; do
        if is_recent "$candidate"; then echo "$candidate"; return; fi
    done
    fail "no Python 3.11 or newer found: install one (Debian: apt-get install python3 python3-venv) or set PYTHON"
}

make_venv() {
    if [ -z "${PYTHON:-}" ] && is_recent "$venv_python"; then return; fi
    local python version='import sys; print(sys.version)'
    python="$(find_python)"
    if is_recent "$venv_python" && [ "$("$python" -c "$version")" = "$("$venv_python" -c "$version")" ]; then return; fi
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        fail "$python has no venv module: install it (Debian: apt-get install python3-venv) or set PYTHON"
    say "making .venv with $("$python" --version)"
    "$python" -m venv --clear .venv
}

# A checksum of everything that determines the installed packages. If it changes, they are installed again.
wanted() {
    { echo "$PWD"; "$venv_python" --version; cat pyproject.toml scripts/constraints.txt; } | cksum
}

is_installed() { [ "$(cat ".venv/installed${1:+-$1}" 2>/dev/null)" = "$(wanted)" ]; }

# The extra `test` includes all other extras, and every extra includes the required packages.
is_enough() {
    local file
    if is_installed "$extra" || is_installed test; then return; fi
    for file in .venv/installed*; do
        if [ -z "$extra" ] && [ "$(cat "$file" 2>/dev/null)" = "$(wanted)" ]; then return; fi
    done
    return 1
}

with_pip() {
    "$venv_python" -m pip install --disable-pip-version-check -c scripts/constraints.txt -e "$1"
}

# uv is many times faster than pip. It needs the index URLs of pip as options, and takes the best version of all indices.
with_uv() {
    command -v uv >/dev/null || return 1
    local indices=()
    if [ -n "${PIP_INDEX_URL:-}" ]; then indices+=(--default-index "$PIP_INDEX_URL"); fi
    if [ -n "${PIP_EXTRA_INDEX_URL:-}" ]; then indices+=(--index "$PIP_EXTRA_INDEX_URL"); fi
    uv pip install --python "$venv_python" --index-strategy unsafe-best-match ${indices[@]+"${indices[@]}"} \
        -c scripts/constraints.txt -e "$1" || { say "uv could not install pointset; trying pip"; return 1; }
}

install_pointset() {
    if is_enough; then
        say ".venv is up to date"
        return
    fi
    say "installing pointset${extra:+ with the extra $extra} into .venv: the first time takes a few minutes and 2 to 3 GB"
    say "(more with CUDA, which is part of PyPI's torch for Linux)"
    local what=".${extra:+[$extra]}" began=$SECONDS
    with_uv "$what" || with_pip "$what"
    wanted > ".venv/installed${extra:+-$extra}"
    say "installed in $((SECONDS - began)) s; .venv has $(du -sh .venv | cut -f1)"
}

# Install Debian packages, if the user is root and apt-get exists.
apt_install() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    say "installing $*"
    apt-get -qq update >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@" >/dev/null
}

open3d_loads() {
    "$venv_python" -c 'import sys, importlib.util as util; sys.exit(util.find_spec("open3d") is not None)' ||
        "$venv_python" -c 'import open3d' 2>/dev/null
}

# Install the system libraries of Open3D, if it is installed and cannot be imported.
install_system_libraries() {
    local packages=(libegl1 libgl1 libidn2-0 libudev1 libusb-1.0-0 libx11-6)
    if open3d_loads || { apt_install "${packages[@]}" && open3d_loads; }; then return; fi
    say "warning: Open3D cannot be imported without system libraries (Debian: apt-get install ${packages[*]}); all else works"
}

# The tests of the interactive page need a browser.
install_browser() {
    local name
    if [ "$extra" != test ]; then return; fi
    for name in chromium chromium-browser google-chrome google-chrome-stable; do
        if command -v "$name" >/dev/null; then return; fi
    done
    apt_install chromium || say "Chromium was not found: the tests of the interactive page will be skipped"
}

make_venv
install_pointset
install_system_libraries
install_browser
