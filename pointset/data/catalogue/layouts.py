"""Layouts of folders of shapes: class/file, class/split/file (as ModelNet) or split/class/file."""

import glob
from collections import Counter
from pathlib import Path

from pointset.data.catalogue.scan import BESIDE_SHAPES, EMPTY, TOO_DEEP, FileTree
from pointset.data.catalogue.splits import are_splits
from pointset.data.readers.formats import CLOUD_SUFFIXES, MESH_SUFFIXES, suffix_of
from pointset.errors import PointsetError, counted, quoted

SHAPE_TYPES = (
    f"meshes of type {', '.join(sorted(MESH_SUFFIXES))} or point clouds of type {', '.join(sorted(CLOUD_SUFFIXES))}"
)
LAYOUTS = (
    f"expected class/split/file, split/class/file or class/file with {SHAPE_TYPES}, or a table of files and labels "
    "with --labels (in Python labels=)"
)
RELEASES = "; HDF5 files are read in the layout of ModelNet40's release, with shape_names.txt and train_files.txt"


def layout_of(tree: FileTree, *, grouped: bool) -> str:
    """Return the layout of a folder; a PointsetError if it is none of the three, or has a class without shapes.

    With `grouped`, folders in a class may hold several shapes of one object.
    """
    tops = [folder for folder in tree.folders if "/" not in folder]
    loose = sum("/" not in name for name in tree.files)
    loose += sum(reason == BESIDE_SHAPES for reason, _ in tree.notes) * (not tops)
    if not tops or loose:
        where = f"beside {counted(len(tops), 'folder')}" if tops else "in no folder"
        content = f"{counted(loose, 'mesh or cloud file')} {where}" if loose else "no folder in it"
        others = Counter(
            suffix_of(name) for name, path in tree.beside.items() if (BESIDE_SHAPES, path) not in tree.notes
        )
        for suffix, count in others.items() if not tops else ():
            content += f"; {counted(count, f'{suffix} file')} that cannot be read as a point cloud"
        raise PointsetError(f"{tree.path} is not a dataset of shapes: found {content}{_further(tree)}; {LAYOUTS}")
    direct, nested = ([name for name in tree.files if name.count("/") == depth] for depth in (1, 2))
    inner = {folder.split("/")[1] for folder in tree.folders if "/" in folder}
    splits_first = are_splits(tops) and not (inner and are_splits(inner))
    if direct and (nested or splits_first):
        other = f" beside {nested[0]}" if nested else ""
        raise PointsetError(f"{tree.path} is not in a known layout: found {direct[0]}{other}; {LAYOUTS}")
    _note_empty_classes(tree, inner if splits_first else {*tops}, splits_first)
    if splits_first or not nested:
        return "split/class/file" if splits_first else "class/file"
    alone = not are_splits(inner) and len({name.rpartition("/")[0] for name in nested}) == len(nested)
    objects = grouped and not any(are_splits([name]) for name in inner)
    return "class/shape/file" if alone or objects else "class/split/file"


def _note_empty_classes(tree: FileTree, classes: set[str], splits_first: bool) -> None:
    """Note classes without a shape; a PointsetError if all are, or if the shapes of one are too deep."""
    filled = {name.split("/")[int(splits_first)] for name in tree.files}
    for class_name in sorted(classes - filled):
        folders = sorted(tree.path.glob(f"*/{glob.escape(class_name)}")) if splits_first else [tree.path / class_name]
        if not filled or TOO_DEEP in tree.noted(*folders):
            raise PointsetError(f"class {quoted(class_name)} of {tree.path} {nothing_in(tree, *folders)}; {LAYOUTS}")
        tree.notes += [(EMPTY, folder) for folder in folders]


def nothing_in(tree: FileTree, *folders: Path) -> str:
    """Return the part of a message about folders without shapes."""
    if paths := tree.noted(*folders).get(TOO_DEEP):
        return f"holds shapes in too deeply nested folders, the first is {quoted(paths[0])}: move them up"
    return f"holds no mesh and no point cloud{_further(tree, *folders)}"


def _further(tree: FileTree, *folders: Path) -> str:
    """Return the part of a message that says which files are not read."""
    texts = [f"; {text}" for text in tree.skipped(*(folders or (tree.path,))) if not text.endswith(BESIDE_SHAPES)]
    return "".join(texts) + RELEASES * any(".h5," in text or ".hdf5," in text for text in texts)
