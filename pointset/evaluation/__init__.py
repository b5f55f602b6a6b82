"""Numbers from predictions: accuracy, and how far it can be trusted."""

from pointset.evaluation.predictions import Evaluation, evaluate

__all__ = ["Evaluation", "evaluate"]
