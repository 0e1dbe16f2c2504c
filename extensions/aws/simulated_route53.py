"""Correct how moto changes records, for `simulator`.

moto searches its log of changes in place of the zone, and applies a part of a batch that it
refuses. Source of the rules: Amazon Route 53 API reference, "ChangeResourceRecordSets".
"""

from typing import Any

from moto.route53.exceptions import Route53ClientError
from moto.route53.models import ChangeList, Route53Backend

from actuator import Raw
from extensions.aws.records import content

_MOTO: Any = Route53Backend
_change = _MOTO.change_resource_record_sets


def change(backend: Any, zone_id: str, changes: list[Raw]) -> None:
    """Apply all changes, in their order, or none."""
    zone = backend.get_hosted_zone(zone_id)
    before = list(zone.rrsets)
    try:
        for item in changes:
            _check(zone, item["Action"], item["ResourceRecordSet"])
            _change(backend, zone_id, [item])
    except BaseException:
        zone.rrsets = before
        raise


def _check(zone: Any, action: str, wanted: Raw) -> None:
    key = f"{wanted['Name'].lower().removesuffix('.')}.", wanted["Type"]
    wanted["Name"] = key[0]  # moto compares names as they are
    found = [rrset for rrset in zone.rrsets if (rrset.name, rrset.type) == key]
    stored = [{"TTL": item.ttl, "ResourceRecords": item.resource_records} for item in found]
    matches = [*map(content, stored)] == [content(wanted)]
    if (action == "CREATE" and found) or (action == "DELETE" and not matches):
        why = "it already exists" if action == "CREATE" else "it was not found with these values"
        raise Route53ClientError("InvalidChangeBatch", f"Tried to {action} {key}, but {why}")
    zone.rr_changes = ChangeList()  # the log
    if action == "DELETE":
        zone.rr_changes.append({"Action": "CREATE", "ResourceRecordSet": {**wanted}})


def correct() -> None:
    """Change records like Route 53 from now on, in this process."""
    _MOTO.change_resource_record_sets = change
