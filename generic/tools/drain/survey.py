"""Finds the objects in a seed with an extension's finalizers, and waits for their deletion.

Read-only: it lists the extension's kinds, which its generated role allows. Not here: the removal of
finalizers (`release`).
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import attrs

from actuator.errors import (
    ActuatorError,
    ApiError,
    Forbidden,
    Gone,
    NotFound,
    TooManyRequests,
    Unavailable,
)
from actuator.interface import Client, Resource, resource_of
from actuator.meta import Raw
from generic.controller.predicates import first_sight
from generic.kube.headers import Header, Request, header, request_of
from generic.kube.refusals import explained
from generic.manager.registry import Registration

_PAUSE = 2.0
"""Seconds between two surveys while waiting."""
_PASSING = (Gone, TooManyRequests, Unavailable)
"""Temporary errors of an API server."""


@attrs.frozen(kw_only=True)
class OwnedObject:
    """An object that carries our finalizer; `raw` is the object as read."""

    registration: Registration
    raw: Raw
    header: Header

    @property
    def resource(self) -> Resource:
        """The resource of its kind."""
        return resource_of(self.registration.kind)

    @property
    def request(self) -> Request:
        """Its namespace and name."""
        return request_of(self.raw)

    @property
    def finalizer(self) -> str:
        """Our finalizer."""
        return self.registration.kind.finalizer

    @property
    def is_deleting(self) -> bool:
        """Whether it has a deletionTimestamp."""
        return self.header.deletion_timestamp is not None

    def __str__(self) -> str:
        return f"{self.registration.kind.name} {self.request}"


@attrs.frozen(kw_only=True)
class Survey:
    """The objects found."""

    held: Sequence[OwnedObject] = ()
    """Objects whose finalizer our extension must remove."""
    of_others: Sequence[OwnedObject] = ()
    """Objects of the same kinds, with the same finalizer, that other controllers serve."""
    not_installed: Sequence[str] = ()
    """Resources that are not installed, so they have no objects."""

    @property
    def deleting(self) -> list[OwnedObject]:
        """The objects under deletion."""
        return [held for held in self.held if held.is_deleting]


def resources_of(registrations: Sequence[Registration]) -> list[Resource]:
    """Return the resources of these actuators, each once."""
    return list(dict.fromkeys(resource_of(registration.kind) for registration in registrations))


def survey(
    client: Client, registrations: Sequence[Registration], extension_classes: Sequence[str]
) -> Survey:
    """Find all objects in the seed with the finalizers of these actuators.

    `extension_classes` as in Options. Raises ApiError; ActuatorError if a list is forbidden.
    """
    held: dict[str, OwnedObject] = {}
    others: dict[str, OwnedObject] = {}
    missing = []
    for resource in resources_of(registrations):
        objects = _list(client, resource)
        if objects is None:
            missing.append(str(resource))
            continue
        serving = [item for item in registrations if resource_of(item.kind) == resource]
        for found in _with_finalizer(objects, serving):
            selects = found.registration.selection(extension_classes)
            ours = selects(first_sight(found.request, found.header))
            (held if ours else others).setdefault(found.header.uid, found)
    of_others = [found for uid, found in others.items() if uid not in held]
    return Survey(held=tuple(held.values()), of_others=of_others, not_installed=missing)


def wait(
    look: Callable[[], Survey], timeout: float, tell: Callable[[Survey | ApiError], None]
) -> Survey:
    """Wait until no object is under deletion, at most `timeout` seconds; return the survey.

    Calls `tell` with each survey in between, and with each temporary API error, which is retried.
    Raises other errors of `look`.
    """
    deadline = time.monotonic() + timeout
    while True:
        left = deadline - time.monotonic()
        try:
            found = look()
        except _PASSING as error:
            if left <= 0:
                raise
            tell(error)
        else:
            if left <= 0 or not found.deleting:
                return found
            tell(found)
        time.sleep(max(0.0, min(_PAUSE, left)))


@contextmanager
def may(verb: str, resource: Resource) -> Iterator[None]:
    """Raise ActuatorError, naming verb and resource, if the API server forbids a request."""
    try:
        yield
    except Forbidden as error:
        text = explained(error, Forbidden="use an account with the roles of `actuator rbac`")
        raise ActuatorError(f"cannot {verb} {resource}: {text}") from error


def _list(client: Client, resource: Resource) -> list[Raw] | None:
    """Return all objects in the seed; None if the type is not installed."""
    try:
        with may("list", resource):
            return client.list(resource)
    except NotFound:
        return None


def _with_finalizer(
    objects: Sequence[Raw], serving: Sequence[Registration]
) -> Iterator[OwnedObject]:
    for raw in objects:
        seen = header(raw)
        for registration in serving:
            if registration.kind.finalizer in seen.finalizers:
                yield OwnedObject(registration=registration, raw=raw, header=seen)
