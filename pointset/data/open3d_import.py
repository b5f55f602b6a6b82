"""Import Open3D, or report the system libraries that it needs and this machine lacks.

Its wheel needs graphics and USB libraries, which a minimal Debian 12 does not have.
"""

import ctypes
import importlib
import re
import sys
from types import ModuleType

from pointset.errors import PointsetError

DEBIAN_PACKAGES = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libX11.so.6": "libx11-6",
    "libidn2.so.0": "libidn2-0",
    "libudev.so.1": "libudev1",
    "libusb-1.0.so.0": "libusb-1.0-0",
}
"""System libraries that Open3D 0.20 is linked to, and their Debian packages."""


def import_open3d() -> ModuleType:
    """Import `open3d`; raise a PointsetError that says what to install if it fails."""
    try:
        return importlib.import_module("open3d")
    except ModuleNotFoundError as error:
        if error.name == "open3d":
            raise PointsetError("Open3D is not installed: run `pip install open3d`") from error
        raise PointsetError(
            f"Open3D cannot be imported: it needs the Python module {error.name}, which is not installed"
        ) from error
    except (ImportError, OSError) as error:
        raise PointsetError(f"Open3D cannot be imported: {_remedy(str(error))}") from error


def missing_packages() -> list[str]:
    """Debian packages with the libraries that Open3D needs and this machine lacks; empty except on Linux."""
    return [DEBIAN_PACKAGES[library] for library in _missing_libraries()] if sys.platform == "linux" else []


def _missing_libraries() -> list[str]:
    return [library for library in DEBIAN_PACKAGES if not _is_there(library)]


def _remedy(message: str) -> str:
    """The packages to install, from the dynamic linker's message."""
    named = re.search(r"([^\s/]+\.so[.\d]*): cannot open shared object file", message)
    if named is None:
        return " ".join(message.split())
    # The linker names only one library; the message names all, so that one installation is enough.
    missing = sorted({named[1], *_missing_libraries()})
    packages = [DEBIAN_PACKAGES[library] for library in missing if library in DEBIAN_PACKAGES]
    fix = f"on Debian or Ubuntu run `apt-get install {' '.join(packages)}`" if packages else "install them"
    return f"these system libraries are missing: {', '.join(missing)}; {fix}"


def _is_there(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
