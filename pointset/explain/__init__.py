"""Explanations of a model on a cloud, as data: attention maps, rollout, occlusion, critical points, specialisation."""
