"""Export trained models: torch.export and ONNX.

A file takes `points` float32 [batch, n, 3], any batch and any n from 1 (with a mask also `mask` bool [batch, n]), and
gives `logits`; classes, normalisation, up axis and model are in its metadata. It is written only if its logits equal
the model's on sets of 1, 100 and 1,500 points, within 16 times the model's own float32 rounding. Every model of
`pointset zoo` can be exported. Of torch-geometric's aggregations, sort, median, quantile and its two set transformers
cannot; the error says so. ONNX needs onnx, onnxruntime and onnxscript.

`describe_plainly` converts a model to plain data, for pages that run it in the browser.

Imports: `data`, `explain`, `nn`, `runs`, `training`, `zoo`. Imported by: `commands`, `tasks`.
"""
