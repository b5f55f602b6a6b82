"""Mutations of files with a header of text before numbers in binary."""

from collections.abc import Sequence
from random import Random

from fuzzing.mutations import BINARY, TEXT, Mutation


def header_and_body(last: bytes, words: Sequence[Mutation] = ()) -> Mutation:
    """A mutation of the text up to the line that begins with `last`, or of the bytes behind it."""
    texts = [*TEXT, *words]

    def mutate(content: bytes, random: Random) -> bytes:
        found = content.find(last)
        end = content.find(b"\n", found) + 1 if found >= 0 else len(content)
        if random.random() < 0.25:
            return random.choice(texts)(content[:end], random) + content[end:]
        return content[:end] + random.choice(BINARY)(content[end:], random)

    return mutate
