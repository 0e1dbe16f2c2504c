"""The records of a period as one page for auditors, with drills beside real deletions. Pure.

The page is a report as those of drills are (`generic.testing.drill.html`), and needs `jinja2`. Not
here: the verification of an export (`chain`), and records in a cluster (`gather`).
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import attrs

from actuator.codec import decode_json
from actuator.errors import DecodeError
from actuator.meta import Raw, parse_time
from generic.manager.orphans.ledger import closed_by
from generic.reconciler.orphans import ForceDeletionRecord, Orphan, OrphanedFrom, OrphanState
from generic.reconciler.orphans.forced import ForceDeletionSpec
from generic.testing.drill.html import render
from generic.testing.drill.index import read_index, report_state
from generic.testing.drill.judge import Finding
from generic.tools.record.chain import Export

Row = Sequence[object]
"""The cells of a row."""


@attrs.frozen
class _Deletions:
    forced: list[ForceDeletionRecord]
    orphans: list[Orphan]
    """Open ones first, then the oldest ones."""
    unreadable: list[Row]


def drill_rows(path: Path) -> Iterator[Row]:
    """Yield a row for each round in an index.json. Raises ConfigurationError and OSError."""
    index = read_index(path)
    title = f"{index.title} ({index.origin.extensions or index.origin.version})"
    for entry in index.rounds:
        verdict = "; ".join([entry.verdict, *entry.problems])
        result = (verdict, f"{entry.seconds:.1f}", report_state(path.parent, entry))
        seed = f"{entry.seed} ({entry.identity or 'unknown'})" if entry.seed else "embedded"
        yield entry.started or index.started, title, seed, entry.scenario, entry.injected, *result


def page(export: Export, drills: Sequence[Row], source: str) -> str:
    """Return the whole page; `drills` are `drill_rows`, and `source` names the file or seed."""
    header = export.header
    found = _read(export.records)
    remaining = [orphan for orphan in found.orphans if orphan.is_open]
    problems = [f"{orphan.metadata.name} is open" for orphan in remaining]
    problems += [f"{name} cannot be read" for _, name, _ in found.unreadable]
    return render(
        "records",
        [Finding(rule="", title="", problems=tuple(problems))],
        what="Force deletions",
        outcome=f"{len(remaining)} of {len(found.orphans)} Orphans open",
        period=f"from {header.since} until {header.until or header.exported_at}",
        header=header,
        verdict=_verdict(found, remaining, header.exported_at),
        groups=list(_groups(found)),
        objects=[_object(record) for record in found.forced],
        errors=list(_errors(found.forced)),
        strips=list(_strips(found.forced)),
        remaining=[_orphan(orphan, header.exported_at) for orphan in found.orphans],
        unreadable=found.unreadable,
        drills=drills,
        source=source,
        last_hash=export.last_hash or "none: the records were read from the seed",
    )


def _read(records: Sequence[Raw]) -> _Deletions:
    found = _Deletions([], [], [])
    for record in records:
        kind = str(record.get("kind"))
        metadata = {"name": record.get("name"), "uid": record.get("uid")}
        text = json.dumps({**record, "metadata": metadata}).encode()
        try:
            if kind == Orphan.KIND.name:
                found.orphans.append(decode_json(Orphan, text))
            elif kind == ForceDeletionRecord.KIND.name:
                found.forced.append(decode_json(ForceDeletionRecord, text))
            else:
                raise DecodeError("its kind is unknown")
        except DecodeError as error:
            found.unreadable.append((kind, record.get("name"), str(error)))
    found.forced.sort(key=lambda item: item.spec.finished_at)
    found.orphans.sort(key=lambda item: (not item.is_open, item.spec.recorded_at))
    return found


def _verdict(found: _Deletions, remaining: Sequence[Orphan], now: str) -> str:
    forced = [record.spec for record in found.forced]
    shoots = len({spec.object.namespace for spec in forced})
    left = sum(spec.orphan_count > 0 for spec in forced)
    ages = [days for orphan in remaining if isinstance(days := _days(orphan, now), int)]
    oldest = f", the oldest for {max(ages)} days" if ages else ""
    unread = f" Unreadable records: {len(found.unreadable)}." if found.unreadable else ""
    return (
        f"Force-deleted objects: {len(forced)}, with Orphans: {left}, of shoots: {shoots}. "
        f"Open Orphans: {len(remaining)} of {len(found.orphans)}{oldest}.{unread}"
    )


def _shoot(former: OrphanedFrom) -> str:
    origin = former.origin
    return f"{origin.project}/{origin.shoot}" if origin.shoot else former.namespace


def _origin(former: OrphanedFrom) -> tuple[str, ...]:
    origin = former.origin
    extension = f"{former.type or '-'} ({origin.extension_version or 'unknown'})"
    return extension, origin.project, origin.account, origin.confirmed_by


def _groups(found: _Deletions) -> Iterator[Row]:
    """Yield a row for each extension, project, account and user who confirmed deletions."""
    remaining = Counter(_origin(item.spec.object) for item in found.orphans if item.is_open)
    groups: dict[tuple[str, ...], list[ForceDeletionSpec]] = {key: [] for key in remaining}
    for record in found.forced:
        groups.setdefault(_origin(record.spec.object), []).append(record.spec)
    for key in sorted(groups):
        specs = groups[key]
        left = sum(spec.orphan_count > 0 for spec in specs)
        failed = sum(spec.failed_attempts for spec in specs)
        longest = max((spec.used_seconds for spec in specs), default=0.0)
        yield *key, len(specs), left, remaining[key], failed, round(longest, 1)


def _object(record: ForceDeletionRecord) -> Row:
    spec = record.spec
    former = spec.object
    origin = former.origin
    name = f"{former.kind} {former.namespace}/{former.name}"
    budget = "no budget" if spec.budget_seconds is None else spec.budget_seconds
    used = f"{round(spec.used_seconds, 1)} of {budget}"
    ended = f"{spec.outcome} ({spec.reason})"
    who = (_shoot(former), origin.account, origin.confirmed_by)
    return spec.finished_at, name, *who, ended, used, spec.failed_attempts, spec.orphan_count


def _errors(forced: Sequence[ForceDeletionRecord]) -> Iterator[Row]:
    """Yield a row for each different error: objects, attempts, text, codes."""
    objects: Counter[tuple[str, str]] = Counter()
    attempts: Counter[tuple[str, str]] = Counter()
    for record in forced:
        seen = [((error.text, ", ".join(error.codes)), error.count) for error in record.spec.errors]
        objects.update({key for key, _ in seen})
        for key, count in seen:
            attempts[key] += count
    return ((count, attempts[key], *key) for key, count in objects.most_common())


def _strips(forced: Sequence[ForceDeletionRecord]) -> Iterator[Row]:
    counts = Counter(
        (item.finalizer, item.resource) for record in forced for item in record.spec.stripped
    )
    for key, count in counts.most_common():
        yield *key, count
    total = sum(record.spec.stripped_count for record in forced)
    if more := total - counts.total():
        yield "others, which the records do not name", "", more


def _orphan(orphan: Orphan, now: str) -> Row:
    spec = orphan.spec
    tags = ", ".join(f"{key}={value}" for key, value in spec.tags.items())
    resource = f"{spec.resource_type} {spec.id or tags} {spec.region}"
    where = (resource, _shoot(spec.object), spec.object.origin.account)
    age = _days(orphan, now)
    is_closed = orphan.state is OrphanState.CLOSED
    closed = (closed_by(orphan), orphan.status.note or ("no reason recorded" if is_closed else ""))
    return spec.recorded_at, *where, spec.reason, orphan.state.value, age, *closed


def _days(orphan: Orphan, now: str) -> int | str:
    """Return how many days it was open, until `now` at most; "": a time is no time."""
    status = orphan.status
    ends = {OrphanState.CLOSED: status.closed_at, OrphanState.GONE: status.verified_at}
    with suppress(ValueError):
        until = parse_time(ends.get(orphan.state) or now)
        return max(0, (until - parse_time(orphan.spec.recorded_at)).days)
    return ""
