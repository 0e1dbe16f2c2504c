"""Predicates as an author writes them."""

from __future__ import annotations

from generic import Event, Header, Predicate


def has_name(*names: str) -> Predicate:
    """Accept objects of one of these names."""
    return lambda event: event.request.name in names


def finalizers_changed(event: Event[Header]) -> bool:
    """Accept events that add or remove a finalizer."""
    old = event.old
    new = event.new
    return old is not None and new is not None and old.finalizers != new.finalizers
