"""Behaviour of single kinds beyond their data, wrapped around any actuator for them.

An author writes `Actuator[DNSRecord]` like any other; `with_behaviour` adds the wrapper, so that no
author can forget it and the reconciler knows no kind. Here is the behaviour of each kind; read
`secret_guard`, `creation`, `user_data` next.
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, get_type_hints

import attrs

from actuator import v1alpha1
from actuator.interface import Actuator, object_class
from actuator.meta import Object
from generic.reconciler.behaviours.creation import RemembersCreation
from generic.reconciler.behaviours.secret_guard import GuardsSecret
from generic.reconciler.behaviours.user_data import WritesUserData

_BEHAVIOURS: Mapping[str, Callable[[Actuator[Any]], Actuator[Any]]] = {
    "BackupBucket": GuardsSecret,
    "BackupEntry": partial(GuardsSecret, needed_to_delete=True),
    "DNSRecord": RemembersCreation,
    "OperatingSystemConfig": WritesUserData,
}
"""By the name of the kind's class in `actuator.v1alpha1`, which is imported on use."""


def with_behaviour(actuator: Actuator[Any], *, guards_secret: bool = False) -> Actuator[Any]:
    """Return the actuator with its kind's behaviour, and a Secret guard if requested.

    Raises TypeError without a kind, ValueError for a guard if the spec has no secretRef.
    """
    cls = object_class(actuator)
    if guards_secret and "secret_ref" not in _fields_of_spec(cls):
        raise ValueError(f"{cls.KIND.name} has no spec.secretRef; leave guards_secret out")
    behaviour = _BEHAVIOURS.get(cls.__name__)
    is_ours = behaviour is not None and cls is getattr(v1alpha1, cls.__name__)
    wrapped = behaviour(actuator) if behaviour is not None and is_ours else actuator
    if guards_secret and not isinstance(wrapped, GuardsSecret):
        return GuardsSecret(wrapped, shared=True)
    return wrapped


def _fields_of_spec(cls: type[Object]) -> Collection[str]:
    spec = get_type_hints(cls).get("spec")
    return attrs.fields_dict(spec) if isinstance(spec, type) and attrs.has(spec) else ()
