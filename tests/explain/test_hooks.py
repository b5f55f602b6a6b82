"""Attention of modules of torch and torch-geometric: weights as computed by hand, and outputs as without hooks."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import pointset
from pointset.errors import PointsetError

N, DIM, HEADS = 7, 8, 2
X = torch.randn(3, N, 3, generator=torch.Generator().manual_seed(0))
MASK = torch.arange(N) < torch.tensor([[N], [N - 2], [N - 4]])


class Transformer(nn.Module):
    """A transformer encoder of points."""

    def __init__(self, batch_first: bool = True, **options: Any) -> None:
        super().__init__()
        self.embed = nn.Linear(3, DIM)
        layer = nn.TransformerEncoderLayer(DIM, HEADS, 16, dropout=0.3, batch_first=batch_first, **options)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.batch_first = batch_first

    def forward(self, points: Tensor, mask: Tensor | None = None) -> Tensor:
        rows = self.embed(points) if self.batch_first else self.embed(points).transpose(0, 1)
        encoded = self.encoder(rows, src_key_padding_mask=None if mask is None else ~mask)
        return encoded[:, 0] if self.batch_first else encoded[0]


class SetTransformer(nn.Module):
    """The set transformer of torch-geometric behind one of its induced blocks."""

    def __init__(self, inducing: int = 4) -> None:
        from torch_geometric.nn.aggr import SetTransformerAggregation
        from torch_geometric.nn.aggr.utils import InducedSetAttentionBlock

        super().__init__()
        self.embed, self.block = nn.Linear(3, DIM), InducedSetAttentionBlock(DIM, inducing, HEADS)
        self.pool = SetTransformerAggregation(DIM, num_seed_points=2, heads=HEADS)

    def forward(self, points: Tensor, mask: Tensor | None = None) -> Tensor:
        rows = self.block(self.embed(points), mask)
        index = torch.arange(len(points)).repeat_interleave(points.shape[1]).view(points.shape[:2])
        keep = torch.ones_like(index, dtype=torch.bool) if mask is None else mask
        return self.pool(rows[keep], index[keep])


class Gated(nn.Module):
    """An attentional aggregation of torch-geometric."""

    def __init__(self) -> None:
        from torch_geometric.nn.aggr import AttentionalAggregation

        super().__init__()
        self.pool = AttentionalAggregation(nn.Linear(3, 1), nn.Linear(3, DIM))

    def forward(self, points: Tensor, mask: Tensor | None = None) -> Tensor:
        index = torch.arange(len(points)).repeat_interleave(points.shape[1]).view(points.shape[:2])
        keep = torch.ones_like(index, dtype=torch.bool) if mask is None else mask
        return self.pool(points[keep], index[keep])


class OwnMask(Transformer):
    """A transformer that requires a mask, by torch's name: True at padded points."""

    def forward(self, points: Tensor, scale: float = 1.0, *, src_key_padding_mask: Tensor) -> Tensor:
        return super().forward(scale * points, ~src_key_padding_mask)


class Required(Transformer):
    """A transformer that requires a mask as its second argument."""

    def forward(self, points: Tensor, real: Tensor) -> Tensor:
        return super().forward(points, real)


class Maskless(Transformer):
    """A transformer of whole sets."""

    def forward(self, points: Tensor) -> Tensor:
        return super().forward(points)


@pytest.mark.parametrize("kind", [OwnMask, Required, Maskless])
def test_a_mask_is_given_as_the_module_takes_it(kind: type[Transformer]) -> None:
    model = kind()
    plain = Transformer()
    plain.load_state_dict(model.state_dict())
    clouds = [cloud[keep] for cloud, keep in zip(X, MASK, strict=True)]
    padded = ((X, MASK), (clouds,))
    if kind is Maskless:
        for arguments in padded:
            with pytest.raises(PointsetError, match=r"Maskless\.forward takes no mask: give sets of one size"):
                pointset.attention_maps(model, *arguments)
    for arguments in ((X,), (X[1], MASK[1]), *padded[: 2 * (kind is not Maskless)]):
        expected = pointset.attention_maps(plain, *arguments)
        for found, same in zip(pointset.attention_maps(model, *arguments), expected, strict=True):
            alone = [(found, same)] if found.weights.dim() == 3 else zip(found, same, strict=True)
            for one, other in alone:  # weights of padded queries have no meaning
                torch.testing.assert_close(one.weights, other.weights, rtol=1e-5, atol=1e-5)
            assert (found.layer, found.kind, found.points_are) == (same.layer, same.kind, same.points_are)


MODELS = {
    "transformer": Transformer,
    "pre-norm": lambda: Transformer(norm_first=True),
    "sequence first": lambda: Transformer(batch_first=False),
    "torch-geometric": SetTransformer,
    "gated": Gated,
}


@pytest.mark.parametrize("mask", [None, MASK], ids=["whole", "masked"])
@pytest.mark.parametrize("name", MODELS)
def test_recording_leaves_outputs_and_the_model_as_they_are(name: str, mask: Tensor | None) -> None:
    torch.manual_seed(1)
    model = MODELS[name]().train()
    with torch.no_grad():
        expected = model.eval()(X, mask)
        model.train()
        outputs: list[Tensor] = []
        handle = model.register_forward_hook(lambda _, inputs, output: outputs.append(output))
        maps = pointset.attention_maps(model, X, mask)
        handle.remove()
        torch.testing.assert_close(outputs[0], expected, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(model.eval()(X, mask), expected)
    assert torch.backends.mha.get_fastpath_enabled()
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    for attention in maps:
        torch.testing.assert_close(attention.weights.sum(dim=-1), torch.ones(attention.weights.shape[:-1]))
        if mask is not None and attention.points_are in ("keys", "both"):
            assert not attention.weights.masked_select(~mask[:, None, None]).any()
            assert attention[1].weights.shape[-1] == N - 2


def test_weights_are_those_computed_by_hand() -> None:
    model = Transformer().eval()
    first, second = pointset.attention_maps(model, X[0])
    assert (first.layer, first.kind, first.points_are) == ("encoder.layers.0.self_attn", "self", "both")
    attention = model.encoder.layers[0].self_attn
    Q, K, _ = nn.functional.linear(model.embed(X[0]), attention.in_proj_weight, attention.in_proj_bias).chunk(3, dim=1)
    for head in range(HEADS):
        columns = slice(head * DIM // HEADS, (head + 1) * DIM // HEADS)
        expected = (Q[:, columns] @ K[:, columns].T / (DIM / HEADS) ** 0.5).softmax(dim=1)
        torch.testing.assert_close(first.weights[head], expected.detach())
    assert second.layer == "encoder.layers.1.self_attn"


def test_sides_and_kinds_follow_from_the_sizes() -> None:
    maps = pointset.attention_maps(SetTransformer(), X)
    kinds = [(attention.layer, attention.kind, attention.points_are) for attention in maps]
    assert kinds == [
        ("block.mab1.attn", "reads", "keys"),
        ("block.mab2.attn", "writes", "queries"),
        ("pool.encoders.0.mab.attn", "self", "both"),
        ("pool.pma.mab.attn", "pools", "keys"),
        ("pool.decoders.0.mab.attn", "self", "neither"),
    ]
    with pytest.raises(PointsetError, match=r"block\.mab1\.attn has 7 queries and 7 keys: give another number"):
        pointset.attention_maps(SetTransformer(inducing=N), X)


def test_the_gate_of_an_aggregation_is_one_pooling() -> None:
    model = Gated()
    (pools,) = pointset.attention_maps(model, X, MASK)
    assert (pools.layer, pools.kind, pools.weights.shape) == ("pool", "pools", (3, 1, 1, N))
    gate = model.pool.gate_nn(X)[..., 0].masked_fill(~MASK, -torch.inf).softmax(dim=1).detach()
    torch.testing.assert_close(pools.weights[:, 0, 0], gate)


@pytest.mark.parametrize(("shape", "hint"), [("21, 1, 1, 1", ""), ("7, 1, 3, 3", ": its inputs")])
def test_weights_of_other_sets_are_named_and_left_out(shape: str, hint: str) -> None:
    """Of patches of one point, and of axes in another order, which is answered with batch_first."""

    class Other(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attend = nn.MultiheadAttention(3, 1, batch_first=not hint)

        def forward(self, points: Tensor) -> Tensor:
            rows = points if hint else points.flatten(0, 1)[:, None]
            return self.attend(rows, rows, rows)[0]

    with pytest.warns(UserWarning, match=rf"attend has attention weights \[{shape}\] .*: it is left out{hint}"):
        assert pointset.attention_maps(Other(), X) == []
