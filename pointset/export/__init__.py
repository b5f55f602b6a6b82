"""Export trained models: torch.export and ONNX.

The input of an exported model is `points`, float32 [batch, n, 3] with any batch and any n from 1 (and optionally
`mask`, bool [batch, n]); its output is `logits`. Its metadata contain the classes, the normalisation, the up axis and
the model. A file is written only if its logits equal those of the model on sets of 1, 100 and 1,500 points, up to 16
times the model's own float32 rounding error. All models of `pointset zoo` can be exported. Of torch-geometric's
aggregations, sort, median, quantile and the two set transformers cannot; the error says so. ONNX needs onnx,
onnxruntime and onnxscript.

`to_plain_data` converts a model to plain data, for pages that run it in the browser.
"""
