"""Suggestions: the known word that a misspelt one most probably stands for."""

from collections.abc import Iterable
from difflib import get_close_matches

_SIMILARITY = 0.75
"""Minimum similarity of two words, from 0 to 1: "reconcil" is close to "reconcile"."""


def closest(word: str, known: Iterable[str], similarity: float = _SIMILARITY) -> str | None:
    """Return the known word most similar to `word`, or None if none is similar enough."""
    return next(iter(get_close_matches(word, list(known), n=1, cutoff=similarity)), None)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" with the closest known word, or "" without one."""
    found = closest(word, known)
    return "" if found is None else f"; did you mean {found!r}?"
