"""Correct how moto changes records, for `simulator`.

moto searches its log of changes in place of the zone: it refuses to create a deleted record again,
creates one twice, deletes by old values, and applies a part of a batch that it refuses. Source of
the rules: Amazon Route 53 API reference, "ChangeResourceRecordSets".
"""

from typing import Any

from moto.route53.exceptions import ResourceRecordAlreadyExists, Route53ClientError
from moto.route53.models import ChangeList, Route53Backend

from actuator.meta import Raw
from extensions.aws.records import content

_moto_change: Any = Route53Backend.change_resource_record_sets
_MOTO: Any = Route53Backend


def change(backend: Any, zone_id: str, changes: list[Raw]) -> None:
    """Apply all changes, in their order, or none."""
    zone = backend.get_hosted_zone(zone_id)
    before = list(zone.rrsets)
    try:
        for one in changes:
            _apply(backend, zone, one)
    except BaseException:
        zone.rrsets = before
        raise


def _apply(backend: Any, zone: Any, change: Raw) -> None:
    wanted, deletes = change["ResourceRecordSet"], change["Action"] == "DELETE"
    wanted["Name"] = f"{wanted['Name'].lower().removesuffix('.')}."  # as moto compares them
    key = wanted["Name"], wanted["Type"]
    found = [one for one in zone.rrsets if (one.name, one.type) == key]
    if change["Action"] == "CREATE" and found:
        raise ResourceRecordAlreadyExists(*key)
    stored = [{"TTL": one.ttl, "ResourceRecords": one.resource_records} for one in found]
    if deletes and [*map(content, stored)] != [content(wanted)]:
        text = f"Tried to delete resource record set {key} but it was not found with these values"
        raise Route53ClientError("InvalidChangeBatch", text)
    zone.rr_changes = ChangeList()
    if deletes:
        zone.rrsets.remove(found[0])
    else:
        _moto_change(backend, zone.id, [change])


def correct() -> None:
    """Change records like Route 53 from now on, in this process."""
    _MOTO.change_resource_record_sets = change
