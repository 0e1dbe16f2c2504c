"""Readiness check: whether Orphans can be written. A manager that cannot is not ready.

It creates one by a dry-run request, which tests CRD, Role and admission, and looks for one; the
answer is cached.
"""

import json
import threading
from contextlib import suppress

from actuator.errors import ApiError, NotFound
from actuator.interface import Clock
from actuator.meta import format_time
from generic.kube.client import HttpClient, path_of
from generic.kube.refusals import explained
from generic.reconciler.orphans.kind import ORPHANS, Orphan, OrphanReason

_GOOD_FOR = 300.0
_BAD_FOR = 10.0
"""Seconds for which a good or bad answer is cached."""
_INSTALL = "install the output of `actuator crds generic:Orphan`"
_MAX_WAIT_SECONDS = 5.0
"""Seconds for the request."""


def refused(error: ApiError) -> str:
    """Return the message of an Orphan that could not be written, with the remedy."""
    return explained(
        error,
        Forbidden="install the output of `actuator rbac`",
        NotServed=_INSTALL,
        RefusedByAPIServer=f"{_INSTALL} of this version",
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
        orphan = {  # as JSON: at the start of a process, the converter would take time
            "apiVersion": ORPHANS.api_version,
            "kind": Orphan.KIND.name,
            "metadata": {"generateName": "probe-"},
            "spec": {
                "resourceType": "probe",
                "object": {"apiVersion": "v1", "kind": "Probe", "name": "probe", "uid": "probe"},
                "reason": OrphanReason.FORCED,
                "recordedAt": format_time(self._clock.now()),
            },
        }
        body = json.dumps(orphan).encode()
        try:
            self._client.send("POST", path_of(ORPHANS), query={"dryRun": "All"}, body=body)
            with suppress(NotFound):
                self._client.get(ORPHANS, "probe")
        except ApiError as error:
            return f"cannot write Orphans: {refused(error)}"
        return None
