"""The observer of a drill: its evidence log, and what it tells so far."""

from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager
from functools import partial

from actuator.codec import decode
from actuator.interface import Client
from actuator.meta import Kind, Raw
from generic.kube.client import HttpClient
from generic.reconciler.deletion.force_deletion import IN_SEED
from generic.reconciler.orphans import ORPHANS, SHOOT_LABEL, Orphan
from generic.testing.drill.evidence import Evidence, Life, Record
from generic.testing.drill.history import History, labelled_shoot
from generic.testing.drill.log import DrillLog


class Observer:
    """Follows the objects of a drill."""

    def __init__(
        self,
        client: HttpClient,
        kinds: Iterable[Kind],
        selector: str,
        bad: Collection[str] = (),
        shoot_of: Callable[[Raw], str] = labelled_shoot,
    ) -> None:
        """See History."""
        by_name: dict[str, Kind] = {}
        self._finalizers: dict[str, set[str]] = {}
        for kind in kinds:  # several of one name have finalizers of their own
            by_name[kind.name] = kind
            self._finalizers.setdefault(kind.name, set()).add(kind.finalizer)
        self._new = partial(History, by_name, bad, shoot_of, self._finalizers)
        self._so_far = self._new()
        self._log = DrillLog(client, by_name, selector, self._so_far.read)
        self.now = self._log.now
        self.follow = self._log.take

    def watching(self) -> AbstractContextManager[None]:
        """Follow everything until the context is left; times count from now."""
        return self._log.watching()

    @property
    def lives(self) -> list[Life]:
        """The objects as known so far."""
        return list(self._so_far.lives.values())

    @property
    def forced(self) -> dict[str, float]:
        """When each shoot's force deletion was first seen."""
        return dict(self._so_far.forced)

    def tell(self, evidence: Evidence) -> None:
        """Write the whole history into the evidence."""
        history = self._new().read_all(self._log.entries())
        evidence.lives = list(history.lives.values())
        evidence.strips = history.strips
        evidence.gaps = list(self._log.gaps)
        evidence.finalizers = {kind: sorted(own) for kind, own in self._finalizers.items()}


def read_records(client: Client, namespace: str) -> list[Record]:
    """Return the remaining external resources recorded for one shoot. Raises ApiError."""
    found = client.list(ORPHANS, label_selector=f"{SHOOT_LABEL}={namespace}")
    specs = [decode(Orphan, raw).spec for raw in found]
    return [
        Record(
            shoot=namespace,
            owner=f"{spec.object.kind} {spec.object.name}",
            resource=spec.resource,
        )
        for spec in specs
        if not spec.resource_type.startswith(IN_SEED)
    ]
