"""Watches: triggers by other resources, declared by an actuator or by default as in Gardener.

A Watch is data: a resource, the mapper that names our objects for an event, and predicates on the
event. A named object is enqueued if type, class and the author's predicates accept it; its other
triggers do not matter. (In Go's library the default predicates drop nearly all of these events.)

Only metadata of watched resources is read, so that no content of a Secret is kept.

Caveat: events while no manager ran are not replayed. A manager that starts treats its objects as
after any restart: objects that succeeded and wait for gardenlet's annotation are skipped until it
is set.
"""

from collections.abc import Iterable, Mapping, Sequence

import attrs

from actuator.interface import SECRETS, Resource
from actuator.meta import Kind, Trigger
from generic.controller.mappers import (
    KnownObjects,
    Mapper,
    by_controller_owner,
    by_label,
    by_owner,
    by_secret_reference,
    in_clusters_namespace,
    of_shoot_namespace,
)
from generic.controller.predicates import Predicate, all_of
from generic.kube.clusters import CLUSTERS, NAMESPACES
from generic.kube.headers import Event, Header, Request

__all__ = ["MACHINES", "Watch", "owns", "watches", "watches_for"]


def _each(predicates: Iterable[Predicate]) -> tuple[Predicate, ...]:
    return tuple(predicates)


@attrs.frozen
class Watch:
    """Events about `resource` that pass all `predicates` trigger the objects that `mapper` names.

    With `only_with_ignore_operation_annotation`, only if the manager ignores gardenlet's operation
    annotation.
    """

    resource: Resource
    mapper: Mapper
    predicates: tuple[Predicate, ...] = attrs.field(default=(), converter=_each)
    only_with_ignore_operation_annotation: bool = attrs.field(default=False, kw_only=True)

    def requests(self, event: Event[Header], known: KnownObjects) -> list[Request]:
        """Return the objects that the event triggers, without duplicates."""
        if not all_of(*self.predicates)(event):
            return []
        return list(dict.fromkeys(self.mapper(event, known)))


watches = Watch
"""Declares the trigger, as in `add(…, watches=[watches(SECRETS, by_secret_reference)])`."""


def owns(
    resource: Resource, *, predicates: Sequence[Predicate] = (), controller_only: bool = True
) -> Watch:
    """Trigger an object by events about a child that it controls.

    With `controller_only=False`, all owners of the child are triggered: an object has at most one
    controller, but any number of owners (Kubernetes documentation, "Owners and Dependents").
    """
    return Watch(resource, by_controller_owner if controller_only else by_owner, predicates)


MACHINES = Watch(
    Resource("machine.sapcloud.io/v1alpha1", "machines"), by_label("worker.gardener.cloud/name")
)
"""From Machines to their Worker, by a label that only machines of pools with in-place updates have.

Declared by GenericWorker. All changes of Machines trigger, since the selection of a machine is
visible in its status only, and only metadata of watched resources is read.
"""

_TRIGGERS: Mapping[Trigger, Watch] = {
    Trigger.CLUSTER: Watch(
        CLUSTERS, in_clusters_namespace, only_with_ignore_operation_annotation=True
    ),
    Trigger.SECRET: Watch(SECRETS, by_secret_reference, only_with_ignore_operation_annotation=True),
    Trigger.NAMESPACE: Watch(
        NAMESPACES, of_shoot_namespace, only_with_ignore_operation_annotation=True
    ),
}


def watches_for(
    kind: Kind, own: Iterable[Watch], *, ignore_operation_annotation: bool
) -> tuple[Watch, ...]:
    """Return the watches of the author and of the kind that apply in this mode."""
    both = dict.fromkeys((*own, *(_TRIGGERS[trigger] for trigger in kind.triggers)))
    return tuple(
        watch
        for watch in both
        if ignore_operation_annotation or not watch.only_with_ignore_operation_annotation
    )
