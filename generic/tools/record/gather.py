"""Gathers the records of a period from a cluster, for an export.

Each is exported as the API server stores it: nothing is decoded, so nothing is dropped.
"""

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime

from actuator.errors import NotFound
from actuator.interface import Client
from actuator.meta import Object, Raw, format_time, parse_time, value_at
from generic.kube.seedidentity import read_seed_identity
from generic.manager.orphans.ledger import stored_records
from generic.reconciler.orphans import RECORD_KINDS, Orphan, OrphanState
from generic.tools.record.chain import ExportHeader

_TIME = "At"
"""The end of each name of a field of spec and status that has a time."""


def gather(
    client: Client, since: datetime, until: datetime | None, now: datetime
) -> tuple[ExportHeader, list[Raw]]:
    """Return what an export of the period contains, oldest records first.

    A record belongs to the period if it was written before its end, and either it was written or
    changed after its begin, or it is an Orphan that is still open.

    Raises ConfigurationError without the CRDs, and ApiError.
    """
    end = until or now
    found = [item for cls in RECORD_KINDS for item in _read(client, cls)]
    records = [item for item in found if _belongs(item, since, end)]
    header = ExportHeader(
        since=format_time(since),
        until=format_time(until) if until else "",
        exported_at=format_time(now),
        seed=_seed(client),
        records=len(records),
    )
    return header, sorted(records, key=lambda item: (item["createdAt"], item["kind"], item["name"]))


def times(record: Raw) -> Iterator[datetime]:
    """Yield the times of a record: of its creation, and those in its spec and status."""
    yield parse_time(record["createdAt"])
    for part in ("spec", "status"):
        for name, value in (record.get(part) or {}).items():
            if name.endswith(_TIME) and isinstance(value, str):
                with suppress(ValueError):
                    yield parse_time(value)


def _belongs(record: Raw, since: datetime, end: datetime) -> bool:
    created = parse_time(record["createdAt"])
    return created < end and (max(times(record)) >= since or _is_open(record))


def _is_open(record: Raw) -> bool:
    closed = (OrphanState.GONE, OrphanState.CLOSED)
    return record["kind"] == Orphan.KIND.name and value_at(record, "status", "state") not in closed


def _read(client: Client, cls: type[Object]) -> Iterator[Raw]:
    for manifest in stored_records(client, cls):
        metadata = manifest["metadata"]
        yield {
            "apiVersion": manifest["apiVersion"],
            "kind": manifest["kind"],
            "name": metadata["name"],
            "uid": metadata["uid"],
            "createdAt": metadata["creationTimestamp"],
            "spec": manifest.get("spec") or {},
            "status": manifest.get("status") or {},
        }


def _seed(client: Client) -> str:
    """Return the identity, or "" without one. An export must not lack it for another reason."""
    with suppress(NotFound):
        return read_seed_identity(client)
    return ""
