"""Reading every byte of the pools and of the meshes they were made from, and naming what is wrong."""

import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from pointset.data.catalogue.home import pools_home
from pointset.data.pools.build import find_folder
from pointset.data.pools.manifest import FILE, Entry, Manifest, read_manifest
from pointset.data.pools.partial import checksum
from pointset.data.pools.plan import build_command
from pointset.data.pools.sources import hash_source
from pointset.errors import PointsetError


@dataclass(frozen=True)
class Verified:
    """What was found in one pool."""

    folder: Path
    shapes: int
    skipped: int
    problems: tuple[str, ...]
    remedy: str
    """The command that puts it right."""


def verify_dataset(name_or_folder: str | Path, *, progress: bool = True) -> list[Verified]:
    """Verify all pools of a data set, whatever their points, samplers and seeds.

    Args:
        name_or_folder: as for `load_dataset`.
        progress: show a bar, if the output is a terminal.

    Raises:
        PointsetError: there is no such data set, or it has no pool.
    """
    root = find_folder(name_or_folder, progress)
    pools = [folder for folder in sorted(pools_home().glob("*")) if _made_from(folder) == str(root)]
    if not pools:
        raise PointsetError(f"{name_or_folder} has no pool in {pools_home()}: make one with `pointset data build`")
    return [verify_pool(folder, progress=progress) for folder in pools]


def verify_pool(folder: str | Path, *, progress: bool = True) -> Verified:
    """Read a pool whole, and the files it was made from, and compare them with its manifest.

    Args:
        folder: the pool's, such as `plan.folder`.
        progress: show a bar, if the output is a terminal.

    Returns:
        What was found; no problem is raised.
    """
    folder = Path(folder)
    try:
        manifest = read_manifest(folder)
    except PointsetError as error:
        return Verified(folder, 0, 0, (str(error),), f"rm -r {shlex.quote(str(folder))}")
    problems = list(_array_problems(folder, manifest, progress)) + list(_file_problems(manifest, progress))
    remedy = f"rm -r {shlex.quote(str(folder))}"
    if manifest.sampling.points is not None:
        flags = ["--rebuild", *(["--on-error", "skip"] if manifest.skipped else [])]
        remedy = build_command(manifest.folder, manifest.sampling, *flags)
    return Verified(folder, len(manifest.kept), len(manifest.skipped), tuple(problems), remedy)


def _array_problems(folder: Path, manifest: Manifest, progress: bool) -> Iterator[str]:
    try:
        manifest.check_arrays(folder)
    except PointsetError as error:
        yield str(error)
        return
    sizes = dict(zip((entry.name for entry in manifest.kept), manifest.sizes, strict=True))
    for name in manifest.sampling.arrays:
        with (folder / f"{name}.npy").open("rb") as file:
            file.seek(len(manifest.header))
            for entry in _bar(manifest.kept, f"reading {name}", progress):
                if checksum(file.read(sizes[entry.name] * 3 * 4)) != entry.checksums.get(name):
                    yield f"{name}.npy is damaged in the points of {entry.name}"


def _file_problems(manifest: Manifest, progress: bool) -> Iterator[str]:
    for entry in _bar(manifest.entries, "reading files", progress):
        try:
            if hash_source(Path(entry.file)) != entry.source.blake2b:
                yield f"{entry.file} has changed since the pool was made"
        except OSError as error:
            if entry.source.blake2b is not None:
                yield f"{entry.file} cannot be read any more: {error.strerror or error}"


def _bar(entries: Sequence[Entry], what: str, progress: bool) -> Iterable[Entry]:
    return tqdm(entries, desc=what, unit="shape", disable=None if progress else True)


def _made_from(folder: Path) -> str | None:
    """The data set's folder that a manifest names, if it can be read so far; of any format."""
    try:
        content = json.loads((folder / FILE).read_text(encoding="utf-8"))
        return str(content["folder"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
