"""Which kind has a behaviour of its own. A kind that is not in here is data alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from actuator.interface import Actuator, object_class
from actuator.meta import Object
from actuator.v1alpha1 import BackupBucket, BackupEntry, DNSRecord, OperatingSystemConfig
from generic.behaviours.creation import RemembersCreation
from generic.behaviours.secret_guard import GuardsSecret
from generic.behaviours.user_data import WritesUserData

__all__ = ["with_behaviour"]

_BEHAVIOURS: Mapping[type[Object], Callable[[Actuator[Any]], Actuator[Any]]] = {
    BackupBucket: GuardsSecret,
    BackupEntry: partial(GuardsSecret, needed_to_delete=True),
    DNSRecord: RemembersCreation,
    OperatingSystemConfig: WritesUserData,
}


def with_behaviour(actuator: Actuator[Any]) -> Actuator[Any]:
    """The actuator with what its kind does beyond data. Raises TypeError without a kind."""
    behaviour = _BEHAVIOURS.get(object_class(actuator))
    return actuator if behaviour is None else behaviour(actuator)
