"""Where a result comes from: versions and machine, saved beside every figure."""

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

PACKAGES = ("pointset", "torch", "torch-geometric", "numpy", "scikit-learn", "trimesh", "open3d", "h5py")


def versions() -> dict[str, str]:
    """Python and the packages that decide numbers; "absent" for one that is not installed."""
    return {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}}


def machine() -> dict[str, Any]:
    """The machine in a few words."""
    import torch

    accelerator = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "accelerator": accelerator,
        "threads": torch.get_num_threads(),
    }


def command() -> str:
    """The command line of this process."""
    return " ".join(["pointset" if sys.argv[0].endswith("pointset") else sys.argv[0], *sys.argv[1:]])


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"
