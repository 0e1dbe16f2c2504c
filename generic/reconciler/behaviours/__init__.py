"""Behaviour of single kinds beyond their data, wrapped around any actuator for them.

An author writes `Actuator[DNSRecord]` like any other; `with_behaviour` adds the wrapper, so that no
author can forget it and the reconciler knows no kind. `Kind.behaviour` names it. Read
`secret_guard`, `creation` and `user_data` next.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, get_type_hints

import attrs

from actuator.interface import Actuator, object_class
from actuator.meta import Behaviour, Object
from generic.reconciler.behaviours.creation import RemembersCreation
from generic.reconciler.behaviours.secret_guard import GuardsSecret, ReleasesSecrets
from generic.reconciler.behaviours.user_data import WritesUserData

_WRAPPERS: Mapping[Behaviour, Callable[..., Actuator[Any]]] = {
    Behaviour.GUARDS_SECRET: GuardsSecret,
    Behaviour.NEEDS_SECRET_TO_DELETE: partial(GuardsSecret, needed_to_delete=True),
    Behaviour.REMEMBERS_CREATION: RemembersCreation,
    Behaviour.WRITES_USER_DATA: WritesUserData,
}


def with_behaviour(actuator: Actuator[Any], *, guards_secret: bool | None = None) -> Actuator[Any]:
    """Return the actuator with its kind's behaviour, and a Secret guard if requested.

    With False, it has the permission for removing the guards of a former version. Raises TypeError
    without a kind, ValueError for a guard if the spec has no secretRef.
    """
    cls = object_class(actuator)
    if guards_secret and not has_secret(cls):
        raise ValueError(f"{cls.KIND.name} has no spec.secretRef; leave guards_secret out")
    wrapper = None if cls.KIND.behaviour is None else _WRAPPERS[cls.KIND.behaviour]
    wrapped = actuator if wrapper is None else wrapper(actuator)
    if wrapper is not None and isinstance(wrapped, GuardsSecret):
        return wrapper(actuator, shared=True) if guards_secret else wrapped
    if guards_secret is None:
        return wrapped
    return GuardsSecret(wrapped, shared=True) if guards_secret else ReleasesSecrets(wrapped)


def has_secret(cls: type[Object]) -> bool:
    """Whether objects of the class have a spec.secretRef."""
    spec = get_type_hints(cls).get("spec")
    if not isinstance(spec, type) or not attrs.has(spec):
        return False
    return "secret_ref" in attrs.fields_dict(spec)
