"""Watches: what else an actuator wants to hear of, and what Gardener's kinds hear of anyway.

A Watch is data: a resource, the mapper that says which of our objects an event is about, and
predicates on the event. The objects that it names are looked at if type, class and the author's
predicates want them; what triggers them otherwise does not matter. (In Go's library the default
predicates drop nearly all of these events.)

Of a watched resource only metadata is ever read, so that no content of a Secret is kept.

Caveat: what happened while no manager ran is not told afterwards. A manager that starts looks at
the objects it serves as after any restart: those that wait for gardenlet's annotation, and were
done, are left alone until it comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from actuator.interface import Permission, Resource
from actuator.meta import GROUP, Kind
from generic.controller.mappers import (
    Mapper,
    Target,
    by_controller_owner,
    by_label,
    by_secret_reference,
    in_clusters_namespace,
    of_shoot_namespace,
)
from generic.controller.predicates import Predicate, all_of
from generic.kube.clusters import CLUSTERS
from generic.kube.headers import Event, Header, Request

__all__ = ["MACHINES", "Watch", "owns", "watches", "watches_for"]


def _each(predicates: Iterable[Predicate]) -> tuple[Predicate, ...]:
    return tuple(predicates)


@attrs.frozen
class Watch:
    """Events about `resource` that pass all `predicates` are news for what `mapper` names.

    With `only_with_ignore_operation_annotation` they are so only where objects are reconciled
    without waiting for gardenlet's annotation.
    """

    resource: Resource
    mapper: Mapper
    predicates: tuple[Predicate, ...] = attrs.field(default=(), converter=_each)
    only_with_ignore_operation_annotation: bool = False

    @property
    def permission(self) -> Permission:
        """What watching needs."""
        return Permission(
            api_version=self.resource.api_version,
            resource=self.resource.plural,
            verbs=["list", "watch"],
        )

    def requests(self, event: Event[Header], target: Target) -> list[Request]:
        """The objects that the event is news for, each once."""
        if not all_of(*self.predicates)(event):
            return []
        return list(dict.fromkeys(self.mapper(event, target)))


def watches(
    resource: Resource,
    mapper: Mapper,
    *,
    predicates: Sequence[Predicate] = (),
    only_with_ignore_operation_annotation: bool = False,
) -> Watch:
    """Looks at the objects that `mapper` names when something happens to one of `resource`."""
    return Watch(resource, mapper, predicates, only_with_ignore_operation_annotation)


def owns(resource: Resource, *, predicates: Sequence[Predicate] = ()) -> Watch:
    """Looks at an object when something happens to a child that it controls."""
    return Watch(resource, by_controller_owner, predicates)


_CLUSTER = Watch(CLUSTERS, in_clusters_namespace, (), True)
_SECRET = Watch(Resource("v1", "secrets"), by_secret_reference, (), True)
_NAMESPACE = Watch(Resource("v1", "namespaces", namespaced=False), of_shoot_namespace, (), True)

MACHINES = Watch(
    Resource("machine.sapcloud.io/v1alpha1", "machines"), by_label("worker.gardener.cloud/name")
)
"""From Machines to their Worker, by a label that only machines of pools with in-place updates have.

GenericWorker declares it. All of their changes count, since the selection of a machine is visible
in its status only, and of watched resources metadata alone is read.
"""

_BY_KIND: dict[str, tuple[Watch, ...]] = {
    "BackupBucket": (_SECRET,),
    "BackupEntry": (_SECRET, _NAMESPACE),
    "ContainerRuntime": (_CLUSTER,),
    "ControlPlane": (_CLUSTER,),
    "DNSRecord": (_CLUSTER,),
    "Extension": (_CLUSTER,),
    "Infrastructure": (_CLUSTER,),
    "Network": (_CLUSTER,),
    "Worker": (_CLUSTER,),
}
"""What Gardener's own controllers watch besides their kind."""


def watches_for(
    kind: Kind, own: Iterable[Watch], *, ignore_operation_annotation: bool
) -> tuple[Watch, ...]:
    """The author's watches and those of the kind, as far as they count in this mode."""
    gardeners = _BY_KIND.get(kind.name, ()) if kind.group == GROUP else ()
    both = dict.fromkeys((*own, *gardeners))
    return tuple(
        watch
        for watch in both
        if ignore_operation_annotation or not watch.only_with_ignore_operation_annotation
    )
