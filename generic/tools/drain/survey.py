"""What an extension's finalizers hold in a seed, and waiting until they hold nothing in deletion.

Reads only: `list` of the extension's kinds, which its generated role has. What takes finalizers
off is `release`.

What an actuator's own predicates do not pass is listed as well: they may be about when to look at
an object, and it is better to list one too many than to leave one behind. As they may also be
about whose it is, `release` leaves such an object alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import attrs

from actuator.errors import (
    ActuatorError,
    Forbidden,
    Gone,
    NotFound,
    TooManyRequests,
    Unavailable,
)
from actuator.interface import Client, Resource, resource_of
from actuator.meta import Raw
from generic.controller.predicates import all_of, has_class, has_type
from generic.kube.headers import Event, EventType, Header, Request, as_dict, header, request_of
from generic.manager.manager import Registration

NOT_SERVED = "predicates of the actuator do not pass it: it may be another's"

_PAUSE = 2.0
"""Seconds between two looks while waiting."""
_PASSING = (Gone, TooManyRequests, Unavailable)
"""What an API server answers, or does not, that has trouble for a while."""


@attrs.frozen(kw_only=True)
class Held:
    """An object that carries our finalizer; `raw` is how it was read."""

    registration: Registration
    raw: Raw
    header: Header

    @property
    def resource(self) -> Resource:
        """Where objects of its kind live."""
        return resource_of(self.registration.kind)

    @property
    def request(self) -> Request:
        """Its namespace and name."""
        return request_of(self.raw)

    @property
    def finalizer(self) -> str:
        """Ours."""
        return self.registration.kind.finalizer

    @property
    def is_deleting(self) -> bool:
        """Whether it has a deletionTimestamp."""
        return self.header.deletion_timestamp is not None

    @property
    def first_sight(self) -> Event[Header]:
        """What predicates see when they are asked whose it is."""
        return Event(EventType.ADDED, self.request, None, self.header)

    @property
    def is_served(self) -> bool:
        """Whether the actuator's own predicates pass it."""
        return all_of(*self.registration.predicates)(self.first_sight)

    @property
    def created_at(self) -> str:
        """The API server's text."""
        return str(as_dict(self.raw.get("metadata")).get("creationTimestamp") or "")

    @property
    def last_error(self) -> str:
        """status.lastError, in one line; "" for none."""
        error = as_dict(as_dict(self.raw.get("status")).get("lastError"))
        return " ".join(str(error.get("description") or "").split())

    def __str__(self) -> str:
        return f"{self.registration.kind.name} {self.request}"


@attrs.frozen(kw_only=True)
class Survey:
    """What was found."""

    held: Sequence[Held] = ()
    """What our extension has to let go."""
    of_others: Sequence[Held] = ()
    """Objects of the same kinds, with the same finalizer, that others serve."""
    not_installed: Sequence[str] = ()
    """Resources that the API server does not know: there is nothing to drain."""

    @property
    def deleting(self) -> list[Held]:
        """What waits for the extension now."""
        return [held for held in self.held if held.is_deleting]


def survey(
    client: Client, registrations: Sequence[Registration], extension_classes: Sequence[str]
) -> Survey:
    """What the finalizers of these actuators hold in the whole seed.

    `extension_classes` as in Options. Raises ApiError; ActuatorError where a list is forbidden.
    """
    held: dict[str, Held] = {}
    others: dict[str, Held] = {}
    missing = []
    for resource in dict.fromkeys(resource_of(one.kind) for one in registrations):
        objects = _list(client, resource)
        if objects is None:
            missing.append(str(resource))
            continue
        serving = [one for one in registrations if resource_of(one.kind) == resource]
        candidates = _with_finalizer(objects, serving)
        for found in sorted(candidates, key=lambda one: not one.is_served):
            ours = _serves(found, extension_classes)
            (held if ours else others).setdefault(found.header.uid, found)
    of_others = [found for uid, found in others.items() if uid not in held]
    return Survey(held=tuple(held.values()), of_others=of_others, not_installed=missing)


def wait(look: Callable[[], Survey], timeout: float, tell: Callable[[Survey], None]) -> Survey:
    """What is held once nothing is being deleted any more, or after `timeout` seconds.

    `tell` hears of every look in between. An API server that is away for a while is waited for.
    Raises what `look` raises.
    """
    deadline = time.monotonic() + timeout
    while True:
        left = deadline - time.monotonic()
        try:
            found = look()
        except _PASSING:
            if left <= 0:
                raise
        else:
            if left <= 0 or not found.deleting:
                return found
            tell(found)
        time.sleep(max(0.0, min(_PAUSE, left)))


@contextmanager
def may(verb: str, resource: Resource) -> Iterator[None]:
    """Raises ActuatorError, naming verb and resource, where the API server forbids it."""
    try:
        yield
    except Forbidden as error:
        raise ActuatorError(
            f"this account may not {verb} {resource} ({error}); "
            "use one with the rights that `actuator rbac` prints"
        ) from error


def _list(client: Client, resource: Resource) -> list[Raw] | None:
    """All of the seed; None where this type is not installed."""
    try:
        with may("list", resource):
            return client.list(resource)
    except NotFound:
        return None


def _with_finalizer(objects: Sequence[Raw], serving: Sequence[Registration]) -> Iterator[Held]:
    for raw in objects:
        seen = header(raw)
        for registration in serving:
            if registration.kind.finalizer in seen.finalizers:
                yield Held(registration=registration, raw=raw, header=seen)


def _serves(found: Held, extension_classes: Sequence[str]) -> bool:
    """As the manager decides which objects are its own; without types it is every one."""
    types = found.registration.types
    if not types:
        return True
    return all_of(has_type(*types), has_class(*extension_classes))(found.first_sight)
