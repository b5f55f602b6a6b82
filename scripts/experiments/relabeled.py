"""Of the labels of ModelNet40 that ModelNet-R changes, how many are among the first that `data check` would suspect?

python scripts/experiments/relabeled.py path/to/modelnet40_ply_hdf5 results/planted/modelnet_r.csv [all]

Every line of the table has a class, the index of a shape in it, from 0 in the order of names, and its new class or
"remove"; they are the stars of replace_classes_5.xlsx (github.com/m-saeid/ModeNetR_PointSkipNet). The five classes with
changes alone are judged, or "all", training and test shapes together.
"""

import csv
import json
import sys
from pathlib import Path

import numpy as np
import torch

import pointset
from pointset.checking.check import CANDIDATE
from pointset.checking.labels import given_and_other, suspicious_labels
from pointset.data.groups import assign_folds
from pointset.training.baselines import FOLDS, baseline_of, extract_rows, fit_head, set_pose
from pointset.zoo.models import create_for


def main(release: Path, table: Path, which: str) -> None:
    """Print the recall among the first suspects, and by class, of "all" classes or of those with changes."""
    with table.open(encoding="utf-8") as file:
        changes = {f"{label}/{label}_{int(index) + 1:04}.ply": new for label, index, new in csv.reader(file)}
    changed_classes, parts, names = {name.split("/")[0] for name in changes}, [], list[str]()
    for split in ("train", "test"):
        files = sorted(release.glob(f"ply_data_{split}_*_id2file.json"))
        ids = [name for file in files for name in json.loads(file.read_text())]
        kept = [row for row, name in enumerate(ids) if which == "all" or name.split("/")[0] in changed_classes]
        sets = pointset.load_dataset(release, split=split, normalize="none", points=1024, progress=False)
        parts.append(sets.subset(kept))
        names += [ids[row] for row in kept]
    baseline = baseline_of(create_for(parts[0], CANDIDATE))
    assert baseline is not None
    set_pose(baseline, parts[0])
    blocks = [torch.cat(rows) for rows in zip(*(extract_rows(baseline, part, False) for part in parts), strict=True)]
    labels = torch.cat([part.labels for part in parts])
    alone = np.arange(len(names))
    folds = assign_folds(alone, labels.tolist(), 0, FOLDS)
    probabilities = fit_head(baseline, blocks, labels, folds, alone).softmax(dim=1).numpy()
    given = given_and_other(probabilities, labels.numpy())[0]
    suspects = suspicious_labels(probabilities, labels.numpy())
    changed = np.array([name in changes for name in names])
    order = np.argsort(given, kind="stable")
    for share in (0.05, 0.1):
        first = changed[order[: round(share * len(names))]]
        print(f"first {share:.0%}: {first.sum()} of {len(first)} are changes, recall {first.sum() / changed.sum():.1%}")
    for label in sorted(changed_classes):
        inside = np.array([name.startswith(f"{label}/") for name in names])
        print(
            f"{label}: {inside.sum()} shapes, {(inside & changed).sum()} changes, {(inside & suspects).sum()} suspects,"
        )
        print(f"  {(inside & changed & suspects).sum()} of them changes")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:] or ["changed"])
