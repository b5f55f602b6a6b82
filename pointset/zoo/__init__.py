"""Names of models, and the classifiers that they stand for.

Imports: `streaming`, `nn`. Imported by every room that makes a model.
"""
