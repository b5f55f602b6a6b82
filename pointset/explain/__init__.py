"""Explanations of a model on a cloud, as data: attention maps, rollout, occlusion, critical points, specialisation."""

from pointset.explain.faithfulness import Curves, check_explanations
from pointset.explain.importance import critical_points, occlusion_influence, rollout
from pointset.explain.inspection import Inspection, inspect_shape
from pointset.explain.maps import AttentionMap, find_map
from pointset.explain.recording import attention_maps
from pointset.explain.specialisation import DESCRIPTIONS, Specialisation, specialisation, untrained
from pointset.explain.support import Support, exact_support, support_map

__all__ = [
    "DESCRIPTIONS",
    "AttentionMap",
    "Curves",
    "Inspection",
    "Specialisation",
    "Support",
    "attention_maps",
    "check_explanations",
    "critical_points",
    "exact_support",
    "find_map",
    "inspect_shape",
    "occlusion_influence",
    "rollout",
    "specialisation",
    "support_map",
    "untrained",
]
