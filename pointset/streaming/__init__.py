"""Logits and attention for clouds of any size in constant memory: the cloud is read in pieces.

    scan = normalize_chunks(open_scan("hall.ply"), "unit-sphere")
    logits = model.stream(scan)  # or any function that makes an iterator over [n_i, 3] pieces
    for found in pointset.stream_attention(model, scan, top=16):
        print(found.layer, found.indices.shape, found.entropy)  # the points each inducing point and seed reads most

`stream` returns the logits of `model(cloud[None])` up to rounding: inducing points and seeds only need running softmax
sums (Milakov and Gimelshein, arXiv 1805.02867). Layers that cannot stream (SAB, set norm, sorted features,
torch-geometric's aggregations) raise an error that says so. `pointset classify hall.ply` streams on the command line.

A model is a chain (`chains.py`) of parts (`parts.py`). Most parts work on each row separately; the others need a few
statistics of the whole set: a maximum, a mean, or what inducing points or seeds read (`running.py`). So the cloud is
read several times (`passes.py`): each pass runs the rows through the parts whose statistics are known and gathers those
of the next part. A model with L parts that need statistics, and a pooling, takes L + 1 passes. `maps.py` records the
attention during these passes.

Imports: `data`, `nn`. Imported by: `evaluation`, `zoo`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
