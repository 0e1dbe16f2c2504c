"""The format of the framework's finalizers: qualified by a domain, like example.org/cleanup.

Kubernetes' documentation ("Finalizers") requires it. The API server enforces it only for core
objects; for custom resources it only warns. This module refuses every unqualified finalizer.
"""

import re

_LABEL = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_DOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_NAME = re.compile("[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_MAX_DOMAIN = 253
_MAX_NAME = 63


def require_qualified(finalizer: str) -> str:
    """Return the finalizer if it is a domain, "/" and a name. Raises ValueError otherwise."""
    domain, _, name = finalizer.partition("/")
    fits = len(domain) <= _MAX_DOMAIN and len(name) <= _MAX_NAME
    if not (fits and _DOMAIN.fullmatch(domain) and _NAME.fullmatch(name)):
        raise ValueError(
            f"finalizer {finalizer!r} is not qualified; "
            'use "DOMAIN/NAME", for example "example.org/cleanup"'
        )
    return finalizer
