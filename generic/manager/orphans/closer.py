"""Finds the user who closes Orphans, and whether the API server would refuse another name."""

import json

from actuator.errors import ApiError
from actuator.meta import Raw
from generic.kube.client import HttpClient, path_of
from generic.kube.selfreview import user_name
from generic.manager.orphans.ledger import Closer
from generic.manager.orphans.policies import CLOSED_BY
from generic.reconciler.orphans.kind import ORPHANS, Orphan, OrphanState

_ANOTHER = "the name of another user"


def closer(client: HttpClient, orphan: Orphan) -> Closer:
    """Return the user of the client. Raises ApiError.

    Whether the policy is in effect is tried with `orphan`, by a request that changes nothing: a
    policy that exists may have another binding.
    """
    name = user_name(client)
    status: Raw = {"state": OrphanState.CLOSED.value, "closedBy": _ANOTHER}
    path = f"{path_of(ORPHANS)}/{orphan.metadata.name}/status"
    try:
        client.send(
            "PATCH",
            path,
            query={"dryRun": "All"},
            body=json.dumps({"status": status}).encode(),
            content_type="application/merge-patch+json",
        )
    except ApiError as error:
        return Closer(name, f"-{CLOSED_BY}'" in error.message)
    return Closer(name, verified=False)
