"""Sets of any size, in constant memory: the answers of a model for a cloud that never is in memory as a whole.

    scan = normalize_chunks(open_scan("hall.ply"), "unit-sphere")
    logits = model.stream(scan)  # or any function that makes an iterator over [n_i, 3] pieces
    for found in pointset.stream_attention(model, scan, top=16):
        print(found.layer, found.indices.shape, found.entropy)  # the points each inducing point and seed reads most

`stream` gives the answer of `model(cloud[None])` to rounding: inducing points and seeds need running softmax sums only
(Milakov and Gimelshein, arXiv 1805.02867). What cannot stream (SAB, set norm, sorted features, torch-geometric's
aggregations) says so. `pointset classify hall.ply` does it from the shell.

A model is a chain (`chains.py`) of parts (`parts.py`). Most of them work on each row by itself; the others need a few
numbers that sum the set up: a maximum, a mean, what inducing points or seeds read (`running.py`). So the cloud is gone
through several times (`passes.py`): a pass runs the rows through the parts that are settled and gathers what the next
one needs. A model with L parts that need something of the set, and a pooling, takes L + 1 passes. `maps.py` watches the
attention on the way.

Imports: `data`, `nn`. Imported by: `evaluation`, `zoo`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
