"""The live page of the site: trained models that come with the package, on the shapes that every page has."""

from pathlib import Path

import pointset
from pointset.viz import make_live_page
from pointset.zoo.pretrained import pretrained_card

MODELS = ("isab16-pma.modelnet40-1024", "rff-max.modelnet40-1024", "dumlp16-max+dumlp16.modelnet40-1024")


def write_live_page(path: Path) -> None:
    """Write the page."""
    path.parent.mkdir(parents=True, exist_ok=True)
    plain = [
        pointset.describe_plainly(*pointset.load_run(name), temperature=pretrained_card(name).temperature)
        for name in MODELS
    ]
    make_live_page(plain, title="Ask trained models of ModelNet40").save(path)
