"""Orphans for scripts: the JSON output of the command line, independent of the CRD's schema."""

from actuator.meta import Raw
from generic.reconciler.orphans.kind import Orphan


def facts(orphan: Orphan) -> Raw:
    """Return all recorded facts; every key is always present."""
    spec, status, let_go = orphan.spec, orphan.status, orphan.spec.object
    return {
        "name": orphan.metadata.name,
        "resourceType": spec.resource_type,
        "id": spec.id,
        "tags": spec.tags,
        "region": spec.region,
        "shoot": spec.shoot,
        "object": {
            "apiVersion": let_go.api_version,
            "kind": let_go.kind,
            "namespace": let_go.namespace,
            "name": let_go.name,
            "uid": let_go.uid,
            "type": let_go.type,
        },
        "reason": spec.reason,
        "message": spec.message,
        "recordedAt": spec.recorded_at,
        "state": orphan.state.value,
        "verifiedAt": status.verified_at,
        "closedAt": status.closed_at,
        "note": status.note,
    }
