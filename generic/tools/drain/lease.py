"""Whether the extension still runs: somebody who leads renews its Lease.

Judged as candidates for a Lease judge it (`generic.manager.leaderelection`): by whether its record
changes while it is looked at, never by the times that are written in it.
"""

from __future__ import annotations

import time

from actuator.errors import ActuatorError, NotFound
from actuator.interface import Client
from actuator.meta import Raw
from generic.kube.headers import as_dict
from generic.manager.leaderelection import LEASES, Timing
from generic.tools.drain.survey import may

__all__ = ["check_nobody_leads"]

_PAUSE = 0.5


def check_nobody_leads(client: Client, namespace: str, name: str) -> None:
    """Returns at once where the Lease was given back, else after its duration without a renewal.

    Raises ActuatorError where it is renewed, is not there, or must not be read; ApiError.
    """
    record = _read(client, namespace, name)
    promised = record.get("leaseDurationSeconds") or Timing().lease_duration
    until = time.monotonic() + float(promised)
    while record.get("holderIdentity") and time.monotonic() < until:
        time.sleep(_PAUSE)
        fresh = _read(client, namespace, name)
        if fresh.get("holderIdentity") and fresh != record:
            raise ActuatorError(
                f"{fresh['holderIdentity']} leads by Lease {namespace}/{name} and would put the "
                "finalizers on again; scale the extension's Deployment to zero first"
            )
        record = fresh


def _read(client: Client, namespace: str, name: str) -> Raw:
    try:
        with may("get", LEASES):
            return as_dict(client.get(LEASES, name, namespace).get("spec"))
    except NotFound:
        raise ActuatorError(
            f"there is no Lease {namespace}/{name}; name the one that the extension leads by "
            "(--leader-election-namespace/--leader-election-id of its Deployment), or say none "
            "if it never had one or its namespace is gone"
        ) from None
