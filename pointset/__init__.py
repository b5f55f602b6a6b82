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

from pointset.lazy import lazy_names

if TYPE_CHECKING:
    from pointset.comparison.comparing import Comparison, compare, run_experiment
    from pointset.comparison.experiment import read_experiment
    from pointset.configuration import DataOptions
    from pointset.data.dataset import PointSets, load_dataset
    from pointset.errors import PointsetError
    from pointset.evaluation import Evaluation, evaluate
    from pointset.evaluation.symmetry import check_symmetry
    from pointset.explain.maps import AttentionMap, attention_maps, find_map
    from pointset.export.model import Agreement, compare_latency, export_model
    from pointset.streaming.maps import StreamedMap, stream_attention
    from pointset.training.checkpoints import load_run
    from pointset.training.loop import Fitted, fit
    from pointset.training.recipe import Recipe
    from pointset.zoo.names import create_model, list_models
    from pointset.zoo.options import ModelOptions

_HOMES = {
    "comparison.comparing": ("Comparison", "compare", "run_experiment"),
    "comparison.experiment": ("read_experiment",),
    "configuration": ("DataOptions",),
    "data.dataset": ("PointSets", "load_dataset"),
    "errors": ("PointsetError",),
    "evaluation": ("Evaluation", "evaluate"),
    "evaluation.symmetry": ("check_symmetry",),
    "explain.maps": ("AttentionMap", "attention_maps", "find_map"),
    "export.model": ("Agreement", "compare_latency", "export_model"),
    "streaming.maps": ("StreamedMap", "stream_attention"),
    "training.checkpoints": ("load_run",),
    "training.loop": ("Fitted", "fit"),
    "training.recipe": ("Recipe",),
    "zoo.names": ("create_model", "list_models"),
    "zoo.options": ("ModelOptions",),
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
