"""Set networks for 3D shapes: sample meshes into point sets, train and compare classifiers, inspect attention.

    import pointset

    train = pointset.load_dataset("shapes10", split="train", points=128)
    test = pointset.load_dataset("shapes10", split="test", points=128)
    model = pointset.create_model("isab16-pma", classes=len(train.classes), dim=64)
    pointset.fit(model, train)
    print(pointset.evaluate(model, test).accuracy)

The names in `__init__.pyi`, among them subpackages such as `pointset.viz`, are loaded when they are first used, so
importing the package is fast. The subpackages `data`, `viz` and `tasks` do the same.
"""

import lazy_loader

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
