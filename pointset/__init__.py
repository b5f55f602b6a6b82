"""Set networks for 3D shapes: sample meshes into point sets, train and compare classifiers, visualise attention.

    import pointset

    train = pointset.load_dataset("shapes10", split="train", points=128)
    test = pointset.load_dataset("shapes10", split="test", points=128)
    model = pointset.create_model("isab16-pma", classes=len(train.classes), dim=64)
    pointset.fit(model, train)
    print(pointset.evaluate(model, test).accuracy)

Building blocks are in `pointset.nn`. Other subpackages are named after their subject, such as `pointset.data`. Names
are imported on first use, so that the import of the package is fast.
"""

from pointset.lazy import attach

__version__ = "0.1.0"
__getattr__, __dir__, _ = attach(__name__, __file__)

# In the order of use: data, models, training, evaluation, comparison, explanation, export, scikit-learn.
__all__ = [  # noqa: RUF022
    "load_dataset",
    "from_arrays",
    "PointSets",
    "DataOptions",
    "list_models",
    "list_pretrained",
    "create_model",
    "load_model",
    "ModelOptions",
    "fit",
    "Recipe",
    "select_model",
    "evaluate",
    "check_symmetry",
    "compare",
    "rank",
    "attention_maps",
    "find_map",
    "export_model",
    "PointSetClassifier",
    "PointSetEmbedding",
    "register_pooling",
    "register_encoder",
    "register_weights",
    "PointsetError",
    "comparison",
    "data",
    "data_quality",
    "evaluation",
    "explain",
    "export",
    "nn",
    "tasks",
    "training",
    "viz",
]
