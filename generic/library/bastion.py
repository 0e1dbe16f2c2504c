"""Ingress of a Bastion: the ranges of addresses from which its users log in."""

import re
from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network, ip_network

from actuator.interface import FieldProblem, invalid
from actuator.v1alpha1 import Bastion

__all__ = ["Range", "ingress_problems", "ingress_ranges"]

Range = IPv4Network | IPv6Network
_CIDR = re.compile(r"[0-9a-f:.]+/\d{1,3}", re.ASCII | re.IGNORECASE)


def ingress_problems(bastion: Bastion) -> Iterator[FieldProblem]:
    """Yield the problems of `spec.ingress`, for `Actuator.validate`.

    `except` is a problem: firewalls of most clouds only allow, and ignoring it would allow more.
    """
    for index, item in enumerate(bastion.spec.ingress):
        field = f"spec.ingress[{index}].ipBlock"
        block = item.ip_block
        if _parsed(block.cidr) is None:
            detail = "expected a range such as 203.0.113.0/24 or 2001:db8::/64"
            yield FieldProblem(field=f"{field}.cidr", detail=f"{detail}, got {block.cidr!r}")
        if block.except_:
            detail = "ranges cannot be excluded; list the ranges to allow instead"
            yield FieldProblem(field=f"{field}.except", detail=detail)


def ingress_ranges(bastion: Bastion) -> list[Range]:
    """Return each range of `spec.ingress` once, as clouds write it: 10.1.2.3/8 is 10.0.0.0/8.

    `version` of a range is 4 or 6. Raises ConfigurationError with all problems.
    """
    problems = list(ingress_problems(bastion))
    if problems:
        raise invalid(bastion, problems)
    parsed = (_parsed(item.ip_block.cidr) for item in bastion.spec.ingress)
    return list(dict.fromkeys(item for item in parsed if item is not None))


def _parsed(cidr: str) -> Range | None:
    """Return the range, if Go's `net.ParseCIDR`, with which Gardener validates it, accepts it."""
    try:
        return ip_network(cidr, strict=False) if _CIDR.fullmatch(cidr) else None
    except ValueError:
        return None
