"""Attention of a cloud in pieces: the statistics equal those of the whole maps, in constant memory."""

import numpy as np
import pytest
import torch
from streamed_models import CLOUD, POINTS, Source, model_of

import pointset
from pointset.errors import PointsetError
from pointset.nn import LayerNorm

MAPPED = [
    ("dumlp3-dumlp5", {}),
    ("isab5-pma3", {}),
    ("isab5-max", {"form": "paper"}),
    ("rff-pma", {"seeds": "pooled"}),
    ("rffp-pma3", {}),
]
MAPPED += [
    ("rff-pma+max+pma3", {}),
    ("dumlp3-dumlp5", {}),
    ("rff-max+pma", {"seeds": "pooled"}),
    ("isab5-pma", {"form": "paper", "prenorm": True, "layers": 3}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), MAPPED, ids=str)
def test_streamed_statistics_equal_those_of_the_whole_maps(name: str, options: dict) -> None:
    model = model_of(name, **options)
    rows = [each for each in pointset.attention_maps(model, CLOUD) if each.kind in ("reads", "pools")]
    found = pointset.stream_attention(model, lambda: iter(CLOUD.split(100)), top=4, bins=12)
    assert [(one.layer, one.kind) for one in found] == [(one.layer, one.kind) for one in rows]
    for mine, whole in zip(found, rows, strict=True):
        weights, indices = whole.weights.topk(4, dim=-1)
        assert torch.equal(mine.indices, indices)
        torch.testing.assert_close(mine.weights, weights)
        torch.testing.assert_close(mine.relative(), weights * POINTS)
        assert torch.equal(mine.coordinates, CLOUD[indices])
        torch.testing.assert_close(mine.entropy, whole.entropy())
        for row, counts in zip(whole.relative().flatten(0, 1), mine.counts.flatten(0, 1), strict=True):
            assert np.histogram(row.numpy(), mine.edges.numpy())[0].tolist() == counts.tolist()


def test_an_attention_before_a_layer_of_rows_is_traced_once() -> None:
    model = model_of("isab5-max")
    model.encoder.append(LayerNorm(16).double())
    found = pointset.stream_attention(model, CLOUD, top=POINTS)
    assert [one.layer for one in found] == ["encoder.0.reads", "encoder.1.reads"]
    torch.testing.assert_close(found[1].weights.sum(dim=-1), torch.ones(4, 5, dtype=torch.float64))


def test_histograms_have_edges_around_uniform_attention() -> None:
    model = model_of("rff-pma", temperature=0.02)
    (found,) = pointset.stream_attention(model, CLOUD, bins=10)
    torch.testing.assert_close(found.edges[1:-1].float(), torch.logspace(-4, 4, 9))
    assert found.edges[0] == 0
    assert found.edges[-1] == torch.inf
    assert found.counts.shape == (4, 1, 10)
    assert found.counts.sum(-1).eq(POINTS).all()
    assert found.counts[..., 0].any()  # some points get next to nothing
    assert found.counts[..., 7:].any()  # and a few a hundred times their share


def test_streamed_attention_of_few_points() -> None:
    (found,) = pointset.stream_attention(model_of("rff-pma"), CLOUD[:1], top=5)
    assert found.indices.tolist() == [[[0]]] * 4
    assert found.weights.tolist() == [[[1.0]]] * 4
    assert found.entropy.tolist() == [[1.0]] * 4


def test_watching_takes_one_pass_more() -> None:
    for name, expected in (("isab5-max", 4), ("isab5-pma", 4)):
        source = Source()
        pointset.stream_attention(model_of(name), source)
        assert source.started == expected


@pytest.mark.parametrize(
    ("name", "chunks", "options", "words"),
    [
        ("rff-max", CLOUD, {}, "rff-max has no inducing points or seeds.*isab"),
        ("sab-pma", CLOUD, {}, "encoder.0 is of type SAB"),
        ("isab5-max", [], {}, "the cloud is empty"),
        ("isab5-max", CLOUD, {"top": 0}, "top=0 and bins=34 are too small"),
        ("isab5-max", CLOUD, {"bins": 2}, "give at least top=1 and bins=3"),
    ],
)
def test_attention_that_cannot_be_streamed_is_a_clear_error(name: str, chunks, options: dict, words: str) -> None:
    with pytest.raises(PointsetError, match=words):
        pointset.stream_attention(model_of(name), chunks, **options)
