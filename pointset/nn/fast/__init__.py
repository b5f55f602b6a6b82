"""The same numbers in less time: sets end to end, and attention in pieces that fit a processor's cache."""
