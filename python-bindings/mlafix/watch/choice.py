"""Parses MLAFIX_WATCH."""

from __future__ import annotations

from typing import NamedTuple

from ..errors import ArgumentError

SEAMS = ("attention", "merge", "reduce", "cache", "metadata")
"""The names of the seams, where results are checked: after attention, merges and reductions over ranks, in the cache,
and in a batch's lengths and block tables."""

_OFF = {"", "0", "off", "false", "no"}
_ON = {"1", "on", "true", "yes"}


class Choice(NamedTuple):
    """The settings in MLAFIX_WATCH."""

    seams: frozenset[str]
    every: int = 1
    poison: bool = False
    repair: bool = False


def choice_of(text: str) -> Choice | None:
    """Parses comma-separated words: "1", seams, "every=100", "poison", "repair". Returns None if nothing is to be watched.

    Raises:
        ArgumentError: a word is none of these.
    """
    words = {word.strip().lower() for word in text.split(",")} - {""}
    if not words or words & _OFF:
        return None
    every = 1
    for word in [word for word in words if word.startswith("every=")]:
        number = word.removeprefix("every=")
        if not number.isdecimal() or int(number) < 1:
            raise ArgumentError(f'MLAFIX_WATCH: expected every=N with N of at least 1, got "{word}"')
        every = int(number)
        words.remove(word)
    unknown = sorted(words - _ON - set(SEAMS) - {"poison", "repair"})
    if unknown:
        raise ArgumentError(f'MLAFIX_WATCH: expected 1, {", ".join(SEAMS)}, every=N, poison or repair, got "{unknown[0]}"')
    return Choice(frozenset(words & set(SEAMS)) or frozenset(SEAMS), every, "poison" in words, "repair" in words)
