"""Dual-MLP attention against its formulas, written out set by set and row by row in float64."""

import pytest
import torch
from torch import Tensor, nn

import pointset
from pointset.errors import PointsetError
from pointset.evaluation.costs import multiply_adds
from pointset.explain.rollout import rollout
from pointset.nn.encoders.dumlp import InteractionLayer
from pointset.nn.fast.packing import Packed
from pointset.nn.pooling.dumlp import DualMLPPool

LENGTHS = (5, 9, 0, 1, 9)
NORMS = ("batch", "none", "layer")


def sets(width: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(4)
    return [torch.randn(length, width, generator=generator, dtype=torch.float64) for length in LENGTHS]


def padded(rows: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Batch and mask, with NaN in the padding."""
    X = torch.full((len(rows), max(LENGTHS), rows[0].shape[1]), torch.nan, dtype=torch.float64)
    mask = torch.zeros(X.shape[:2], dtype=torch.bool)
    for number, one in enumerate(rows):
        X[number, : len(one)], mask[number, : len(one)] = one, True
    return X, mask


def moved(module: nn.Module, train: bool) -> nn.Module:
    """The module in float64, with biases and statistics that differ from their initial values."""
    generator = torch.Generator().manual_seed(5)
    for tensor in module.state_dict().values():
        if tensor.is_floating_point():
            tensor += 0.3 * torch.rand(tensor.shape, generator=generator)
    return module.double().train(train)


def normed(rows: list[Tensor], norm: nn.Module) -> list[Tensor]:
    """Rows of all sets through batch norm or layer norm, by the formula."""
    if not list(norm.parameters()):
        return rows
    together = torch.cat(rows)
    if not hasattr(norm, "running_mean"):
        mean, variance = together.mean(1, keepdim=True), together.var(1, correction=0, keepdim=True)
    elif norm.training:
        mean, variance = together.mean(0), together.var(0, correction=0)
    else:
        mean, variance = norm.running_mean, norm.running_var
    together = (together - mean) / (variance + 1e-5).sqrt() * norm.weight + norm.bias
    return list(together.split([len(one) for one in rows]))


def linear(rows: list[Tensor], layer: nn.Linear) -> list[Tensor]:
    bias = 0.0 if layer.bias is None else layer.bias
    return [one @ layer.weight.T + bias for one in rows]


def network(rows: list[Tensor], layers: nn.Module) -> list[Tensor]:
    for number, (one, norm) in enumerate(zip(layers.linear, layers.norm, strict=True)):
        rows = [row.clamp(min=0) for row in rows] if number else rows
        rows = normed(linear(rows, one), norm)
    return rows


def read(rows: list[Tensor], module: nn.Module) -> list[Tensor]:
    """A^T V of each set."""
    pairs = zip(network(rows, module.logits), network(rows, module.values), strict=True)
    found = []
    for logits, values in pairs:
        weights = (logits - logits.max(dim=0).values).exp() if len(logits) else logits
        weights = weights / weights.sum(dim=0)
        found.append(sum((torch.outer(a, v) for a, v in zip(weights, values, strict=True)), torch.zeros(module.k, 4)))
    return found


def interacted(rows: list[Tensor], module: InteractionLayer) -> list[Tensor]:
    shared = [S.double().flatten() @ module.summary.weight.T for S in read(rows, module.reads)]
    changed = [own + one for own, one in zip(linear(rows, module.rows), shared, strict=True)]
    pairs = zip(rows, normed(changed, module.norm), strict=True)
    return [row + one.clamp(min=0) for row, one in pairs]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize(("width", "hidden"), [(3, [4, 16]), (15, [4, 16]), (16, [16]), (20, [16])])
def test_the_pooling_is_its_formula(width, hidden, train, norm):
    pool, rows = moved(DualMLPPool(6, width, 16, norm), train), sets(width)
    assert [one.out_features for one in pool.logits.linear] == [*hidden, 6]
    assert [one.out_features for one in pool.values.linear] == [*hidden, 4]
    expected = torch.stack([one.double() for one in read(rows, pool)])
    found = pool(*padded(rows))
    assert found.shape == (5, 6, 4)
    assert (found[2] == 0).all()
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(pool(torch.cat(rows), Packed(LENGTHS)), expected)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("train", [True, False])
def test_the_interaction_is_its_formula(train, norm):
    layer, rows = moved(InteractionLayer(16, 3, norm), train), sets(16)
    expected = torch.cat(interacted(rows, layer))
    X, mask = padded(rows)
    torch.testing.assert_close(layer(X, mask)[mask], expected)
    torch.testing.assert_close(layer(torch.cat(rows), Packed(LENGTHS)), expected)


@pytest.mark.parametrize("module", [DualMLPPool(2, 3, 4, None), InteractionLayer(4, 2, "batch")], ids=["pool", "layer"])
def test_gradients_are_exact(module):
    width = module.rows.in_features if isinstance(module, InteractionLayer) else 3
    X, mask = padded(sets(width))
    X = X.nan_to_num()[[0, 3, 2]].requires_grad_()
    module = moved(module, train=True)

    def call(X: Tensor, *parameters: Tensor) -> Tensor:
        named = dict(zip(dict(module.named_parameters()), parameters, strict=True))
        return torch.func.functional_call(module, named, (X, mask[[0, 3, 2]]))

    assert torch.autograd.gradcheck(
        call, (X, *(one.detach().requires_grad_() for one in module.parameters())), fast_mode=True
    )


def test_the_published_network_has_its_number_of_parameters_and_operations():
    """3 -> 32 -> 128 -> 32 twice, no bias before a batch norm, 1024 -> 256 -> 40."""
    model = pointset.create_model("none-dumlp32", classes=40, dim=128, head_dim=256, head_norm="batch")
    assert sum(one.numel() for one in model.parameters()) == 290_280
    assert multiply_adds(model, 100) == 2_032_384


def test_without_an_encoder_other_poolings_get_rows_of_width_dim():
    raw, embedded = (pointset.create_model(name, dim=16, inputs=5) for name in ("none-dumlp2", "none-max"))
    assert not list(raw.encoder.parameters())
    assert raw.pool.logits.weight.shape == (4, 5)
    assert embedded.encode(torch.zeros(1, 7, 5)).shape == (1, 7, 16)


@pytest.mark.parametrize("name", ["none-dumlp2", "dumlp2-max"])
def test_a_model_of_several_poolings_embeds_its_points_once(name):
    """If one of two joined poolings needs rows of width dim, both get rows of this width."""
    model = pointset.create_model(f"{name}+max", dim=16)
    assert model.encode(torch.zeros(1, 7, 3)).shape == (1, 7, 16)


@pytest.mark.parametrize("name", ["none-dumlp1", "dumlp1-dumlp1"])
def test_a_model_of_width_one_works(name):
    model = pointset.create_model(name, classes=2, dim=1, heads=1, layers=1)
    assert model(torch.randn(3, 4, 3)).isfinite().all()


def test_mixed_precision_sums_in_float32():
    model = pointset.create_model("none-dumlp8", classes=4, dim=16).eval()
    points = torch.randn(2, 300, 3, generator=torch.Generator().manual_seed(0))
    exact = model.pool(points)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = model.pool(points)
    assert rounded.dtype == torch.float32
    assert not torch.equal(rounded, exact)
    torch.testing.assert_close(rounded, exact, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("name", ["dumlp16-max", "rff-dumlp32", "rff-aggr.softmax"])
def test_a_model_converted_to_another_type_returns_logits_of_that_type(name, dtype):
    """`model.half()`: sums are in float32, but the layers after them have weights of the model's type."""
    points = torch.randn(2, 9, 3, generator=torch.Generator().manual_seed(0))
    expected = pointset.create_model(name, classes=4, dim=16).eval()(points)
    model = pointset.create_model(name, classes=4, dim=16).eval().to(dtype)
    mask = torch.ones(2, 9, dtype=torch.bool)
    packed = model.packed(points.to(dtype).flatten(0, 1), torch.arange(2).repeat_interleave(9))
    for found in (model(points.to(dtype)), model(points.to(dtype), mask), packed):
        assert found.dtype == dtype
        torch.testing.assert_close(found.float(), expected, atol=0.02, rtol=0.02)


def test_maps_are_one_head_of_k_rows():
    model = pointset.create_model("dumlp3-dumlp5", dim=16).eval()
    cloud = torch.randn(9, 3, generator=torch.Generator().manual_seed(0))
    maps = pointset.attention_maps(model, cloud)
    assert [(one.layer, one.kind, tuple(one.weights.shape)) for one in maps] == [
        ("encoder.1.reads", "reads", (1, 3, 9)),
        ("encoder.2.reads", "reads", (1, 3, 9)),
        ("pool", "pools", (1, 5, 9)),
    ]
    torch.testing.assert_close(
        maps[2].weights[0] @ model.pool.values(model.encode(cloud[None]))[0], pooled(model, cloud)
    )
    with pytest.raises(PointsetError, match="occlusion"):
        rollout(maps)


def pooled(model: nn.Module, cloud: Tensor) -> Tensor:
    return model.pool(model.encode(cloud[None]))[0]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none-dumlp4", r"pool\.logits\.norm\.0 is of type SetNorm"),
        ("dumlp4-max", r"encoder\.0\.norm\.0 is of type SetNorm"),
    ],
)
def test_a_norm_of_whole_sets_does_not_stream(name, words):
    model = pointset.create_model(name, dim=16, norm="set")
    with pytest.raises(PointsetError, match=words):
        model.stream([torch.zeros(4, 3)])


def test_streamed_maps_are_those_of_the_whole_cloud():
    from pointset.streaming.maps import stream_attention

    model = moved(pointset.create_model("dumlp3-dumlp5", dim=16), train=False)
    cloud = torch.randn(50, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    whole, streamed = pointset.attention_maps(model, cloud), stream_attention(model, list(cloud.split(7)), top=4)
    assert [(one.layer, one.kind) for one in streamed] == [(one.layer, one.kind) for one in whole]
    for one, other in zip(streamed, whole, strict=True):
        torch.testing.assert_close(one.weights, other.top(4)[1])
