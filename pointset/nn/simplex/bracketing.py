"""Thresholds of constrained sparsemax by closing in on them: some eight looks at a row instead of sorting it."""

import torch
from jaxtyping import Float
from torch import Tensor

STEPS = 40
"""Looks at a row before it is left to sorting."""

MARGIN = 0.25
"""Share of an interval that a step inside takes from it at least."""


@torch.no_grad()
def bracketed_threshold(z: Float[Tensor, "n r"], u: Float[Tensor, "n r"]) -> Float[Tensor, "1 r"]:
    """The threshold tau at which the weights min(max(z - tau, 0), u) of a row sum to 1; rows are columns here.

    It is NaN where it is not found, and where scores are so large that rounding hides it, it may be wrong: the weights
    that it makes do not sum to 1.

    Newton's method, which is exact once it is on the right linear piece, inside an interval that has the threshold. A
    step that would leave the interval is replaced by one to about where a straight line between its ends reaches 1.
    """
    found, rows = torch.empty_like(z[:1]), torch.arange(z.shape[1], device=z.device)
    search = _Search(z, u)
    for _ in range(STEPS):
        settled = search.step()[0]
        count = int(settled.sum())
        if count == len(rows):
            found[0, rows] = search.tau[0]
            return found
        if 2 * count >= len(rows):
            found[0, rows[settled]] = search.tau[0, settled]
            left = settled.logical_not_().nonzero()[:, 0]
            rows = rows[left]
            search.keep(left)
    found[0, rows] = torch.nan
    return found


class _Search:
    """For each row a guess tau, and an interval from `low`, where weights sum to 1 or more, to `high`, to less."""

    def __init__(self, z: Tensor, u: Tensor) -> None:
        self.z, self.u = z, u
        caps = u.clamp(max=1)
        self.room = u.sum(dim=0, keepdim=True).clamp_(max=1)  # 1, but for rounding and rows without a key
        self.high, self.high_excess = z.amax(dim=0, keepdim=True), -self.room
        self.low, self.low_excess = (z - caps).amin(dim=0, keepdim=True), caps.sum(dim=0, keepdim=True) - self.room
        # Without bounds, the threshold would be at least this.
        self.tau = (self.high - 1).maximum(z.mean(dim=0, keepdim=True) - 1 / len(z)).maximum(self.low)

    def keep(self, rows: Tensor) -> None:
        """Forget the other rows."""
        for name, value in vars(self).items():
            setattr(self, name, value.T.index_select(0, rows).T)

    def step(self) -> Tensor:
        """Look at every row once, and move the guess of those that are not settled; say which are [1, r]."""
        above, work = self.z - self.tau, torch.empty_like(self.z)
        stopped = torch.gt(above, self.u, out=work).sum(dim=0, keepdim=True)
        excess = torch.minimum(above.relu_(), self.u, out=work).sum(dim=0, keepdim=True) - self.room
        free = above.sign_().sum(dim=0, keepdim=True) - stopped  # started, and not stopped
        # What is left is rounding: of the sum, and of a guess that could not be any closer.
        eps = torch.finfo(excess.dtype).eps
        settled = excess.abs() <= (free * self.tau.abs()).add_(8).mul_(eps)
        self._narrow(excess)
        newton = torch.addcdiv(self.tau, excess, free)
        inside = (newton > self.low) & (newton < self.high)
        self.tau = torch.where(settled, self.tau, torch.where(inside, newton, self._between()))
        return settled

    def _narrow(self, excess: Tensor) -> None:
        """One end of the interval moves to the guess."""
        is_low = excess >= 0
        self.low, self.low_excess = (
            torch.where(is_low, self.tau, self.low),
            torch.where(is_low, excess, self.low_excess),
        )
        self.high, self.high_excess = (
            torch.where(is_low, self.high, self.tau),
            torch.where(is_low, self.high_excess, excess),
        )

    def _between(self) -> Tensor:
        """Where the line between the ends of the interval crosses 0, but never too near to an end to be of use."""
        share = self.low_excess / (self.low_excess - self.high_excess)
        return torch.addcmul(self.low, self.high - self.low, share.clamp_(MARGIN, 1 - MARGIN))
