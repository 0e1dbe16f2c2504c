"""The form of a finalizer of ours: qualified by a domain, as example.org/cleanup is.

Kubernetes' documentation ("Finalizers") asks for it and says that the API server enforces it. It
does so for core objects; a custom resource takes any name, with a warning. So we refuse it here.
"""

from __future__ import annotations

import re

__all__ = ["require_qualified"]

_LABEL = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_DOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_NAME = re.compile("[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_LONGEST_DOMAIN, _LONGEST_NAME = 253, 63


def require_qualified(finalizer: str) -> str:
    """The finalizer, if it is a domain, "/" and a name. Raises ValueError."""
    domain, _, name = finalizer.partition("/")
    fits = len(domain) <= _LONGEST_DOMAIN and len(name) <= _LONGEST_NAME
    if not (fits and _DOMAIN.fullmatch(domain) and _NAME.fullmatch(name)):
        raise ValueError(
            f"the finalizer {finalizer!r} is not qualified; "
            'call it "DOMAIN/NAME", like "example.org/cleanup"'
        )
    return finalizer
