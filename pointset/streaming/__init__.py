"""Logits for clouds of any size in constant memory: the cloud is read in pieces.

    scan = normalize_chunks(open_scan("hall.ply"), "unit-sphere")
    logits = model.stream(scan)  # or any function that makes an iterator over [n_i, 3] pieces

`stream` returns the logits of `model(cloud[None])` up to rounding: inducing points and seeds only need running softmax
sums (Milakov and Gimelshein, arXiv 1805.02867), poolings by statistics running totals. Layers that need all points at
once (SAB, set norm, sorted features, ...) raise an error that says so. `pointset classify hall.ply` streams, too.

Most modules work on each row separately; the others need a few statistics of the whole set: a maximum, a mean, or what
inducing points or seeds read (`running.py`, `parts.py`). So the cloud is read several times (`stream.py`): each pass
accumulates the statistics of the next module that needs some.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
