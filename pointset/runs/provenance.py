"""Provenance of results: versions, machine and commit, saved with every result."""

import os
import platform
import shlex
import subprocess
import sys
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pointset

PACKAGES = (
    "torch",
    "torch-geometric",
    "accelerate",
    "numpy",
    "scipy",
    "scikit-learn",
    "statsmodels",
    "trimesh",
    "open3d",
    "h5py",
)


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that affect results; "absent" means not installed."""
    return {
        "python": platform.python_version(),
        "pointset": pointset.__version__,
        **{name: _version(name) for name in PACKAGES},
    }


def machine() -> dict[str, Any]:
    """Return a short description of the machine: system, cores, accelerator and number of torch threads."""
    import torch

    accelerator = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count() or 1,
        "accelerator": accelerator,
        "threads": torch.get_num_threads(),
    }


def origin() -> dict[str, Any]:
    """Return the versions, machine and commit of a run."""
    return {"versions": versions(), "machine": machine(), "commit": commit()}


def command() -> str:
    """Return the command line of this process, quoted for a shell."""
    program = sys.argv[0].replace(os.sep, "/")
    ours = program.endswith(("/pointset", "pointset/cli.py")) or program == "pointset"
    return shlex.join(["pointset" if ours else program, *sys.argv[1:]])


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def commit() -> str | None:
    """Return the git commit of the checkout, with "+" if files differ from the commit; None outside of a checkout."""
    folder = Path(__file__).parent.parent
    git = partial(subprocess.run, cwd=folder, capture_output=True, text=True, check=True, timeout=10)
    try:
        git(["git", "ls-files", "--error-unmatch", __file__])
        described = git(["git", "describe", "--always", "--exclude=*", "--abbrev=40", "--dirty=+"])
    except (OSError, subprocess.SubprocessError):
        return None
    return str(described.stdout).strip()
