"""Suggestions: the known word that a misspelt one most probably stands for."""

from collections.abc import Iterable
from difflib import get_close_matches

_LENGTH = 60
"""Characters that are compared: the time grows with their square."""
_SIMILARITY = 0.75
"""Minimum similarity of two words, from 0 to 1: "reconcil" is close to "reconcile"."""


def closest(word: str, known: Iterable[str], similarity: float = _SIMILARITY) -> str | None:
    """Return the known word most similar to `word`, in any case; None if none is similar enough."""
    names = {name.lower(): name for name in known}
    found = get_close_matches(word[:_LENGTH].lower(), names, n=1, cutoff=similarity)
    return names[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" with the closest known word, or "" without one."""
    found = closest(word, known)
    return "" if found is None else f"; did you mean {found!r}?"
