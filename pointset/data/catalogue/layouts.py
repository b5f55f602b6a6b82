"""Layouts of folders of shapes: class/file, class/split/file (as ModelNet) or split/class/file."""

from pathlib import Path

from pointset.data.catalogue.scan import BESIDE_SHAPES, EMPTY, TOO_DEEP, FileTree
from pointset.data.catalogue.splits import are_splits
from pointset.data.readers.formats import CLOUD_SUFFIXES, MESH_SUFFIXES
from pointset.errors import PointsetError, counted, quoted

SHAPE_TYPES = (
    f"meshes of type {', '.join(sorted(MESH_SUFFIXES))} or point clouds of type {', '.join(sorted(CLOUD_SUFFIXES))}"
)
LAYOUTS = (
    f"expected class/split/file, split/class/file or class/file with {SHAPE_TYPES}, or a table of files and labels "
    "with --labels (in Python labels=)"
)
RELEASES = "; HDF5 files are read in the layout of ModelNet40's release, with shape_names.txt and train_files.txt"


def layout_of(tree: FileTree) -> str:
    """Return the layout of a folder; a PointsetError if it is none, or if shapes of a class are too deep.

    Folders in a class that are not called like splits are objects: class/object/file. Empty classes are noted.
    """
    tops = [folder for folder in tree.folders if "/" not in folder]
    loose = sum("/" not in name for name in tree.files)
    loose += sum(reason == BESIDE_SHAPES for reason, _ in tree.notes) * (not tops)
    if not tops or loose:
        where = f"beside {counted(len(tops), 'folder')}" if tops else "in no folder"
        content = f"{counted(loose, 'mesh or cloud file')} {where}" if loose else "no folder in it"
        raise PointsetError(f"{tree.path} is not a dataset of shapes: found {content}{_skipped(tree)}; {LAYOUTS}")
    direct, nested = ([name for name in tree.files if name.count("/") == depth] for depth in (1, 2))
    inner = {folder.split("/")[1] for folder in tree.folders if "/" in folder}
    splits_first = are_splits(tops) and not (inner and are_splits(inner))
    if direct and (nested or splits_first):
        other = f" beside {nested[0]}" if nested else ""
        raise PointsetError(f"{tree.path} is not in a known layout: found {direct[0]}{other}; {LAYOUTS}")
    _note_empty_classes(tree, int(splits_first))
    if splits_first or not nested:
        return "split/class/file" if splits_first else "class/file"
    return "class/split/file" if any(are_splits([name]) for name in inner) else "class/object/file"


def _note_empty_classes(tree: FileTree, level: int) -> None:
    """Note classes without a shape; a PointsetError if all are, or if the shapes of one are too deep."""
    filled = {name.split("/")[level] for name in tree.files}
    folders = [folder for folder in tree.folders if folder.count("/") == level]
    for class_name in sorted({folder.split("/")[level] for folder in folders} - filled):
        paths = [tree.path / folder for folder in folders if folder.split("/")[level] == class_name]
        if not filled or TOO_DEEP in tree.skipped(*paths):
            raise PointsetError(f"class {quoted(class_name)} of {tree.path} {nothing_in(tree, *paths)}; {LAYOUTS}")
        tree.notes += [(EMPTY, path) for path in paths]


def nothing_in(tree: FileTree, *folders: Path) -> str:
    """Return the part of a message about folders without shapes."""
    return f"holds no mesh and no point cloud{_skipped(tree, *folders)}"


def _skipped(tree: FileTree, *folders: Path) -> str:
    """Return the part of a message that says which files are not read."""
    texts = [f"; {text}" for reason, text in tree.skipped(*folders).items() if reason != BESIDE_SHAPES]
    return "".join(texts) + RELEASES * any(".h5," in text or ".hdf5," in text for text in texts)
