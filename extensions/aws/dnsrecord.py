"""AwsDnsRecord: a record in Route 53, requested by a DNSRecord.

Flow of reconcile: select the zone → save a status with it (from then on the record may exist) →
write record and comment in one change. The zone is spec.zone, else the zone in the status, else the
hosted zone with the longest matching name.

`generic` handles the deletion of a record that was never created.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from ipaddress import IPv4Address, IPv6Address

from actuator import (
    Actuator,
    Cluster,
    ConfigurationError,
    Context,
    ExternalResource,
    FieldProblem,
    RequeueAfter,
    read_status,
    write_status,
)
from actuator.v1alpha1 import DNSRecord, DNSRecordType
from extensions.aws.account import READ_SECRETS, OnAws
from extensions.aws.cloud import GLOBAL
from extensions.aws.errors import CloudError
from extensions.aws.records import (
    RECORD_SET,
    Records,
    canonical,
    choose_zone,
    comment_name,
    record_set,
    record_set_id,
)
from extensions.aws.status import DNSRecordStatus

_WHEN_THROTTLED = 30.0
"""Seconds. Route 53 limits requests per account, to five per second."""

_ADDRESSES: dict[str, type[IPv4Address | IPv6Address]] = {
    "A": IPv4Address,
    "AAAA": IPv6Address,
}


class AwsDnsRecord(OnAws, Actuator[DNSRecord]):
    """A record, and its comment record."""

    permissions = (READ_SECRETS,)

    def validate(self, ctx: Context, obj: DNSRecord, cluster: Cluster) -> Iterator[FieldProblem]:
        """Require values that match the record's type."""
        return _value_problems(obj.spec.record_type, obj.spec.values)

    def reconcile(self, ctx: Context, obj: DNSRecord, cluster: Cluster) -> None:
        """Create or update the record; write its zone to the status."""
        spec = obj.spec
        before = _zone(obj)
        records = self._records(ctx, obj)
        with _patience():
            zone = spec.zone or before or self._search(obj, records)
            if before and before != zone:
                records.delete(before, spec.name, spec.record_type)
            obj.status.zone = zone
            write_status(obj.status, DNSRecordStatus(zone=zone))
            if before != zone:
                ctx.save(obj)
            wanted = record_set(spec.name, spec.record_type, spec.ttl_seconds, spec.values)
            records.ensure(zone, wanted)

    def delete(self, ctx: Context, obj: DNSRecord, cluster: Cluster) -> None:
        """Delete the extension's record; never touch a record of others."""
        zone = _zone(obj)
        if zone:
            records = self._records(ctx, obj)
            with _patience():
                records.delete(zone, obj.spec.name, obj.spec.record_type)

    def external_resources(self, obj: DNSRecord) -> Iterable[ExternalResource]:
        """Return the record and its comment, once their creation was requested."""
        zone = _zone(obj)
        if zone:
            record = (canonical(obj.spec.name), obj.spec.record_type)
            for name, type in (record, (comment_name(obj.spec.name), "TXT")):
                id = record_set_id(zone, name, type)
                yield ExternalResource(type=RECORD_SET, id=id, region=obj.spec.region or "")

    def _records(self, ctx: Context, obj: DNSRecord) -> Records:
        cloud = self._open(ctx, obj, obj.spec.region or GLOBAL, "route53")
        return Records(cloud, obj.key)

    def _search(self, obj: DNSRecord, records: Records) -> str:
        zone = choose_zone(obj.spec.name, records.zones())
        if zone is None:
            raise ConfigurationError(
                f"DNSRecord {obj.key}: spec.name: no public hosted zone of the account fits "
                f"{obj.spec.name!r}; create one, or set spec.zone"
            )
        return zone


def _zone(obj: DNSRecord) -> str:
    """Return the zone in which the record may exist; "" if its creation was never requested."""
    remembered = read_status(DNSRecordStatus, obj.status)
    return obj.status.zone or (remembered.zone if remembered else "")


@contextmanager
def _patience() -> Iterator[None]:
    """Requeue after a fixed delay, without backoff, if AWS throttles."""
    try:
        yield
    except CloudError as error:
        if error.is_throttled:
            raise RequeueAfter(_WHEN_THROTTLED, cause=error) from error
        raise


def _value_problems(type: str, values: Sequence[str]) -> Iterator[FieldProblem]:
    if type not in list(DNSRecordType):
        detail = f"{type!r} is not supported; choose {', '.join(DNSRecordType)}"
        yield FieldProblem(field="spec.recordType", detail=detail)
    if not values:
        yield FieldProblem(field="spec.values", detail="there is no value; set at least one")
    if type == "CNAME" and len(values) > 1:
        yield FieldProblem(field="spec.values", detail="a CNAME has one value; remove the others")
    if type not in _ADDRESSES:
        return
    for index, value in enumerate(values):
        try:
            _ADDRESSES[type](value)
        except ValueError:
            yield FieldProblem(
                field=f"spec.values[{index}]",
                detail=f"{value!r} is no address for a record of type {type}; correct it",
            )
