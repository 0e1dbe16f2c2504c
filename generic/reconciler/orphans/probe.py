"""Readiness check: whether records can be written. A manager that cannot is not ready.

It creates one of each kind by a dry-run request, which tests CRD, Role and admission, and looks for
an Orphan; the answer is cached.
"""

import json
import threading
from contextlib import suppress

from actuator.errors import ApiError, NotFound
from actuator.interface import Clock, resource_of
from actuator.meta import Object, Raw, format_time
from generic.kube.client import HttpClient, path_of
from generic.kube.refusals import explained
from generic.reconciler.orphans.forced import ForceDeletionRecord
from generic.reconciler.orphans.kind import ORPHANS, Orphan, OrphanReason

_GOOD_FOR = 300.0
_BAD_FOR = 10.0
"""Seconds for which a good or bad answer is cached."""
_MAX_WAIT_SECONDS = 5.0
"""Seconds for the request."""


def refused(error: ApiError, cls: type[Object] = Orphan) -> str:
    """Return the message of a record that could not be written, with the remedy."""
    install = f"install the output of `actuator crds generic:{cls.KIND.name}`"
    return explained(
        error,
        Forbidden="install the output of `actuator rbac`",
        NotServed=install,
        RefusedByAPIServer=f"{install} of this version",
        APIServerUnavailable="restore the API server",
    )


class OrphanProbe:
    """A check of /readyz; safe to use from any thread."""

    def __init__(self, client: HttpClient, clock: Clock) -> None:
        self._client = client.within(_MAX_WAIT_SECONDS)
        self._clock = clock
        self._lock = threading.Lock()
        self._until = float("-inf")
        self._problem: str | None = None

    def problem(self) -> str | None:
        """Return why an Orphan cannot be written, or None."""
        with self._lock:
            if self._clock.monotonic() >= self._until:
                self._problem = self._ask()
                good_for = _BAD_FOR if self._problem else _GOOD_FOR
                self._until = self._clock.monotonic() + good_for
            return self._problem

    def _ask(self) -> str | None:
        now = format_time(self._clock.now())
        specs: tuple[tuple[type[Object], Raw], ...] = (
            (Orphan, {"resourceType": "probe", "recordedAt": now}),
            (ForceDeletionRecord, {"outcome": "force_deleted", "finishedAt": now}),
        )
        for cls, spec in specs:
            try:
                self._try(cls, spec)
            except ApiError as error:
                return f"cannot write {cls.KIND.name}s: {refused(error, cls)}"
        return None

    def _try(self, cls: type[Object], spec: Raw) -> None:
        """Create one by a dry run; look for an Orphan, as `record` does. Raises ApiError."""
        resource = resource_of(cls.KIND)
        former = {"apiVersion": "v1", "kind": "Probe", "name": "probe", "uid": "probe"}
        probe = {  # as JSON: at the start of a process, the converter would take time
            "apiVersion": resource.api_version,
            "kind": cls.KIND.name,
            "metadata": {"generateName": "probe-"},
            "spec": {"object": former, "reason": OrphanReason.FORCED, **spec},
        }
        body = json.dumps(probe).encode()
        self._client.send("POST", path_of(resource), query={"dryRun": "All"}, body=body)
        if resource == ORPHANS:
            with suppress(NotFound):
                self._client.get(ORPHANS, "probe")
