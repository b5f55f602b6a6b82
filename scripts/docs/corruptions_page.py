"""The site's page of corruptions: how to use them, their definitions and their pictures."""

import inspect
from pathlib import Path

import pointset
from pointset.evaluation.corruptions import CORRUPTIONS, MODELNET40_C, SEVERITIES
from pointset.viz import draw_clouds, save

TEXT = """# Corruptions of point clouds

Three lines corrupt any array of points, for any model:

```python
noisy = pointset.corrupt(points, "background", severity=3, seed=0)   # [n, 3] or [B, n, 3], array or tensor
```

`pointset.evaluation.robustness(model, test)` measures a model of this package under all of them. The corruptions of
ModelNet40-C (arXiv 2201.12296) are here as in the authors' released code, without occlusion and lidar, which need a
renderer; the two dropouts are those of ModelNet-C (arXiv 2202.03377). The pictures show severity 3; the numbers are the
levels of severities 1 to 5, in the frame of the benchmarks (farthest point at distance 1).
"""


def write_corruptions(folder: Path) -> None:
    """Write corruptions.md and its pictures into an empty folder."""
    folder.mkdir(parents=True)
    chairs = pointset.load_dataset("shapes10", split="test", points=1024)
    points = chairs.points[chairs.labels.tolist().index(chairs.classes.index("chair"))]
    blocks = [TEXT]
    families = dict.fromkeys(corruption.family for corruption in CORRUPTIONS.values())
    for family in families:
        own = [corruption for corruption in CORRUPTIONS.values() if corruption.family == family]
        clouds = [points, *(pointset.corrupt(points, corruption.name) for corruption in own)]
        names = ["clean", *(corruption.name for corruption in own)]
        save(draw_clouds(clouds, names=names), folder / f"{family}.png")
        blocks.append(f"## {family.capitalize()}\n\n![{family} at severity 3]({family}.png)")
        for corruption in own:
            levels = ", ".join(map(str, corruption.levels))
            origin = "ModelNet40-C" if corruption.name in MODELNET40_C else "beside ModelNet40-C's"
            definition = inspect.cleandoc(corruption.apply.__doc__ or "").partition("\nSource")[0].strip()
            levels = f"Severities {SEVERITIES[0]} to {SEVERITIES[-1]}: {levels} ({origin})."
            blocks.append(f"### {corruption.name}\n\n```text\n{definition}\n```\n\n{levels}")
    (folder / "corruptions.md").write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
