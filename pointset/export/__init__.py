"""Trained models as files that other programs read: torch.export and ONNX.

A file takes `points` float32 [batch, n, 3], any batch and any n from 1 (with a mask also `mask` bool [batch, n]), and
gives `logits`; classes, normalisation, up axis and model are in its metadata. It takes its place only when its logits
equal the model's on sets of 1, 100 and 1,500 points, within 16 times the model's own float32 rounding. Every model of
`pointset zoo` can be exported; of torch-geometric's aggregations, sort, median, quantile and its two set transformers
cannot, and say so. ONNX needs onnx, onnxruntime and onnxscript.

`describe_plainly` gives a model as plain data, for pages that compute in the browser what it computes.

Imports: `data`, `explain`, `nn`, `runs`, `training`, `zoo`. Imported by: `commands`, `tasks`.
"""
