"""Every way to compute attention, against a transcription of the formula and against torch's own module; also with
user-defined functions in place of softmax."""

import math

import pytest
import torch
from torch import Tensor
from toy import OWN_WEIGHTS, Sharpened, normal

import pointset
from pointset.configuration import AttentionOptions
from pointset.errors import PointsetError
from pointset.explain.importance import rollout
from pointset.nn import ISAB
from pointset.nn.attention import Multihead, explicit
from pointset.nn.fast.absorbed import Projection, absorbed, absorbed_in_tiles
from pointset.nn.fast.kernels import fused

# Every size differs, so that a swapped axis fails.
B, N, M, DIM_QUERY, DIM_KEY, DIM, HEADS = 2, 3, 7, 5, 11, 12, 4


def inputs(batch: int = B) -> tuple[Tensor, Tensor, Tensor]:
    mask = torch.tensor([[True] * 4 + [False] * 3, [True, False] * 3 + [True]])
    return normal(batch, N, DIM_QUERY), normal(B, M, DIM_KEY, seed=1), mask


def transcribed(attention: Multihead, X: Tensor, Y: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    """concat_j(w(Q_j K_j^T s) V_j) W^O with w = softmax or another, one set, one head and one query at a time."""
    result = torch.zeros(Y.shape[0], X.shape[1], DIM, dtype=torch.float64)
    own, width = [*attention.weights.functions.values()], DIM // HEADS
    for b in range(Y.shape[0]):
        x = X[b if X.shape[0] > 1 else 0]
        y = Y[b] if mask is None else Y[b][mask[b]]
        for j in range(HEADS):
            part = slice(j * width, (j + 1) * width)
            keys = y @ attention.key.weight[part].T + attention.key.bias[part]
            values = y @ attention.value.weight[part].T + attention.value.bias[part]
            for i in range(X.shape[1]):
                query = attention.query.weight[part] @ x[i] + attention.query.bias[part]
                logits = (keys @ query * scale)[None, None, None]
                weights = own[0](logits) if own else logits.exp() / logits.exp().sum()
                result[b, i, part] = weights[0, 0, 0] @ values
    return result @ attention.output.weight.T + attention.output.bias


KERNELS = {kernel.__name__: kernel for kernel in (explicit, fused, absorbed, absorbed_in_tiles)}


def computed(attention: Multihead, kernel: str, X: Tensor, Y: Tensor, mask: Tensor | None) -> Tensor:
    Q, K, V = attention.query(X), Projection(Y, attention.key), Projection(Y, attention.value)
    return KERNELS[kernel](Q, K, V, mask, attention.score, attention.weights)


@pytest.mark.parametrize("batch", [1, B], ids=["shared queries", "own queries"])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    ("kernel", "weights"), [*((name, "softmax") for name in KERNELS), *(("explicit", own) for own in OWN_WEIGHTS)]
)
def test_every_kernel_equals_the_formula(kernel, weights, masked, batch):
    attention = Multihead(
        DIM_QUERY, DIM_KEY, DIM, AttentionOptions(heads=HEADS, form="paper", weights=weights)
    ).double()
    X, Y, mask = inputs(1 if kernel == "absorbed_in_tiles" else batch)
    keep = mask if masked else None
    result = attention.output(computed(attention, kernel, X, Y, keep))
    torch.testing.assert_close(result, transcribed(attention, X, Y, keep, 1 / math.sqrt(DIM)))


@pytest.mark.parametrize("scale", ["model", "head"])
def test_agrees_with_torch(scale):
    """torch.nn.MultiheadAttention scales by sqrt(d / h): ours equals it with "head", and must not with "model"."""
    ours = Multihead(DIM, DIM, DIM, AttentionOptions(heads=HEADS, form="paper", scale=scale)).double()
    theirs = torch.nn.MultiheadAttention(DIM, HEADS, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([part.weight for part in (ours.query, ours.key, ours.value)]))
        theirs.in_proj_bias.copy_(torch.cat([part.bias for part in (ours.query, ours.key, ours.value)]))
        theirs.out_proj.weight.copy_(ours.output.weight)
        theirs.out_proj.bias.copy_(ours.output.bias)
    X = torch.randn(B, N, DIM, dtype=torch.float64)
    Y = torch.randn(B, M, DIM, dtype=torch.float64)
    mask = inputs()[2]
    record: list[torch.Tensor] = []
    ours.record = record.append
    expected, weights = theirs(X, Y, Y, key_padding_mask=~mask, average_attn_weights=False)
    found = ours(X, Y, mask)
    if scale == "head":
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(record[0], weights)
    else:
        assert (found - expected).abs().max() > 1e-3


@pytest.mark.parametrize("kernel", KERNELS)
def test_attention_to_an_empty_set_is_zero_with_finite_gradients(kernel, monkeypatch):
    monkeypatch.setattr("pointset.nn.attention.choose_kernel", lambda *_: KERNELS[kernel])
    attention = Multihead(DIM_QUERY, DIM_KEY, DIM, AttentionOptions(heads=HEADS))
    X, Y, mask = inputs(1)
    X, Y = X.float(), Y.float().requires_grad_()
    mask[1] = False
    result = attention(X, Y, mask)
    result.sum().backward()
    assert (result[1] == 0).all()
    assert (result[0] != 0).any()
    assert Y.grad.isfinite().all()
    assert (Y.grad[1] == 0).all()


def test_every_block_has_its_own_copy_of_a_module_of_weights():
    shared = Sharpened()
    isab = ISAB(8, 8, 3, AttentionOptions(heads=2, weights=shared)).double()
    isab(normal(3, 5, 8)).sum().backward()
    powers = [parameter for name, parameter in isab.named_parameters() if name.endswith("power")]
    assert len(powers) == 2
    assert all(power is not shared.power and power.grad is not None for power in powers)


def test_maps_of_ones_own_weights_need_not_sum_to_one():
    model = pointset.create_model("isab3-pma2", classes=4, dim=8, heads=2, weights=torch.sigmoid).eval().double()
    maps = pointset.attention_maps(model, normal(1, 9, 3))
    assert [found.kind for found in maps] == ["reads", "writes", "reads", "writes", "pools", "self"]
    assert all(((found.weights >= 0) & (found.weights <= 1)).all() for found in maps)
    assert any((found.weights.sum(dim=-1) - 1).abs().max() > 0.1 for found in maps)
    assert all(found.entropy().isfinite().all() and found.entropy().max() <= 1 + 1e-6 for found in maps)
    with pytest.raises(PointsetError, match=r"encoder\.0\.reads do not sum to 1"):
        rollout([found[0] for found in maps])


def test_mixed_precision_may_give_other_types():
    with torch.autocast("cpu", torch.bfloat16):
        assert pointset.nn.SAB(8, 8)(torch.zeros(2, 5, 8).bfloat16()).shape == (2, 5, 8)
