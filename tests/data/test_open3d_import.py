"""The error if Open3D cannot be imported."""

import importlib
from types import ModuleType

import pytest

from pointset.data import open3d_import
from pointset.data.open3d_import import import_open3d
from pointset.errors import PointsetError

FAILURES = {
    "not installed": (ModuleNotFoundError("No module named 'open3d'", name="open3d"), [], "run `pip install open3d`"),
    "one library": (
        ImportError("libusb-1.0.so.0: cannot open shared object file: No such file or directory"),
        ["libusb-1.0.so.0"],
        "missing: libusb-1.0.so.0; on Debian or Ubuntu run `apt-get install libusb-1.0-0`",
    ),
    "three libraries, of which the linker names the first": (
        OSError("libEGL.so.1: cannot open shared object file: No such file or directory"),
        ["libEGL.so.1", "libGL.so.1", "libusb-1.0.so.0"],
        "missing: libEGL.so.1, libGL.so.1, libusb-1.0.so.0; "
        "on Debian or Ubuntu run `apt-get install libegl1 libgl1 libusb-1.0-0`",
    ),
    "an unknown library": (
        ImportError("/opt/libnew.so.7: cannot open shared object file: No such file or directory"),
        [],
        "missing: libnew.so.7; install them",
    ),
    "a module that it needs": (
        ModuleNotFoundError("No module named 'dash'", name="dash"),
        [],
        "the Python module dash",
    ),
    "something else": (ImportError("version `GLIBCXX_9'\nnot found"), [], "imported: version `GLIBCXX_9' not found"),
}


@pytest.mark.parametrize(("error", "absent", "words"), FAILURES.values(), ids=FAILURES)
def test_a_failed_import_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, error: Exception, absent: list[str], words: str
) -> None:
    def fail(name: str) -> ModuleType:
        assert name == "open3d"
        raise error

    monkeypatch.setattr(importlib, "import_module", fail)
    monkeypatch.setattr(open3d_import, "_is_there", lambda library: library not in absent)
    with pytest.raises(PointsetError) as caught:
        import_open3d()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_library_is_looked_for_on_this_machine() -> None:
    assert not open3d_import._is_there("libthat-nobody-has.so.1")
