"""User-defined functions as the activation of attention: against the formula, and with masks."""

import pytest
import torch
from torch import Tensor, nn

import pointset
from pointset.configuration import AttentionOptions
from pointset.errors import PointsetError
from pointset.explain.importance import rollout
from pointset.nn import ISAB, PMA, SAB, Multihead, Weights

B, HEADS, DIM = 3, 2, 8


def sparse(logits: Tensor) -> Tensor:
    """Normalises over the keys, so that a padded key would change the weights of the others."""
    return torch.softmax(2 * logits, dim=-1) - 0.125 * torch.tanh(logits)


def told(logits: Tensor, mask: Tensor | None = None) -> Tensor:
    assert mask is None or mask.shape == (len(logits), 1, 1, logits.shape[-1])
    return 1 + logits.sin()


class Sharpened(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.power = nn.Parameter(torch.ones((), dtype=torch.float64))

    def forward(self, logits: Tensor) -> Tensor:
        return logits.sigmoid() ** self.power


FUNCTIONS = {"sigmoid": torch.sigmoid, "normalised": sparse, "told": told, "trained": Sharpened()}


def rows(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.fixture(autouse=True)
def _seeded():
    with torch.random.fork_rng():
        torch.manual_seed(3)
        yield


def written_out(attention: Multihead, function, x: Tensor, y: Tensor) -> Tensor:
    """concat_j(w(s Q_j K_j^T) V_j) W^O of one set."""
    Q, K, V = (layer(part) for layer, part in ((attention.query, x), (attention.key, y), (attention.value, y)))
    width = DIM // HEADS
    heads = [slice(j * width, (j + 1) * width) for j in range(HEADS)]
    logits = [Q[:, h] @ K[:, h].T / DIM**0.5 for h in heads]
    return attention.output(torch.cat([function(z) @ V[:, h] for z, h in zip(logits, heads, strict=True)], dim=1))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("form", ["reference", "paper"])
@pytest.mark.parametrize(
    ("queries", "shared", "keys"), [(2, True, 90), (60, False, 3), (7, False, 7), (80, False, 100)]
)
def test_attention_is_its_formula(name, form, queries, shared, keys):
    """Few shared queries, few keys, and neither: ways that are valid only for softmax must not be chosen."""
    function = FUNCTIONS[name]
    attention = Multihead(DIM, DIM, DIM, AttentionOptions(heads=HEADS, form=form, weights=function)).double()
    own = next(iter(attention.weights.functions.values()))
    X, Y = rows(1 if shared else B, queries, DIM), rows(B, keys, DIM, seed=1)
    expected = torch.stack([written_out(attention, own, x, y) for x, y in zip(X.expand(B, -1, -1), Y, strict=True)])
    torch.testing.assert_close(attention(X, Y), expected)
    wanted = torch.autograd.grad(expected.square().sum(), list(attention.parameters()))
    found = torch.autograd.grad(attention(X, Y).square().sum(), list(attention.parameters()))
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("block", ["SAB", "ISAB", "PMA"])
def test_padding_is_not_seen(name, block):
    """Gradients too; the middle set is empty."""
    options = AttentionOptions(heads=HEADS, weights=FUNCTIONS[name])
    make = {"SAB": lambda: SAB(DIM, DIM, options), "ISAB": lambda: ISAB(DIM, DIM, 3, options)}
    module = make.get(block, lambda: PMA(DIM, 2, options))().double()
    lengths = (5, 0, 3)
    X = rows(B, 5, DIM)
    mask = torch.arange(5) < torch.tensor(lengths)[:, None]
    alone = torch.cat([module(X[b : b + 1, :n]).flatten(0, 1) for b, n in enumerate(lengths) if n])
    of_real = mask if block != "PMA" else mask.any(dim=1)

    def gradients(result: Tensor) -> tuple[Tensor, ...]:
        return torch.autograd.grad(result.square().sum(), list(module.parameters()))

    for garbage in (0.0, torch.nan, 1e30):
        padded = module(X.masked_fill(~mask[..., None], garbage), mask)[of_real].flatten(0, -2)
        torch.testing.assert_close(padded, alone)
    for one, other in zip(*map(gradients, (padded, alone)), strict=True):
        torch.testing.assert_close(one, other)


def test_every_block_has_its_own_copy_of_a_module():
    shared = Sharpened()
    isab = ISAB(DIM, DIM, 3, AttentionOptions(heads=HEADS, weights=shared)).double()
    isab(rows(B, 5, DIM)).sum().backward()
    powers = [parameter for name, parameter in isab.named_parameters() if name.endswith("power")]
    assert len(powers) == 2
    assert all(power is not shared.power and power.grad is not None for power in powers)


@pytest.mark.parametrize("function", [lambda z: z.sum(dim=-1), lambda z: None], ids=["too few", "nothing"])
def test_what_is_not_one_weight_for_each_logit_is_refused(function):
    with pytest.raises(
        PointsetError, match=r"'<lambda>' must return weights \[3, 2, 4, 6\], got (\[3, 2, 4\]|NoneType)"
    ):
        Weights(AttentionOptions(heads=HEADS, weights=function))(rows(B, HEADS, 4, 6))


def test_recording_maps_does_not_change_the_result():
    model = pointset.create_model("isab3-pma2", classes=4, dim=DIM, heads=HEADS, weights=torch.sigmoid).eval().double()
    X = rows(1, 9, 3)
    before = model(X)
    maps = pointset.attention_maps(model, X)
    torch.testing.assert_close(model(X), before)
    assert [found.kind for found in maps] == ["reads", "writes", "reads", "writes", "pools", "self"]
    assert all(((found.weights >= 0) & (found.weights <= 1)).all() for found in maps)
    assert any((found.weights.sum(dim=-1) - 1).abs().max() > 0.1 for found in maps)
    assert all(found.entropy().isfinite().all() and found.entropy().max() <= 1 + 1e-6 for found in maps)
    with pytest.raises(PointsetError, match=r"encoder\.0\.reads do not sum to 1"):
        rollout([found[0] for found in maps])
