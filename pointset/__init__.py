"""Set networks for 3D shapes: sample meshes into point sets, train and compare classifiers, look at attention.

    import pointset

    train = pointset.load_dataset("shapes10", split="train", points=128)
    test = pointset.load_dataset("shapes10", split="test", points=128)
    model = pointset.create_model("isab16-pma", classes=len(train.classes), dim=64)
    pointset.fit(model, train)
    print(pointset.evaluate(model, test).accuracy)

Names are loaded when they are first used, so that importing the package costs nothing.
"""

from typing import TYPE_CHECKING

from pointset.attention_maps import AttentionMap, attention_maps, find_map
from pointset.lazy import lazy_names

if TYPE_CHECKING:
    from pointset.checkpoints import load_run
    from pointset.comparison import Comparison, compare, run_experiment
    from pointset.configuration import DataOptions, ModelOptions, Recipe
    from pointset.data.dataset import PointSets, load_dataset
    from pointset.errors import PointsetError
    from pointset.evaluation import Evaluation, evaluate
    from pointset.experiments import read_experiment
    from pointset.export import Agreement, compare_latency, export_model
    from pointset.streaming.maps import StreamedMap, stream_attention
    from pointset.symmetry import check_symmetry
    from pointset.training import Fitted, fit
    from pointset.zoo import create_model, list_models

_HOMES = {
    "checkpoints": ("load_run",),
    "comparison": ("Comparison", "compare", "run_experiment"),
    "configuration": ("DataOptions", "ModelOptions", "Recipe"),
    "data.dataset": ("PointSets", "load_dataset"),
    "errors": ("PointsetError",),
    "evaluation": ("Evaluation", "evaluate"),
    "experiments": ("read_experiment",),
    "export": ("Agreement", "compare_latency", "export_model"),
    "streaming.maps": ("StreamedMap", "stream_attention"),
    "symmetry": ("check_symmetry",),
    "training": ("Fitted", "fit"),
    "zoo": ("create_model", "list_models"),
}

__all__ = [
    "Agreement",
    "AttentionMap",
    "Comparison",
    "DataOptions",
    "Evaluation",
    "Fitted",
    "ModelOptions",
    "PointSets",
    "PointsetError",
    "Recipe",
    "StreamedMap",
    "attention_maps",
    "check_symmetry",
    "compare",
    "compare_latency",
    "create_model",
    "evaluate",
    "export_model",
    "find_map",
    "fit",
    "list_models",
    "load_dataset",
    "load_run",
    "read_experiment",
    "run_experiment",
    "stream_attention",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
