"""DNS records in Route 53: select a zone; create, change and delete a record.

A record has no tags, so each has a second record of type TXT, named `comment-…`, that names its
owner. One change, which Route 53 applies completely or not at all, writes both: a record without
such a comment is not the extension's. A DNS name has one owner, for all types of records.

Kubernetes does not belong here.
"""

from collections.abc import Iterable, Sequence

import attrs

from actuator import ConfigurationError, Raw
from extensions.aws.cloud import Cloud
from extensions.aws.errors import CloudError

RECORD_SET = "AWS::Route53::RecordSet"
"""Resource type as AWS CloudFormation names it."""

_REFUSED = "InvalidChangeBatch"
_COMMENT = "comment-"
_COMMENT_TTL = 600
_MAX_LENGTH = 255
"""Maximum characters of one string in a TXT record (RFC 1035)."""


def canonical(name: str) -> str:
    """Return the name in lower case, without final dot; Route 53 encodes an asterisk."""
    return name.lower().removesuffix(".").replace("\\052", "*")


def record_set(name: str, type: str, ttl: int, values: Sequence[str]) -> Raw:
    """Return a record set in the format of Route 53; `ttl` is in seconds."""
    quoted = [_quoted(value) if type == "TXT" else value for value in values]
    return {
        "Name": canonical(name),
        "Type": type,
        "TTL": ttl,
        "ResourceRecords": [{"Value": value} for value in quoted],
    }


def comment_name(name: str) -> str:
    """Return the name of the comment record of `name`: "*.comment-a.b" for "*.a.b"."""
    name = canonical(name)
    if name.startswith("*."):
        return f"*.{_COMMENT}{name.removeprefix('*.')}"
    return f"{_COMMENT}{name}"


def record_set_id(zone: str, name: str, type: str) -> str:
    """Return the extension's id of a record set; Route 53 has none."""
    return f"{zone}/{name}/{type}"


def exists(cloud: Cloud, id: str) -> bool:
    """Whether a record set with that id exists, of any owner.

    Raises CloudError, also if its zone does not exist.
    """
    zone, _, rest = id.partition("/")
    name, _, type = rest.rpartition("/")
    return _find(cloud, zone, canonical(name), type) is not None


def choose_zone(name: str, zones: Iterable[tuple[str, str]]) -> str | None:
    """Return the id of the longest zone (id, name) that contains `name`, by whole labels."""
    wanted = f".{canonical(name)}"
    fitting = [
        (len(canonical(zone)), id) for id, zone in zones if wanted.endswith(f".{canonical(zone)}")
    ]
    return max(fitting)[1] if fitting else None


@attrs.frozen
class Records:
    """Route 53 for the records of one owner; their comments contain `owner`, a DNSRecord."""

    cloud: Cloud
    owner: str

    def zones(self) -> list[tuple[str, str]]:
        """Return id and name of each public hosted zone."""
        zones = self.cloud.items("list_hosted_zones", "HostedZones")
        public = [zone for zone in zones if not zone["Config"]["PrivateZone"]]
        return [(zone["Id"].rpartition("/")[2], zone["Name"]) for zone in public]

    def ensure(self, zone: str, wanted: Raw, *, retried: bool = False) -> None:
        """Create or update the owner's record set.

        Records that changed since they were read, so that Route 53 refuses the change, are read
        again. Raises ConfigurationError if a record of another owner exists; CloudError.
        """
        name = wanted["Name"]
        action = "UPSERT"
        mark = _find(self.cloud, zone, comment_name(name), "TXT")
        there = _find(self.cloud, zone, name, wanted["Type"])
        comment = record_set(comment_name(name), "TXT", _COMMENT_TTL, [self._mark])
        if mark is None and there is None:
            action = "CREATE"
        elif mark is None or not self._is_ours(mark):
            raise ConfigurationError(
                f"DNSRecord {self.owner}: spec.name: record {name} exists and "
                f"has another owner ({_say_whose(mark)}); remove it, or choose another name"
            )
        elif there is not None and content(there) == content(wanted):
            return
        try:
            self._change(zone, action, wanted, comment)
        except CloudError as error:
            if retried or error.code != _REFUSED:
                raise
            self.ensure(zone, wanted, retried=True)

    def delete(self, zone: str, name: str, type: str, *, retried: bool = False) -> None:
        """Delete the owner's record and its comment; never touch a record of others."""
        try:
            mark = _find(self.cloud, zone, comment_name(name), "TXT")
            if mark is not None and self._is_ours(mark):
                there = _find(self.cloud, zone, canonical(name), type)
                self._change(zone, "DELETE", *([there] if there else []), mark)
        except CloudError as error:
            if error.code == _REFUSED and not retried:
                self.delete(zone, name, type, retried=True)
            elif not error.is_not_found:  # without its zone, there is no record
                raise

    @property
    def _mark(self) -> str:
        return f"owner={self.owner}"

    def _is_ours(self, mark: Raw) -> bool:
        return _values(mark) == [_quoted(self._mark)]

    def _change(self, zone: str, action: str, *record_sets: Raw) -> None:
        changes = [{"Action": action, "ResourceRecordSet": item} for item in record_sets]
        self.cloud.request(
            "change_resource_record_sets", HostedZoneId=zone, ChangeBatch={"Changes": changes}
        )


def _find(cloud: Cloud, zone: str, name: str, type: str) -> Raw | None:
    start = {"StartRecordName": name, "StartRecordType": type, "MaxItems": "1"}
    answer = cloud.request("list_resource_record_sets", HostedZoneId=zone, **start)
    for found in answer["ResourceRecordSets"]:
        if (canonical(found["Name"]), found["Type"]) == (name, type):
            return dict(found)
    return None


def _quoted(value: str) -> str:
    """Return text in the format of a TXT record: quoted strings of limited length."""
    parts = [value[at : at + _MAX_LENGTH] for at in range(0, len(value), _MAX_LENGTH)] or [""]
    escaped = [part.replace("\\", "\\\\").replace('"', '\\"') for part in parts]
    return " ".join(f'"{part}"' for part in escaped)


def content(described: Raw) -> tuple[int | None, list[str]]:
    """Return TTL and sorted values of a record set."""
    return described.get("TTL"), _values(described)


def _values(described: Raw) -> list[str]:
    """Return the sorted values; an alias has none."""
    return sorted(record["Value"] for record in described.get("ResourceRecords") or ())


def _say_whose(mark: Raw | None) -> str:
    if mark is None:
        return f"it has no record {_COMMENT}… beside it"
    return f"{canonical(mark['Name'])} says {', '.join(_values(mark))}"
