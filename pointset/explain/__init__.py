"""Explanations of a model on a cloud, as data: attention maps, rollout, occlusion, critical points, specialisation.

Imports: `data`, `nn`, `runs`, `zoo`. Imported by: `commands`, `export`, `tasks`, `viz`.
"""
