"""FilterConfig: the providerConfig of this extension. Pure."""

from collections.abc import Iterator
from ipaddress import ip_network

import attrs

from actuator import FieldProblem
from actuator.provider_config import FIELD

API_VERSION = "networkfilter.extensions.gardener.cloud/v1alpha1"


@attrs.frozen(kw_only=True)
class FilterConfig:
    """`blocked` are ranges, like "203.0.113.0/24", to which access from the shoot is blocked."""

    api_version: str = API_VERSION
    kind: str = "FilterConfig"
    blocked: list[str] = attrs.field(factory=list)

    def problems(self) -> Iterator[FieldProblem]:
        """Yield the problems that the types cannot express."""
        for index, text in enumerate(self.blocked):
            if not _is_range(text):
                yield FieldProblem(
                    field=f"{FIELD}.blocked[{index}]",
                    detail=f"{text!r} is no range; write its first address and a prefix length, "
                    'like "203.0.113.0/24"',
                )


def _is_range(text: str) -> bool:
    try:
        ip_network(text)
    except ValueError:
        return False
    return True
