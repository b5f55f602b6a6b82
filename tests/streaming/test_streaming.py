"""A cloud in pieces has the logits of the whole cloud, for every part that streams, in constant memory."""

import gc
import itertools
import weakref
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from covering import Largest, covering_models
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import pointset
from pointset.errors import PointsetError
from pointset.nn import registry
from pointset.streaming import StreamingError, check_streams, stream, stream_part
from pointset.streaming.running import running_attention
from pointset.zoo.abilities import abilities


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets a small block size, so that a small cloud has several blocks, the last not full."""
    monkeypatch.setattr(stream, "block_rows", lambda device: 64)


POINTS = 1037

CLOUD = torch.randn(POINTS, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)

CLASSES = 7


def model_of(name: str, dtype: torch.dtype = torch.float64, **options) -> nn.Module:
    """A model whose norms and running statistics differ from their initial values."""
    model = pointset.create_model(name, classes=CLASSES, dim=16, **options).to(dtype).eval()
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for number in itertools.chain(model.parameters(), model.buffers()):
            if number.is_floating_point():
                number += 0.3 * torch.rand(number.shape, generator=generator, dtype=dtype)
    return model


class Source:
    """A cloud in pieces of 100 points that counts its passes."""

    def __init__(self) -> None:
        self.started = 0

    def __call__(self) -> Iterator[Tensor]:
        self.started += 1
        return iter(CLOUD.split(100))


NAMES = [*covering_models(), "isab5-pma3", "rffp-pma3", "isab5-max+pma3", "rff-max+aggr.softmax"]

OPTIONS = [
    {},
    {"form": "paper"},
    {"form": "paper", "norm": "none", "scale": "head", "temperature": 0.3},
    {"form": "paper", "prenorm": True},
    {"form": "paper", "norm": "batch"},
    {"norm": "layer"},
    {"norm": "batch", "prenorm": True},
    {"seeds": "pooled", "layers": 3},
    {"seeds": "statistics", "score": "bilinear", "trained_temperature": True},
]


def cut(cloud: Tensor, *sizes: int) -> list[Tensor]:
    return list(cloud.split([*sizes, len(cloud) - sum(sizes)]))


CASES = [(name, {}) for name in NAMES]
CASES += list(itertools.product(("isab5-max", "isab5-pma3", "rffp-pma4"), OPTIONS[1:]))
CASES += [
    ("rffp-mean+pma+sum", {"seeds": "pooled"}),
    ("rff-max", {"norm": "layer"}),
    ("rff-sum", {"norm": "batch"}),
    ("rff-pma", {"head": "rff"}),
]


def streams(name: str) -> bool:
    return abilities(model_of(name))["streams"]


def test_the_list_of_models_that_can_be_streamed() -> None:
    assert all(streams(f"{encoder}-max") for encoder in ("isab5", "rff", "rffp"))
    listed = [part.listed for part in registry.parts("pooling")]
    assert {"max", "max+mean", "mean", "pma", "sum"} <= {pooling for pooling in listed if streams(f"rff-{pooling}")}
    assert streams("pointnet")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_streamed_logits_equal_those_in_memory_or_there_is_a_clear_error(name: str, options: dict) -> None:
    if not streams(name):
        with pytest.raises(StreamingError, match=r"(the whole|on the) cloud"):
            model_of(name, **options).stream(CLOUD)
        return
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 5e-6)):
        model = model_of(name, dtype, **options)
        with torch.no_grad():
            expected = model(CLOUD[None].to(dtype))
        found = model.stream(CLOUD.to(dtype))
        assert found.shape == (1, CLASSES)
        assert found.dtype == dtype
        torch.testing.assert_close(found, expected, rtol=0, atol=tolerance * float(expected.abs().max()))


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(st.lists(st.integers(0, 200), max_size=8), st.sampled_from(["tensor", "float64", "float32", "reversed", ">f8"]))
def test_logits_do_not_depend_on_the_pieces_of_the_cloud(sizes: list[int], kind: str) -> None:
    model, cloud = MODEL, CLOUD.float()
    sizes = [size for size, total in zip(sizes, itertools.accumulate(sizes), strict=True) if total <= POINTS]
    pieces: list = cut(cloud, *sizes)
    if kind == "reversed":  # neither contiguous nor to be written to
        pieces = [np.broadcast_to(piece.numpy()[::-1].copy(), piece.shape)[::-1] for piece in pieces]
    elif kind != "tensor":
        pieces = [piece.numpy().astype(kind) for piece in pieces]
    assert torch.equal(model.stream(lambda: iter(pieces)), model.stream(cloud))


MODEL = model_of("isab5-pma3", torch.float32)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("rff-max", {}, 1),
        ("rff-pma", {}, 1),
        ("pointnet", {}, 1),
        ("rffp-max", {}, 4),
        ("isab5-max", {}, 3),
        ("isab5-pma3", {"form": "paper"}, 3),
        ("isab5-pma", {"layers": 4}, 5),
        ("isab5-pma", {"seeds": "pooled"}, 4),
        ("isab5-pma2+max+pma", {"seeds": "pooled"}, 4),
    ],
)
def test_one_pass_per_layer_and_one_for_the_pooling(name: str, options: dict, expected: int) -> None:
    source = Source()
    model_of(name, **options).stream(source)
    assert source.started == expected


@pytest.mark.parametrize("name", ["rff-max", "isab5-pma3", "pointnet"])
def test_an_empty_cloud_has_the_logits_of_an_empty_set(name: str) -> None:
    model = model_of(name)
    for chunks in ([], [CLOUD[:0]], CLOUD[:0]):
        assert torch.equal(model.stream(chunks), model(CLOUD[None, :0]))


def test_streaming_leaves_the_model_unchanged() -> None:
    """Mode, gradients and logits are as before."""
    model = model_of("isab5-pma", dropout=0.9).train()
    logits = model.stream(CLOUD)
    assert model.training
    assert not logits.requires_grad
    torch.testing.assert_close(logits, model.eval()(CLOUD[None]).detach())


def test_the_whole_cloud_is_never_held() -> None:
    """A piece is freed before the next one is created."""
    alive: list[weakref.ref] = []
    most = 0

    def pieces() -> Iterator[np.ndarray]:
        nonlocal most
        for _ in range(50):
            piece = np.random.default_rng(0).normal(size=(70, 3))
            alive.append(weakref.ref(piece))
            most = max(most, sum(ref() is not None for ref in alive))
            yield piece
            del piece

    gc.disable()  # a cycle would hide behind the collector
    try:
        MODEL.stream(pieces)
    finally:
        gc.enable()
    assert len(alive) == 150
    assert most == 1


@pytest.mark.slow
def test_no_tensor_grows_with_the_cloud() -> None:
    """The largest tensor is that of a block, even with five times the points."""
    pieces = np.array_split(CLOUD.float().numpy(), 11)
    seen = []
    for repeats in (1, 5):
        with Largest() as largest:
            MODEL.stream(pieces * repeats)
        seen.append(largest.numbers)
    assert seen[0] == seen[1] < POINTS * 3


@pytest.mark.parametrize("order", ["rising", "falling"])
def test_logits_far_apart_neither_overflow_nor_vanish(order: str) -> None:
    """exp(1e4) is infinite, so the running maximum must be right, whether it grows in every block or never."""
    model = model_of("rff-pma", temperature=1e-4)
    cloud = CLOUD[CLOUD[:, 0].argsort(descending=order == "falling")]
    expected = model(cloud[None]).detach()
    assert expected.isfinite().all()
    torch.testing.assert_close(model.stream(cloud), expected)


@pytest.mark.slow
def test_attention_of_ten_million_rows_is_exact_in_float32() -> None:
    """5,000 repetitions of 2,000 rows give the result of 2,000 rows; sums in float32 would differ by 1e-4 or more."""
    model = model_of("rff-pma", torch.float32)
    rows, mab = CLOUD[:2000, :1].float().repeat(1, 16)[None] * torch.linspace(-1, 1, 16), model.pool.pma.mab
    results = []
    for repeats in (1, 5000):
        running = running_attention(mab, model.pool.pma.seeds, nn.Identity())
        with torch.no_grad():
            for _ in range(repeats):
                running.add(rows)
            results.append(running.result())
    torch.testing.assert_close(results[1], results[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("sab-max", {}, "encoder.0 is of type SAB .* needs the whole cloud .*isab16"),
        ("sab-pma", {"form": "paper"}, "encoder.1 is of type SAB"),
        ("isab5-aggr.softmax", {}, r"pool is of type AggregationPool .*max, mean, sum, max\+mean, pma"),
        ("rff-max+gem", {}, r"pool\.pools\.1 is of type GeneralisedMeanPool .*whole cloud"),
        ("dgcnn", {}, "a DGCNN has no encoder"),
        ("isab5-max", {"norm": "set"}, "encoder.0.writes.norm_attended is of type SetNorm.*layer"),
        ("isab5-max", {"norm": "set", "prenorm": True}, "encoder.1.reads.norm_key is of type SetNorm"),
        ("rffp-max", {"norm": "instance"}, "encoder.0.norm is of type InstanceNorm"),
        ("rff-pma", {"norm": "set", "prenorm": True, "layers": 1}, "pool.pma.mab.norm_key is of type SetNorm"),
        ("rff-max", {"outputs": "all"}, "encoder.0 is of type ConnectedLayers"),
        ("isab5-max", {"weights": "sparsemax"}, "encoder.0.reads uses sparsemax weights.*softmax"),
        ("rff-pma", {"score": "additive"}, "pool.pma.mab uses softmax weights of its AdditiveScore"),
    ],
)
def test_models_that_cannot_stream_raise_before_the_first_point_is_read(name: str, options: dict, words: str) -> None:
    model, source = model_of(name, **options), Source()
    with pytest.raises(PointsetError, match=words):
        model.stream(source)
    with pytest.raises(PointsetError, match=words):
        check_streams(model)
    assert source.started == 0


@pytest.mark.parametrize(
    ("chunks", "words"),
    [
        (iter([CLOUD]), "the chunks are a list_iterator, which can be read once.*lambda: pieces"),
        ("scan.npy", r"chunks must be a function.*open_scan\(path\), got str"),
        (lambda: None, "chunks must be .* got NoneType"),
        ([CLOUD, CLOUD[:, :2]], r"piece 1 of the cloud must be numbers \[n, 3\], got torch.float64 \[1037, 2\]"),
        (CLOUD[None], r"piece 0 .* got torch.float64 \[1, 1037, 3\]"),
        (np.array([["a", "b", "c"]]), "piece 0 .* got <U1"),
        ([CLOUD, CLOUD * 1e39], r"piece 1 of the cloud has the number \S+e\+39, too large for torch.float32"),
        (CLOUD * np.nan, "piece 0 of the cloud has a number that is not finite"),
        ([[1.0, 2.0, 3.0]], r"piece 0 of the cloud is a list: give tensors or arrays \[n, 3\]"),
    ],
)
def test_wrong_chunks_are_one_clear_sentence(chunks, words: str) -> None:
    with pytest.raises(PointsetError, match=words):
        MODEL.stream(chunks)


def test_chunks_that_can_be_read_only_once_are_an_error() -> None:
    pieces = iter(CLOUD.float().split(100))
    with pytest.raises(PointsetError, match=r"1037 points in the first pass and 0 in a later.*fresh iterator"):
        MODEL.stream(lambda: pieces)


def test_a_user_defined_layer_streams_only_after_registration() -> None:
    class Doubled(nn.Module):
        def forward(self, X: Tensor, mask: Tensor | None = None) -> Tensor:
            return 2 * X

    model = model_of("isab5-max")
    model.encoder.append(Doubled())
    with pytest.raises(PointsetError, match=r"encoder.2 is of type Doubled.*stream_part.register"):
        model.stream(CLOUD)

    @stream_part.register
    def _(module: Doubled, name: str):
        yield from ()
        return module

    torch.testing.assert_close(model.stream(CLOUD), model(CLOUD[None]).detach())
