"""Writer: sends each of our writes to objects of a kind, and stores each answer.

This way the watch events of our own writes trigger no reconcile, and every change in an answer is
processed. Not here: the content of the patches.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from actuator.errors import NotFound, NotServed
from actuator.interface import Client
from actuator.meta import Raw
from generic.kube.finalizers import Stale, patch_tested
from generic.kube.headers import Event, Header, Request
from generic.kube.store import Store, StoredObject


class ObjectGone(Exception):
    """The object with that uid is deleted, even if another has its name."""


class Writer(Struct, frozen=True):
    """Patches objects of one resource; `notify` receives every answer like a watch event."""

    client: Client
    store: Store[Header]
    notify: Callable[[Event[Header]], None]
    forgets: bool = True
    """Whether an object under deletion is forgotten at once; any other is the watch's to report.

    Only the watch tells a deletion from a restore of etcd to a state without the object.
    """

    def patch(
        self, request: Request, uid: str, patch: Sequence[Raw], *, subresource: str = ""
    ) -> StoredObject[Header]:
        """Patch and return the object. Raises Stale, ObjectGone or ApiError.

        A 404 that does not name the object, as from an API server without its namespace or its CRD,
        does not prove that it was deleted: it stays an ApiError, and the store keeps the object.
        """
        namespace, name = request
        try:
            answer = patch_tested(
                self.client, self.store.resource, name, namespace, patch, subresource=subresource
            )
        except Stale as stale:
            event = self.store.observe(stale.fresh)
            if event is not None:
                self.notify(event)
            raise
        except NotServed:
            raise
        except NotFound as error:
            known = self.store.get(request)
            if self.forgets and known is not None and known.header.deletion_timestamp is not None:
                self.store.forget(request, uid)
            raise ObjectGone(str(request)) from error
        entry, event = self.store.written(answer)
        self.notify(event)
        return entry

    def latest(self, request: Request, uid: str) -> StoredObject[Header]:
        """Return the object's current entry in the store. Raises ObjectGone."""
        entry = self.store.get(request)
        if entry is None or entry.header.uid != uid:
            raise ObjectGone(str(request))
        return entry
