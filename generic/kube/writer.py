"""Writer: every write of ours to an object of a kind, and the store told of each answer.

So that no watch event of our own making triggers us, and nothing that an answer reveals is
missed. Which patch to write is not decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from actuator.errors import NotFound
from actuator.interface import Client
from actuator.meta import Raw
from generic.kube.finalizers import Stale, patch_tested
from generic.kube.store import Entry, Event, Header, Request, Store


class ObjectGone(Exception):
    """The object, that object and no other of its name, is gone."""


@attrs.frozen
class Writer:
    """Patches objects of one resource; `notify` hears of every answer as of a watch event."""

    client: Client
    store: Store[Header]
    notify: Callable[[Event[Header]], None]
    forgets: bool = True
    """Whether an object that is gone is forgotten at once; else the watch tells of it."""

    def patch(
        self, request: Request, uid: str, patch: Sequence[Raw], *, subresource: str = ""
    ) -> Entry[Header]:
        """The object as patched. Raises Stale, ObjectGone or ApiError.

        A 404 that is not about the object, as from an API server that does not serve the kind, is
        no proof that the object was deleted: it stays an ApiError, and the object stays known.
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
        except NotFound as error:
            if error.reason != "NotFound":
                raise
            if self.forgets:
                self.store.forget(request, uid)
            raise ObjectGone(str(request)) from error
        entry, event = self.store.written(answer)
        self.notify(event)
        return entry

    def latest(self, request: Request, uid: str) -> Entry[Header]:
        """What the store knows of that object now. Raises ObjectGone."""
        entry = self.store.get(request)
        if entry is None or entry.header.uid != uid:
            raise ObjectGone(str(request))
        return entry
