"""Named classifiers: `encoder-pooling`, every one `head(pool(encoder(X)))`.

Encoders: `rff` (rows on their own), `rffp` (DeepSets' equivariant layers), `sab` and `isab<m>` (m inducing points).
Poolings: `max`, `mean`, `sum`, `max+mean` (side by side), `pma` and `pma<k>` (k seeds), and `aggr.<name>`, any
aggregation of torch-geometric that pools a set, such as `aggr.softmax` (see `pointset.nn.pooling.aggregation`). All but
pma share one decoder, so that such models differ in the pooling alone. `pointnet` and `dgcnn` stand beside them as
context.
"""

import dataclasses
import difflib
import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from pointset.configuration import AttentionOptions, check_seed
from pointset.errors import PointsetError
from pointset.nn.blocks import ISAB, PMA, SAB
from pointset.nn.context import DGCNN, PointNet
from pointset.nn.deepsets import EquivariantLayer, Statistic
from pointset.nn.dropout import Dropout
from pointset.nn.fast.packing import Layout, Packed, lengths_of, sort_sets
from pointset.nn.masks import as_mask, zero_padding
from pointset.nn.norms import make_norm
from pointset.nn.pooling.aggregation import WITH_HEADS, AggregationPool, canonical, check_aggregation
from pointset.nn.pooling.simple import MaxMeanPool, MaxPool, MeanPool, SumPool
from pointset.zoo.options import ModelOptions

NAMES = (
    "rff-mean",
    "rff-max",
    "rff-sum",
    "rff-pma",
    "rffp-mean",
    "rffp-max",
    "sab-max",
    "sab-pma",
    "isab16-max",
    "isab16-max+mean",
    "isab16-pma",
    "pointnet",
    "dgcnn",
)
CONTEXT = {"pointnet": PointNet, "dgcnn": DGCNN}
MOST_ROWS = 4096
"""Of inducing points and of seeds: more than any set here has points."""
STATISTICS = {"max": MaxPool, "mean": MeanPool, "sum": SumPool, "max+mean": MaxMeanPool}
PATTERN = re.compile(
    r"(?P<encoder>rffp|rff|sab|isab(?P<inducing>[1-9]\d*))-"
    r"(?P<pooling>max\+mean|max|mean|sum|pma(?P<seeds>[1-9]\d*)?|aggr\.(?P<aggregation>\w+))",
    re.ASCII,
)


@dataclass(frozen=True)
class Spec:
    """All it takes to build a zoo model again; saved beside its weights."""

    name: str
    classes: int
    inputs: int
    seed: int
    options: ModelOptions


class Masked(nn.Module):
    """A row-wise module in a place where modules are called with a mask."""

    def __init__(self, *rowwise: nn.Module) -> None:
        super().__init__()
        self.rowwise = nn.Sequential(*rowwise)

    def forward(self, X: Float[Tensor, "*rows d_in"], mask: Layout | None = None) -> Float[Tensor, "*rows d"]:
        """Return the rows, in the order of X."""
        return self.rowwise(X)


class SetClassifier(nn.Module):
    """logits = head(pool(encoder(X))): invariant to the order of the rows, for sets of any size.

    Attributes:
        encoder: equivariant modules, called in turn as `module(X, mask)`; rows in, rows out.
        pool: called as `pool(Z, mask)`; [B, n, d] to [B, k, d]. Like the encoder it also takes rows [N, d] of sets
            that lie end to end, with a `Packed` in place of the mask.
        head: from the k pooled rows to logits [B, classes].
    """

    def __init__(self, encoder: list[nn.Module], pool: nn.Module, head: nn.Module, inputs: int = 3) -> None:
        super().__init__()
        self.inputs = inputs
        self.encoder = nn.ModuleList(encoder)
        self.pool = pool
        self.head = head

    def forward(
        self, points: Float[Tensor, "B n inputs"], mask: Bool[Tensor, "B n"] | None = None
    ) -> Float[Tensor, "B classes"]:
        """Return logits [B, classes].

        `mask` is True at real points; what stands in padded rows has no effect. An empty set (n = 0, or no True in its
        mask) pools to zeros and gets the logits that the head makes of them.

        Raises:
            ValueError: the points are not [B, n, inputs], or the mask is not [B, n].
        """
        points, mask = checked(points, mask, self.inputs)
        return self.head(self.pool(self.encode(points, mask), mask))

    def packed(
        self, points: Float[Tensor, "N inputs"], batch: Int[Tensor, " N"], sets: int | None = None
    ) -> Float[Tensor, "B classes"]:
        """Return logits [B, classes] of sets of several sizes without padding them.

        Logits and gradients are those of `forward` with padding and a mask, to rounding, in time and memory that go
        with the N points there are. (Sets so small or so alike that padding is the faster way are padded after all.)
        Dropout of rows, which pma has, draws for each row there is, so that a training step drops other ones.

        Args:
            points: the sets one after the other.
            batch: the number of the set of each point, from 0 and never falling, as in torch-geometric:
                `model.packed(data.pos, data.batch, data.num_graphs)`. A number that does not occur is an empty set.
            sets: B, where the last sets may be empty; one more than the last number when None.

        Raises:
            ValueError: the points are not [N, inputs], or `batch` is no such numbering of them.
        """
        points, packed, places = sort_sets(*checked_packed(points, batch, sets, self.inputs))
        points, layout = packed.padded(points) if packed.is_better_padded else (points, packed)
        pooled = self.pool(self.encode(points, layout), layout)
        return self.head(pooled[places])

    def stream(self, chunks: Any) -> Float[Tensor, "1 classes"]:
        """Return the logits [1, classes] of one cloud of any size that arrives in pieces, in constant memory.

        Equal to `model(cloud[None])` in evaluation mode, to the rounding of float32, however the cloud is cut. L layers
        that need something of the whole set go through the pieces L times, and the pooling once more.

        Args:
            chunks: a function that gives a fresh iterator over pieces [n_i, inputs] each time it is called, such as
                `pointset.data.open_scan(path)`; or a list of pieces, or the cloud [n, inputs]. Tensors or arrays of
                any number type, on any device; pieces may be empty.

        Raises:
            PointsetError: a part of the model needs the whole set at once (it is named), or the chunks run only once
                or are no points.
        """
        from pointset.streaming import stream_logits

        return stream_logits(self, chunks)

    def encode(self, points: Float[Tensor, "*rows inputs"], mask: Layout | None = None) -> Float[Tensor, "*rows d"]:
        """Return the encoded rows [B, n, d], in the order of the points."""
        for module in self.encoder:
            points = module(points, mask)
        return points


class PackedClassifier(nn.Module):
    """A context model behind the same face as `SetClassifier`."""

    def __init__(self, model: nn.Module, inputs: int = 3) -> None:
        super().__init__()
        self.inputs = inputs
        self.model = model

    def forward(
        self, points: Float[Tensor, "B n inputs"], mask: Bool[Tensor, "B n"] | None = None
    ) -> Float[Tensor, "B classes"]:
        """Return logits [B, classes]; see `SetClassifier.forward`."""
        return self.model(*checked(points, mask, self.inputs))

    def packed(
        self, points: Float[Tensor, "N inputs"], batch: Int[Tensor, " N"], sets: int | None = None
    ) -> Float[Tensor, "B classes"]:
        """Return logits [B, classes] of sets of several sizes without padding them; see `SetClassifier.packed`."""
        return self.model(*checked_packed(points, batch, sets, self.inputs))

    def stream(self, chunks: Any) -> Float[Tensor, "1 classes"]:
        """Return the logits [1, classes] of one cloud in pieces; see `SetClassifier.stream`. dgcnn refuses."""
        from pointset.streaming import stream_logits

        return stream_logits(self, chunks)


def checked(points: Tensor, mask: Tensor | None, inputs: int) -> tuple[Tensor, Tensor | None]:
    """Points with nothing in their padded rows and at least one row, or an error that shows the shapes."""
    if points.dim() != 3 or points.shape[2] != inputs:
        raise ValueError(f"points must be [B, n, {inputs}], got {list(points.shape)}")
    if mask is not None and (mask.shape != points.shape[:2] or mask.dtype != torch.bool):
        expected = list(points.shape[:2])
        raise ValueError(f"mask must be bool {expected}, True at real points; got {mask.dtype} {list(mask.shape)}")
    if points.shape[1] == 0:
        points = points.new_zeros(points.shape[0], 1, inputs)
        mask = torch.zeros_like(as_mask(points, None))
    return zero_padding(points, mask), mask


def checked_packed(points: Tensor, batch: Tensor, sets: int | None, inputs: int) -> tuple[Tensor, Packed]:
    """Points of sets laid end to end and how they lie, or an error that shows the shapes."""
    if points.dim() != 2 or points.shape[1] != inputs or not points.is_floating_point():
        raise ValueError(f"points must be floating [N, {inputs}], got {points.dtype} {list(points.shape)}")
    return points, lengths_of(batch, points, sets)


def list_models() -> list[str]:
    """The standard names.

    Any number of inducing points (`isab32-max`) or seeds (`sab-pma4`) works too, and so does any aggregation of
    torch-geometric that pools a set (`isab16-aggr.softmax`; `aggregation_names` of `pointset.nn.pooling.aggregation`
    lists them).
    """
    return list(NAMES)


def create_model(name: str, classes: int = 40, *, inputs: int = 3, seed: int = 0, **options: Any) -> nn.Module:
    """Build a classifier of point sets by name.

    Args:
        name: `encoder-pooling`, such as "isab16-pma"; see `list_models`.
        classes: number of logits.
        inputs: numbers per point.
        seed: of the initial weights; global random state is neither used nor changed.
        options: fields of `ModelOptions` (dim, heads, layers, form, scale, norm, prenorm, dropout, ...). One that the
            model has no use for changes nothing, so that several models can share them; see `used_options`.

    Returns:
        A module called as `model(points [B, n, inputs], mask [B, n] or None) -> logits [B, classes]`. Its `spec` says
        how to build it again.

    Raises:
        PointsetError: the name is unknown (the nearest ones are given) or names an aggregation that is no pooling of
            sets (why is said), or an option is unknown.
    """
    return build_model(Spec(name, classes, inputs, seed, ModelOptions.from_dict(options)))


def build_model(spec: Spec) -> nn.Module:
    """Build what a `Spec` describes; see `create_model`."""
    check_name(spec.name)
    check_seed(spec.seed)
    if spec.classes < 1:
        raise PointsetError(f"classes={spec.classes} is too small: give at least 1")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(spec.seed)
        model = _assemble(spec)
    model.spec = spec  # type: ignore[assignment]
    return model


def _assemble(spec: Spec) -> nn.Module:
    if spec.name in CONTEXT:
        return PackedClassifier(CONTEXT[spec.name](spec.inputs, spec.classes, spec.options.dropout), spec.inputs)
    match = PATTERN.fullmatch(spec.name)
    assert match is not None, "check_name has seen to it"
    encoder, pooling = match["encoder"], match["pooling"]
    layers = _encoder(encoder, pooling, int(match["inducing"] or 0), spec)
    if pooling.startswith("pma"):
        pool, head = _attention_decoder(int(match["seeds"] or 1), spec)
        return SetClassifier(layers, pool, head, spec.inputs)
    if match["aggregation"]:
        pool = AggregationPool(match["aggregation"], spec.options.dim, spec.options.heads)
    else:
        pool = STATISTICS[pooling]()
    head = _statistic_head(pool, nn.Tanh if encoder == "rffp" else nn.ReLU, spec)
    return SetClassifier(layers, pool, head, spec.inputs)


def check_name(name: str) -> None:
    """Raise a PointsetError that gives the nearest names, unless a model has this name."""
    match = PATTERN.fullmatch(name)
    if match and max(int(match["inducing"] or 0), int(match["seeds"] or 0)) > MOST_ROWS:
        raise PointsetError(f"{name} asks for too many inducing points or seeds: give at most {MOST_ROWS}")
    if match and match["aggregation"]:
        check_aggregation(match["aggregation"])
    if match or name in CONTEXT:
        return
    near = difflib.get_close_matches(name, NAMES, n=3, cutoff=0.0)
    raise PointsetError(
        f"no model is called {name!r}: did you mean {', '.join(near)}? "
        "Names are encoder-pooling, with rff, rffp, sab or isab16 and max, mean, sum, max+mean, pma or aggr.softmax "
        "(any number of inducing points or seeds, any set aggregation of torch-geometric), or pointnet or dgcnn"
    )


def used_options(name: str) -> set[str]:
    """The fields of `ModelOptions` that a model of this name is built from; the others change nothing in it."""
    check_name(name)
    match = PATTERN.fullmatch(name)
    if match is None:
        return {"dropout"}
    used = {"dim", "layers", "dropout", "row_dropout", "norm"}
    attends_in_encoder, attends_in_pool = "sab" in match["encoder"], match["pooling"].startswith("pma")
    if attends_in_encoder or attends_in_pool:
        used |= {field.name for field in dataclasses.fields(AttentionOptions)} - {"coverage"}
    if match["inducing"] or attends_in_pool:
        used |= {"initial"}
    if attends_in_pool:
        used |= {"seeds", "pool_weights", "coverage"}
    if match["aggregation"] and canonical(match["aggregation"]) in WITH_HEADS:
        used |= {"heads"}
    return used


def _encoder(encoder: str, pooling: str, inducing: int, spec: Spec) -> list[nn.Module]:
    """The layers, each with dropout on the rows that leave it where the options want it."""
    options = spec.options
    if encoder == "rff":
        layers = _rowwise(spec.inputs, options, layers=options.layers or 4)
    elif encoder == "rffp":
        layers = _equivariant(pooling, spec)
    else:
        layers = _attentive(encoder, inducing, spec)
    if options.row_dropout == 0.0:
        return layers
    found: list[nn.Module] = []
    for layer in layers:
        found.append(layer)
        if isinstance(layer, Masked | EquivariantLayer | SAB | ISAB):  # a norm is a part of the layer before it
            found.append(Masked(Dropout(options.row_dropout)))
    return found


def _equivariant(pooling: str, spec: Spec) -> list[nn.Module]:
    """DeepSets, appendix H. Layers and pooling share their statistic, as in the papers' rFFp-max and rFFp-mean rows."""
    options = spec.options
    statistic: Statistic = "mean" if pooling == "mean" else "max"
    widths = [spec.inputs, *[options.dim] * (options.layers or 3)]
    return [EquivariantLayer(*pair, statistic, options.norm or "none") for pair in itertools.pairwise(widths)]


def _attentive(encoder: str, inducing: int, spec: Spec) -> list[nn.Module]:
    """SABs or ISABs; depth and width as in the Set Transformer's appendix (point clouds)."""
    options, dim = spec.options, spec.options.dim
    block: Callable[[int], nn.Module] = partial(SAB, dim=dim, options=options.attention())
    if encoder != "sab":
        block = partial(ISAB, dim=dim, inducing=inducing, options=options.attention(), initial=options.initial)
    # Form "paper" adds its input to its output, and a norm before the first block would erase raw coordinates.
    embed = options.form == "paper" or options.prenorm
    first: list[nn.Module] = [Masked(nn.Linear(spec.inputs, dim))] if embed else []
    widths = [dim if embed else spec.inputs, *[dim] * ((options.layers or 2) - 1)]
    return first + [block(width) for width in widths]


def _rowwise(inputs: int, options: ModelOptions, layers: int) -> list[nn.Module]:
    """Linear layers with ReLU between them and the chosen norm before each ReLU."""
    modules: list[nn.Module] = [Masked(nn.Linear(inputs, options.dim))]
    for _ in range(layers - 1):
        modules.append(make_norm(options.norm or "none", options.dim))
        modules.append(Masked(nn.ReLU(), nn.Linear(options.dim, options.dim)))
    return modules


def _statistic_head(pool: nn.Module, activation: type[nn.Module], spec: Spec) -> nn.Module:
    """Dropout, FC, activation, dropout, FC; only the first layer knows how wide the pooled row is."""
    dim, rate = spec.options.dim, spec.options.dropout
    with torch.no_grad():
        width = pool(torch.zeros(1, 1, dim)).shape[2]
    return nn.Sequential(
        nn.Flatten(),
        Dropout(rate),
        nn.Linear(width, dim),
        activation(),
        Dropout(rate),
        nn.Linear(dim, spec.classes),
    )


class AttentionPool(nn.Module):
    """Dropout on the rows, then PMA_k, then SAB if k > 1 (arXiv 1810.00825, eq. 14)."""

    def __init__(self, seeds: int, options: ModelOptions) -> None:
        super().__init__()
        self.dropout = Dropout(options.dropout)
        self.pma = PMA(options.dim, seeds, options.attention(pooling=True), options.seeds, options.initial)
        self.sab = SAB(options.dim, options.dim, options.attention()) if seeds > 1 else None

    def forward(self, Z: Float[Tensor, "*rows d"], mask: Layout | None = None) -> Float[Tensor, "B k d"]:
        """Return one row per seed [B, k, d]."""
        pooled = self.pma(self.dropout(Z), mask)
        return pooled if self.sab is None else self.sab(pooled)


def _attention_decoder(seeds: int, spec: Spec) -> tuple[nn.Module, nn.Module]:
    """Dropout, PMA, dropout, FC; the rows of several seeds are laid side by side for the last layer."""
    if seeds == 1 and spec.options.norm == "instance" and not spec.options.prenorm:
        raise PointsetError(
            "norm=instance leaves nothing of one pooled row, which is its own mean: give several seeds, as in "
            "isab16-pma4, or prenorm, or norm=group"
        )
    pool = AttentionPool(seeds, spec.options)
    head = nn.Sequential(nn.Flatten(), Dropout(spec.options.dropout), nn.Linear(seeds * spec.options.dim, spec.classes))
    return pool, head
