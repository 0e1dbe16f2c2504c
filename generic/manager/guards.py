"""Releases Secrets that a former process, or version, guarded and that no object needs any more.

It runs once, when this process leads, if the permissions of the actuators allow it. An object that
we serve without a guard needs no guarded Secret: no one would release it.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain

from actuator.errors import NotFound
from actuator.interface import SECRETS, resource_of
from actuator.meta import Raw
from generic.controller.predicates import first_sight
from generic.kube.client import HttpClient
from generic.kube.headers import Request, request_of
from generic.manager.registry import Registration, Registry, Runnable
from generic.reconciler.behaviours import has_secret, secret_guard


def runnables(registry: Registry, client: HttpClient) -> Iterator[Runnable]:
    """Yield the work of a start, if it is allowed and served objects can refer to a Secret."""
    given = [p for item in registry.registrations for p in item.actuator.permissions]
    of_all = [p for p in given if p.resource == SECRETS and not (p.namespace or p.names)]
    if not set(secret_guard.PERMISSION.verbs) <= {*chain(*(p.verbs for p in of_all))}:
        return
    groups: defaultdict[str, list[Registration]] = defaultdict(list)
    for registration in registry.registrations:
        if has_secret(registration.cls):
            groups[registration.kind.finalizer].append(registration)
    if groups:
        run = partial(_release, groups, registry.options.extension_classes, client)
        yield Runnable(name="secret-guards", run=lambda _client, _stop: run())


def _release(
    groups: dict[str, list[Registration]], classes: Sequence[str], client: HttpClient
) -> None:
    """Release the Secrets that no object needs. Raises ApiError."""
    found: defaultdict[str, list[Raw]] = defaultdict(list)
    for page, _ in client.metadata_only().pages(SECRETS):  # before the objects that guard them
        for finalizer in groups:
            found[finalizer] += secret_guard.guarded(page, finalizer)
    for finalizer, secrets in found.items():
        needed = set(_needed(groups[finalizer], classes, client)) if secrets else set()
        secret_guard.strip_all(
            client, [secret for secret in secrets if request_of(secret) not in needed], finalizer
        )


def _needed(
    group: Sequence[Registration], classes: Sequence[str], client: HttpClient
) -> Iterator[Request | None]:
    unguarded = [
        registration.selection(classes)
        for registration in group
        if not isinstance(registration.actuator, secret_guard.GuardsSecret)
    ]
    for kind in {str(resource_of(item.kind)): item.kind for item in group}.values():
        with suppress(NotFound):  # the kind is not installed
            for page, _ in client.pages(resource_of(kind)):
                for request, item in secret_guard.needing(page, kind.finalizer):
                    if not any(serves(first_sight(request, item)) for serves in unguarded):
                        yield item.secret
