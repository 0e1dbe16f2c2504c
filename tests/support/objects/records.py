"""Records of force deletions and Orphans, as an export has them."""

from typing import Any

from actuator.meta import Raw
from generic.tools.record.chain import Export, ExportHeader, chained

API = "actuator.extensions.gardener.cloud/v1alpha1"
EXPORTED_AT = "2026-10-02T00:00:00Z"
ORIGIN = {
    "seedIdentity": "seed-1",
    "project": "blue",
    "shoot": "lake",
    "account": "000000000001",
    "extensionVersion": "gardener-actuator 0.1.0",
    "confirmedBy": "alice@example.org",
}


def former(**origin: str) -> Raw:
    """The object that a record is about."""
    return {
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": "Infrastructure",
        "namespace": "shoot--blue--lake",
        "name": "infra",
        "uid": "1",
        "type": "aws",
        "origin": {**ORIGIN, **origin},
    }


def _record(kind: str, name: str, spec: Raw, status: Raw) -> Raw:
    identity = {"kind": kind, "name": name, "uid": name, "createdAt": "2026-08-01T00:00:10Z"}
    return {"apiVersion": API, **identity, "spec": spec, "status": status}


def forced(name: str = "u1", origin: dict[str, str] | None = None, **spec: object) -> Raw:
    """A ForceDeletionRecord."""
    usual = {
        "object": former(**(origin or {})),
        "outcome": "force_deleted",
        "reason": "ForceDeleted",
        "forcedAt": "2026-08-01T00:00:00Z",
        "finishedAt": "2026-08-01T00:00:10Z",
        "budgetSeconds": 90,
        "usedSeconds": 10.25,
    }
    return _record("ForceDeletionRecord", name, usual | spec, {})


def orphan(name: str = "o1", status: Raw | None = None, **spec: object) -> Raw:
    """An Orphan, open unless its status says otherwise."""
    usual = {
        "resourceType": "VPC",
        "id": "vpc-1",
        "region": "eu-1",
        "object": former(),
        "shoot": "shoot--blue--lake",
        "reason": "ForceDeleted",
        "recordedAt": "2026-08-01T00:00:10Z",
    }
    return _record("Orphan", name, usual | spec, status or {})


def export(*records: Raw, until: str = "2026-10-01T00:00:00Z") -> Export:
    """A verified export of these records."""
    header = ExportHeader(
        since="2026-07-01T00:00:00Z",
        until=until,
        exported_at=EXPORTED_AT,
        seed="seed-1",
        records=len(records),
    )
    lines = list(chained(header, records))
    return Export(header, records, lines[-1][1])


def everywhere(value: object, text: str) -> Any:
    """The value with this text in place of each text, but the kinds, times and states."""
    if isinstance(value, dict):
        kept = ("kind", "createdAt", "state")
        return {key: item if key in kept else everywhere(item, text) for key, item in value.items()}
    if isinstance(value, list):
        return [everywhere(item, text) for item in value]
    return text if isinstance(value, str) else value
