"""Export trained models: as torch.export programs or ONNX, and as plain data for pages that run them in a browser."""
