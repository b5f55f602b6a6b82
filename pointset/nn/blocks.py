"""The blocks of the Set Transformer (Lee et al., arXiv 1810.00825, section 3), in its two published forms.

    MAB(X, Y)  = LN(H + rFF(H)),  H = LN(X + Multihead(X, Y, Y))        eq. 6 and 7
    SAB(X)     = MAB(X, X)                                              eq. 8
    ISAB_m(X)  = MAB(X, MAB(I, X))                                      eq. 9 and 10
    PMA_k(Z)   = MAB(S, rFF(Z))                                         eq. 11

Letters: X [B, n, d] and Y [B, m, d] are sets of rows, I [m, d] inducing points, S [k, d] seeds. Masks are True at real
rows, False at padding.

Form "paper" follows these equations. Form "reference" is the code that the authors ran and released (github
juho-lee/set_transformer, modules.py): the residual is the projected query, W^O is left out, H + rFF(H) is
H + ReLU(H W + b), and PMA has no rFF.
"""

from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.configuration import RELEASED, AttentionOptions, InitialName, NormName, SeedSource, check_counts
from pointset.inputs import InputError
from pointset.nn.attention import Multihead, changed_options
from pointset.nn.fast.writing import may_write_in_tiles, write_in_tiles
from pointset.nn.masks import STATISTICS, Mask, Statistic
from pointset.nn.modules import Maps, RowsModule
from pointset.nn.norms import make_norm


def rff(dim_in: int, dim: int, hidden: int | None = None) -> nn.Sequential:
    """Return a row-wise feed-forward network of two layers, dim_in -> hidden -> dim, with a ReLU between them.

    Args:
        dim_in, dim, hidden: widths of the rows, of the result, and of the hidden layer (default: dim).

    Returns:
        A module from rows [..., dim_in] to rows [..., dim].

    Example:
        >>> pointset.nn.rff(3, 16)(torch.rand(2, 100, 3)).shape
        torch.Size([2, 100, 16])
    """
    hidden = dim if hidden is None else hidden
    return nn.Sequential(nn.Linear(dim_in, hidden), nn.ReLU(), nn.Linear(hidden, dim))


class MAB(RowsModule):
    """Multihead attention block, MAB(X, Y): X attends to Y, then a feed-forward network is applied to every row.

    - form "paper":      H = N(X + Multihead(X, Y, Y));         O = N(H + rFF(H))
    - form "reference":  H = N(Q + concat_j(A_j V_j)), Q = X W^Q;  O = N(H + ReLU(H W + b))

    A_j are the attention weights of head j. N is the norm of the option `norm`, by default "layer" for form "paper" and
    "none" for form "reference". With `prenorm`, N is applied to the inputs of each residual branch instead of the sums.

    X [B, n, dim_query] and Y [B, m, dim_key], with the mask [B, m] of Y, give [B, n, dim].

    Args:
        dim_query, dim_key, dim: widths of X, of Y and of the result. Form "paper" adds X to the result, so it needs
            dim_query == dim.
        options: heads, form, norm, score, weights, ...; see `AttentionOptions`.
        changes: keyword arguments that replace fields of `options`.

    Raises:
        InputError: `dim_query` differs from `dim` in form "paper", or `heads` does not divide `dim`.

    Source:
        Lee et al., Set Transformer (arXiv 1810.00825), eq. 6 and 7; form "reference" is the released code.

    Example:
        >>> block = pointset.nn.MAB(3, 5, 16, heads=8)
        >>> block(torch.rand(2, 7, 3), torch.rand(2, 100, 5)).shape
        torch.Size([2, 7, 16])
    """

    def __init__(
        self, dim_query: int, dim_key: int, dim: int, options: AttentionOptions = RELEASED, **changes: Any
    ) -> None:
        super().__init__()
        options = changed_options(type(self), options, changes)
        self.form, self.norm = options.form, options.norm_name
        self.row_widths = (dim_query, dim_key)
        if self.form == "paper" and dim_query != dim:
            raise InputError(f'form "paper" adds X to the result: dim_query={dim_query} must equal dim={dim}')
        self.multihead = Multihead(dim_query, dim_key, dim, options)
        self.feed_forward = rff(dim, dim) if self.form == "paper" else nn.Sequential(nn.Linear(dim, dim), nn.ReLU())
        before: NormName = self.norm if options.prenorm else "none"
        after: NormName = "none" if options.prenorm else self.norm
        self.norm_query, self.norm_key = make_norm(before, dim_query), make_norm(before, dim_key)
        self.norm_hidden, self.norm_attended = make_norm(before, dim), make_norm(after, dim)
        self.norm_output = make_norm(after, dim)

    def forward(
        self,
        X: Float[Tensor, "_ n dim_query"],
        Y: Float[Tensor, "B m dim_key"],
        mask: Bool[Tensor, "B m"] | None = None,
        query_mask: Bool[Tensor, "_ n"] | None = None,
    ) -> Float[Tensor, "B n d"]:
        """Return O [B, n, d]. All sets of Y share an X of batch size 1.

        Both masks are True at real rows. `mask` [B, m] excludes padded rows of Y from the attention. `query_mask`
        [B, n] excludes padded rows of X from the statistics of the norms.
        """
        if mask is None and may_write_in_tiles(self, X, Y):
            return write_in_tiles(self, X, Y)
        Q = self.multihead.query(self.norm_query(X, query_mask))
        attended = self.multihead.attend(Q, self.norm_key(Y, mask), mask)  # concat_j(softmax(Q_j K_j^T / sqrt(d)) V_j)
        residual = X if self.form == "paper" else Q
        H = self.norm_attended(residual + self.multihead.output(attended), query_mask)
        return self.norm_output(H + self.feed_forward(self.norm_hidden(H, query_mask)), query_mask)


class SAB(RowsModule):
    """Set attention block, SAB(X) = MAB(X, X): every row attends to all rows. Cost O(n^2).

    X [B, n, dim_in] with a mask [B, n] (True at real rows) gives [B, n, dim].

    Args:
        dim_in, dim: widths of X and of the result, which is a multiple of the number of heads.
        options, changes: see `MAB`.

    Source:
        Lee et al., Set Transformer (arXiv 1810.00825), eq. 8.

    Example:
        >>> block = pointset.nn.SAB(3, 16, heads=8)
        >>> X, mask = torch.rand(2, 5, 3), torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
        >>> block(X, mask).shape
        torch.Size([2, 5, 16])
    """

    maps: ClassVar[Maps] = {"mab": ("self", "both")}

    def __init__(self, dim_in: int, dim: int, options: AttentionOptions = RELEASED, **changes: Any) -> None:
        super().__init__()
        self.row_widths = (dim_in,)
        self.mab = MAB(dim_in, dim_in, dim, changed_options(type(self), options, changes))

    def forward(self, X: Float[Tensor, "B n d_in"], mask: Mask | None = None) -> Float[Tensor, "B n d"]:
        """Return the rows [B, n, d], in the order of X."""
        return self.mab(X, X, mask, mask)


class ISAB(RowsModule):
    """Induced set attention block, ISAB_m(X) = MAB(X, MAB(I, X)): m inducing points I summarise the set. Cost O(n m).

    First, the inducing points attend to the rows of X: they *read* the set (attention map [B, h, m, n]). Then the rows
    attend to the inducing points, which *write* to the set (attention map [B, h, n, m]).

    X [B, n, dim_in] with a mask [B, n] (True at real rows) gives [B, n, dim].

    Args:
        dim_in, dim: widths of X and of the result, which is a multiple of the number of heads.
        inducing: number m of inducing points.
        initial: initial values of I; see `ModelOptions`.
        options, changes: see `MAB`.

    Source:
        Lee et al., Set Transformer (arXiv 1810.00825), eq. 9 and 10.

    Example:
        >>> block = pointset.nn.ISAB(3, 16, inducing=4, heads=8, norm="layer")
        >>> block(torch.rand(2, 100, 3)).shape
        torch.Size([2, 100, 16])
    """

    maps: ClassVar[Maps] = {"reads": ("reads", "keys"), "writes": ("writes", "queries")}
    no_decay = ("inducing_points",)

    def __init__(
        self,
        dim_in: int,
        dim: int,
        inducing: int = 16,
        options: AttentionOptions = RELEASED,
        initial: InitialName = "normal",
        **changes: Any,
    ) -> None:
        super().__init__()
        options = changed_options(type(self), options, changes)
        check_counts(dim_in=dim_in, dim=dim, inducing=inducing)
        self.row_widths = (dim_in,)
        self.inducing_points = nn.Parameter(initial_rows(inducing, dim, initial))
        self.reads = MAB(dim, dim_in, dim, options)
        self.writes = MAB(dim_in, dim, dim, options)

    def forward(self, X: Float[Tensor, "B n d_in"], mask: Mask | None = None) -> Float[Tensor, "B n d"]:
        """Return the rows [B, n, d], in the order of X."""
        H = self.reads(self.inducing_points, X, mask)
        return self.writes(X, H, query_mask=mask)


class PMA(RowsModule):
    """Pooling by multihead attention, PMA_k(Z) = MAB(S, rFF(Z)): k seeds S attend to the set.

    Form "reference" omits the rFF, as the authors' code does. With `seed_source` "mean" or "max", the seeds are linear
    functions of the mean or maximum of Z (`PooledSeeds`) instead of trained vectors.

    Z [B, n, dim] with a mask [B, n] (True at real rows) gives [B, k, dim].

    Args:
        dim: width d of the rows, a multiple of the number of heads.
        seeds: number k of seeds S.
        seed_source, initial: origin of the seeds, and initial values of trained seeds; see `ModelOptions`.
        options, changes: see `MAB`.

    Source:
        Lee et al., Set Transformer (arXiv 1810.00825), eq. 11.

    Example:
        >>> pooling = pointset.nn.PMA(16, seeds=2, heads=8)
        >>> pooling(torch.rand(2, 100, 16)).shape
        torch.Size([2, 2, 16])
    """

    maps: ClassVar[Maps] = {"mab": ("pools", "keys")}
    no_decay = ("seeds",)

    def __init__(
        self,
        dim: int,
        seeds: int = 1,
        options: AttentionOptions = RELEASED,
        seed_source: SeedSource = "trained",
        initial: InitialName = "normal",
        **changes: Any,
    ) -> None:
        super().__init__()
        options = changed_options(type(self), options, changes)
        check_counts(dim=dim, seeds=seeds)
        self.row_widths = (dim,)
        self.seeds = nn.Parameter(initial_rows(seeds, dim, initial)) if seed_source == "trained" else None
        self.pooled_seeds = None if seed_source == "trained" else PooledSeeds(dim, seeds, seed_source)
        self.feed_forward = rff(dim, dim) if options.form == "paper" else nn.Identity()
        self.mab = MAB(dim, dim, dim, options)

    def forward(self, Z: Float[Tensor, "B n d"], mask: Mask | None = None) -> Float[Tensor, "B k d"]:
        """Return one row per seed, [B, k, d]."""
        S = self.seeds if self.pooled_seeds is None else self.pooled_seeds(Z, mask)
        return self.mab(S, self.feed_forward(Z), mask)


def initial_rows(rows: int, dim: int, initial: InitialName) -> Float[Tensor, "1 rows dim"]:
    """Return initial inducing points or seeds, "normal" (standard normal) or as in the authors' code ("xavier").

    For the shape [1, m, d], xavier_uniform_ assumes m d inputs. Its bound, sqrt(6 / (m d + d)), is so small that the
    initial rows are nearly equal.
    """
    return nn.init.xavier_uniform_(torch.empty(1, rows, dim)) if initial == "xavier" else torch.randn(1, rows, dim)


class PooledSeeds(nn.Module):
    """Seeds S_t = statistic(Z) W_t + b_t for t = 1, ..., k: linear functions of a statistic of the set.

    Args:
        dim: width d of Z and of the seeds.
        seeds: number k of seeds.
        statistic: the statistic of each feature, "mean" or "max".

    Example:
        >>> pointset.nn.PooledSeeds(16, 2)(torch.rand(3, 100, 16)).shape
        torch.Size([3, 2, 16])
    """

    def __init__(self, dim: int, seeds: int, statistic: Statistic = "mean") -> None:
        super().__init__()
        self.statistic = statistic
        self.maps = nn.Linear(dim, seeds * dim)

    def forward(self, Z: Float[Tensor, "B n d"], mask: Mask | None = None) -> Float[Tensor, "B k d"]:
        """Return the seeds of each set. `mask` is True at real rows."""
        return self.maps(STATISTICS[self.statistic](Z, mask)).unflatten(2, (-1, Z.shape[2])).squeeze(1)
