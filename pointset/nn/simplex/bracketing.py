"""Thresholds of constrained sparsemax by safeguarded Newton steps: about eight passes over a row instead of a sort."""

import torch
from jaxtyping import Float
from torch import Tensor

STEPS = 40
"""Maximum number of passes over a row; rows that need more are solved by sorting."""

MARGIN = 0.25
"""An interpolated step shortens the bracketing interval by at least this fraction."""


@torch.no_grad()
def bracketed_threshold(z: Float[Tensor, "n r"], u: Float[Tensor, "n r"]) -> Float[Tensor, "1 r"]:
    """The threshold tau at which the weights min(max(z - tau, 0), u) sum to 1; keys first, so each row is a column.

    Newton's method inside an interval that contains the threshold. It is exact once it reaches the right linear piece.
    A step that would leave the interval is replaced by linear interpolation between the ends of the interval.

    Returns:
        Thresholds [1, r]: NaN where the method did not converge. Where scores are so large that rounding hides the
        threshold, it may be wrong; the caller notices because the weights do not sum to 1.
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
    """The state of the search: for each row, an estimate tau and an interval that contains the threshold.

    The weights sum to at least 1 at `low` and to less than 1 at `high`; an excess is the sum minus 1.
    """

    def __init__(self, z: Tensor, u: Tensor) -> None:
        self.z, self.u = z, u
        caps = u.clamp(max=1)
        self.room = u.sum(dim=0, keepdim=True).clamp_(max=1)  # 1, up to rounding; 0 for rows without a real key
        self.high, self.high_excess = z.amax(dim=0, keepdim=True), -self.room
        self.low, self.low_excess = (z - caps).amin(dim=0, keepdim=True), caps.sum(dim=0, keepdim=True) - self.room
        # A lower limit of the threshold of sparsemax without bounds.
        self.tau = (self.high - 1).maximum(z.mean(dim=0, keepdim=True) - 1 / len(z)).maximum(self.low)

    def keep(self, rows: Tensor) -> None:
        """Continue with these rows only."""
        for name, value in vars(self).items():
            setattr(self, name, value.T.index_select(0, rows).T)

    def step(self) -> Tensor:
        """Evaluate the sum of every row, update tau of the rows that have not converged, and return those that have."""
        above, work = self.z - self.tau, torch.empty_like(self.z)
        stopped = torch.gt(above, self.u, out=work).sum(dim=0, keepdim=True)
        excess = torch.minimum(above.relu_(), self.u, out=work).sum(dim=0, keepdim=True) - self.room
        free = above.sign_().sum(dim=0, keepdim=True) - stopped  # above 0 and below their bound
        # Converged when the excess is within the rounding error of the sum and of tau.
        eps = torch.finfo(excess.dtype).eps
        settled = excess.abs() <= (free * self.tau.abs()).add_(8).mul_(eps)
        self._narrow(excess)
        newton = torch.addcdiv(self.tau, excess, free)
        inside = (newton > self.low) & (newton < self.high)
        self.tau = torch.where(settled, self.tau, torch.where(inside, newton, self._between()))
        return settled

    def _narrow(self, excess: Tensor) -> None:
        """Move one end of the interval to tau."""
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
        """The zero of the line between the ends of the interval, kept at least MARGIN away from both ends."""
        share = self.low_excess / (self.low_excess - self.high_excess)
        return torch.addcmul(self.low, self.high - self.low, share.clamp_(MARGIN, 1 - MARGIN))
