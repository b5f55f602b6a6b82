"""Verify pools and their source files, or the files of a release, by reading every byte."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pointset.data.catalogue.cards import Card
from pointset.data.catalogue.locate import locate_data, pools_home
from pointset.data.catalogue.released import is_released
from pointset.data.pool import digest_of
from pointset.data.pools.manifest import FILE, Manifest, hash_source, read_manifest
from pointset.data.pools.plan import build_command
from pointset.errors import PointsetError
from pointset.runs import digests
from pointset.runs.progress import followed


@dataclass(frozen=True)
class Verified:
    """Result of verifying one pool, or the files of a release."""

    folder: Path
    shapes: int
    skipped: int
    problems: tuple[str, ...]
    remedy: str
    """The command that repairs it."""
    what: str = "shapes"
    """Plural noun for what was verified: "shapes", or "files" of a release."""


def verify_dataset(name_or_folder: str | Path, *, progress: bool = True) -> list[Verified]:
    """Verify all pools of a dataset, or the files of a release by their digests.

    Raises:
        PointsetError: the dataset is unknown or has no pool, or no digests of the release's files are known.
    """
    card, root = locate_data(name_or_folder, progress=progress)
    if is_released(root):
        return [_verify_release(root, card)]
    pools = [folder for folder in sorted(pools_home().glob("*")) if folder.is_dir() and _made_from(folder, root)]
    if not pools:
        raise PointsetError(f"{name_or_folder} has no pool in {pools_home()}: make one with `pointset data build`")
    return [verify_pool(folder, progress=progress) for folder in pools]


def _verify_release(folder: Path, card: Card | None) -> Verified:
    if card is None or not card.files:
        raise PointsetError(f"{folder} cannot be verified: the digests of its files are not known")
    problems = []
    for name in card.files:
        try:
            card.check_file(folder, name)
        except PointsetError as error:
            problems.append(str(error))
    remedy = f"rm -r {shlex.quote(str(folder))}, and get the release again"
    return Verified(folder, len(card.files), 0, tuple(problems), remedy, "files")


def verify_pool(folder: Path, *, progress: bool = True) -> Verified:
    """Compare a pool and its source files with its manifest; problems are returned, not raised."""
    remedy = f"rm -r {shlex.quote(str(folder))}"
    try:
        manifest = read_manifest(folder)
    except PointsetError as error:
        return Verified(folder, 0, 0, (str(error),), remedy)
    if manifest.sampling.points is not None:
        flags = ["--rebuild", *(["--on-error", "skip"] if manifest.failures else [])]
        remedy = build_command(manifest.folder, manifest.sampling, *flags)
    problems = tuple(_problems(folder, manifest, progress))
    return Verified(folder, len(manifest.kept), len(manifest.failures), problems, remedy)


def _problems(folder: Path, manifest: Manifest, progress: bool) -> Iterator[str]:
    try:
        arrays = manifest.open_arrays(folder)
    except PointsetError as error:
        yield str(error)
        arrays = {}
    kept, offsets = manifest.kept, manifest.offsets
    for name, array in arrays.items():
        for index, entry in enumerate(followed(kept, f"reading {name}", "shape", len(kept), show=progress)):
            block = array[index] if manifest.sampling.points else array[offsets[index] : offsets[index + 1]]
            if digest_of(block) != entry.checksums.get(name):
                yield f"{name}.npy is damaged in the points of {entry.name}"
    for entry in followed(manifest.entries, "reading files", "shape", len(manifest.entries), show=progress):
        try:
            if hash_source(Path(entry.file)) != entry.source.blake2b:
                yield f"{entry.file} has changed since the pool was made"
        except OSError as error:
            if entry.source.blake2b is not None:
                yield f"{entry.file} cannot be read any more: {error.strerror or error}"


def _made_from(folder: Path, root: Path) -> bool:
    """True if a pool, of any format, was made from a dataset's folder; judged by name if its manifest is damaged."""
    try:
        content = digests.read_json(folder / FILE, "build the pool again")
        return bool(content["folder"] == str(root))
    except (PointsetError, KeyError, TypeError):
        return bool(re.fullmatch(rf"{re.escape(root.name)}-(train|test)-[0-9a-f]{{16}}", folder.name))
