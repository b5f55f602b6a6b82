"""From a model and a cloud to maps as data: attention, rollout, occlusion, critical points, specialisation.

Imports: `data`, `nn`, `runs`, `zoo`. Imported by: `commands`, `export`, `tasks`, `viz`.
"""
