"""From a model and a cloud to maps as data: attention, rollout, occlusion, critical points, specialisation.

Imports: `zoo`, `streaming`, `nn`, `data`, `runs`. Imported by `viz`, `export` and `commands`.
"""
