"""The page as a file: complete, small, without network access, and with the right weights."""

import base64
import dataclasses
import html
import json
import re
from typing import Any

import numpy as np
import pytest
import torch

from pointset.errors import PointsetError
from pointset.explain.faithfulness import REMOVED_SHARES, Curves
from pointset.viz import make_page


def content(page: str) -> dict[str, Any]:
    """The data that a page carries."""
    return json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)[1])


def test_the_page_carries_the_weights(attention, cloud):
    reads, writes = attention("reads"), attention("writes")
    data = content(make_page([reads, writes], cloud).html)
    assert [layer["name"] for layer in data["layers"]] == ["encoder.0.reads", "encoder.0.writes"]
    expected = (reads.weights.numpy() * len(cloud), writes.weights.numpy().swapaxes(1, 2) * 3)
    for layer, values in zip(data["layers"], expected, strict=True):
        codes = np.frombuffer(base64.b64decode(layer["values"]), dtype="<u2").reshape(values.shape)
        decoded = 2 ** (layer["low"] + (layer["high"] - layer["low"]) * codes / 65535)
        large = values > 2**-20
        assert large.mean() > 0.8
        np.testing.assert_allclose(decoded[large], values[large], rtol=1e-3)
    positions = np.frombuffer(base64.b64decode(data["positions"]), dtype="<i2").reshape(-1, 3) / 32767
    ratio = np.ptp(positions, axis=0) / np.ptp(cloud, axis=0)
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-3)


def test_rings_are_explained_where_there_are_any(attention, cloud):
    plain = attention("pools")
    sparse = dataclasses.replace(plain, weights=plain.weights * (torch.arange(len(cloud)) > 3))
    layers = content(make_page([plain, sparse], cloud).html)["layers"]
    assert ["exactly 0" in layer["meaning"] for layer in layers] == [False, True]


def test_text_of_the_user_stays_text(attention, cloud):
    nasty = "</script><script>alert(1)</script> & {{ data }} {{ script }}"
    page = make_page(attention(), cloud, title=nasty, prediction=nasty, classes=[(nasty, 1.0)]).html
    data = content(page)
    assert (data["title"], data["note"], data["classes"]) == (nasty, nasty, [[nasty, 1.0]])
    assert "<script>alert" not in page
    assert page.count("</script>") == 2
    # The page names no other address.
    assert not re.search(r"https?:(?!//www\.w3\.org/2000/svg)|//cdn|@import|url\(|\ssrc=|\shref=", page)
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', page)[1]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy


def test_a_notebook_gets_the_page_and_the_still_picture_as_two_outputs(attention, cloud, monkeypatch):
    display = pytest.importorskip("IPython.display", reason="IPython is not installed: pip install ipython")
    outputs: list[dict[str, str]] = []
    monkeypatch.setattr(display, "display", lambda bundle, raw: outputs.append(bundle))
    page = make_page(attention(), cloud, queries=[0], title="1 & 2 < 3's")
    page._ipython_display_()
    assert [set(bundle) for bundle in outputs] == [{"text/html", "text/plain"}, {"image/png", "text/plain"}]
    frame = re.fullmatch(
        r'<iframe title="[^"]+" srcdoc="([^"]*)" sandbox="allow-scripts" .*></iframe>', outputs[0]["text/html"]
    )
    assert html.unescape(frame[1]) == page.html
    assert base64.b64decode(outputs[1]["image/png"]).startswith(b"\x89PNG")


def test_the_page_opens_with_the_chosen_or_the_most_informative_layer(attention, cloud):
    def first(maps: list[Any], **asked: Any) -> int:
        return content(make_page(maps, cloud, **asked).html)["first"]

    sharp, blurred, pools = (attention(kind, layer) for kind, layer in (("reads", "a"), ("reads", "b"), ("pools", "c")))
    rooted = blurred.weights**0.5
    blurred = dataclasses.replace(blurred, weights=rooted / rooted.sum(dim=2, keepdim=True))
    uniform = dataclasses.replace(pools, weights=torch.full_like(pools.weights, 1 / len(cloud)))
    pooled = dataclasses.replace(attention("self", "head"), points_are="neither")
    assert first([sharp, blurred, pooled]) == 0
    assert first([blurred, sharp]) == 1
    assert first([sharp, pools, blurred]) == 1
    assert first([sharp, pools, blurred], layer="b.reads") == 2
    assert first([sharp, pools, blurred], queries=[0]) == 2
    assert first([sharp, uniform, blurred]) == 0
    with pytest.raises(PointsetError, match=r"'encoder\.7'.* a\.reads, b\.reads"):
        make_page([sharp, blurred], cloud, layer="encoder.7")
    with pytest.raises(PointsetError, match="no map has points"):
        make_page([pooled], cloud)


def test_heads_and_queries_can_be_chosen(attention, cloud):
    data = content(make_page(attention("self"), cloud, heads=[1]).html)
    (layer,) = data["layers"]
    assert data["order"] == "model"
    assert layer["heads"] == [1]
    assert len(set(layer["rows"])) == 16 == len(layer["spread"])
    assert layer["marks"] == layer["rows"]
    both = content(make_page([attention("reads"), attention("pools", rows=1)], cloud, queries=[2]).html)["layers"]
    assert [layer["rows"] for layer in both] == [[2], [0]]
    assert both[0]["marks"] == [-1]


def test_a_page_draws_the_curves_of_explanations(attention, cloud):
    falling, level = 1 - np.array([REMOVED_SHARES]), np.ones((1, len(REMOVED_SHARES)))
    checks = {"occlusion": Curves(falling, level), "random": Curves(level, level)}
    page = make_page(attention("reads"), cloud, checks=checks).html
    assert page.count("<polyline") == 4
    assert "occlusion (52 %)" in page
    assert "random (100 %)" in page
