"""The rules that the explorer checks after a kill and at the end, and their results. Pure.

Two moments of each kill are checked: right after it, and after another process has finished.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import attrs

from actuator.interface import ExternalResource
from actuator.meta import Raw
from generic.reconciler.operation import Operation
from generic.testing.drill.bystanders import WITNESS
from generic.testing.drill.judge import covers, made_twice
from generic.testing.drill.kills.calls import Point
from generic.testing.garden import error_of, not_migrated_because, not_ready_because

_STAYS = frozenset({Operation.MIGRATE, Operation.RESTORE})
"""Operations that neither create nor delete external resources."""


@attrs.define(kw_only=True)
class Case:
    """One tested operation; `before` existed for the shoot when the operation was requested.

    Of these, `others` belong to other objects of the shoot. `makes` is the number of resources
    of each type that an undisturbed reconciliation creates.
    """

    operation: Operation
    finalizer: str
    others: Sequence[ExternalResource] = ()
    before: Sequence[ExternalResource] = ()
    makes: Counter[str] = attrs.field(factory=Counter)


@attrs.frozen(kw_only=True)
class Sight:
    """The state at one moment as an administrator sees it: objects and external resources."""

    objects: Sequence[Raw]
    outside: Sequence[ExternalResource]
    records: Sequence[ExternalResource] = ()
    """The remaining external resources that were recorded as Orphans."""
    reported: Sequence[ExternalResource] | None = None
    """The result of `external_resources`; None for a kind that may report more than exists."""


@attrs.frozen(kw_only=True)
class ExplorerFailure:
    """The violated rules after a kill; an empty `at` means without any kill."""

    at: str
    problems: Sequence[str]


@attrs.frozen(kw_only=True)
class Tally:
    """One operation of one actuator: its crash points, and how many kills it survived.

    `kind` is the actuator's kind, with the suffix of its extension type. `missed` counts kills
    whose point was not reached: the number of time-dependent calls differs from run to run.
    """

    kind: str
    operation: Operation
    points: Sequence[Point] = ()
    tried: int = 0
    missed: int = 0
    failures: Sequence[ExplorerFailure] = ()

    def __str__(self) -> str:
        return f"{self.kind} {self.operation.value}"

    @property
    def survived(self) -> int:
        """The number of kills after which every rule held."""
        return self.tried - sum(bool(failure.at) for failure in self.failures)

    @property
    def holds(self) -> bool:
        """Whether there was at least one kill, and all were survived."""
        return self.tried > 0 and not self.failures


def unfinished_because(operation: Operation, finalizer: str, obj: Raw) -> str | None:
    """Return why the operation is not finished for the object; None when it is."""
    status = obj.get("status") or {}
    error = (error_of(obj) or {}).get("description") or "no error is reported"
    if operation.guards:
        last = (status.get("lastOperation") or {}).get("type")
        if operation is Operation.RESTORE and last not in (None, "Restore"):
            return f"last operation is {last}: {error}"
        return not_ready_because(obj)
    if finalizer in _finalizers(obj):
        return f"our finalizer is still on it: {error}"
    migrating = not_migrated_because(obj) if operation is Operation.MIGRATE else None
    return migrating and f"{migrating}: {error}"


def judge_death(case: Case, seen: Sight) -> Iterator[str]:
    """Yield the rules that are violated right after the kill."""
    yield from _witness_stays(seen)
    yield from _others_stay(case, seen)
    yield from _reported(case, seen, in_flight=1)
    guarded = [obj for obj in seen.objects if case.finalizer in _finalizers(obj)]
    all_guarded = len(guarded) == len(seen.objects)
    if case.operation.guards and not all_guarded:
        for new in without(seen.outside, case.before):
            yield f"{new} was created before our finalizer was on the object"
    if case.operation is Operation.DELETE and not (seen.objects and all_guarded):
        for left in without(seen.outside, case.others):
            if not any(_is_of(left, obj) for obj in guarded):
                yield f"our finalizer is removed, but {left} still exists"
    if case.operation in _STAYS:
        yield from _untouched(case, seen)


def judge_end(case: Case, seen: Sight) -> Iterator[str]:
    """Yield the rules that are violated after another process has finished."""
    yield from _witness_stays(seen)
    yield from _others_stay(case, seen)
    yield from _reported(case, seen, in_flight=0)
    yield from made_twice(seen.outside)
    match case.operation:
        case Operation.RECONCILE:
            made = Counter(item.type for item in without(seen.outside, case.others))
            yield from (f"{n} of {type} too many" for type, n in (made - case.makes).items())
            yield from (f"{n} of {type} missing" for type, n in (case.makes - made).items())
        case Operation.DELETE:
            for left in without(seen.outside, case.others):
                yield f"{left} is left outside"
        case Operation.FORCE_DELETE:
            for left in without(seen.outside, case.others):
                if not any(covers(record, left) for record in seen.records):
                    yield f"{left} remains outside, and is not recorded"
        case _:
            yield from _untouched(case, seen)


def _witness_stays(seen: Sight) -> Iterator[str]:
    if not seen.objects:
        yield "the object is deleted, although it had a finalizer of another controller"
    for obj in seen.objects:
        if WITNESS not in _finalizers(obj):
            yield f"the finalizer of another controller was removed from {obj['metadata']['name']}"


def _others_stay(case: Case, seen: Sight) -> Iterator[str]:
    for lost in without(case.others, seen.outside):
        yield f"{lost} of another object was deleted"


def _reported(case: Case, seen: Sight, in_flight: int) -> Iterator[str]:
    """Compare the reported resources with the existing ones; `in_flight` may not exist."""
    if seen.reported is None:
        return
    own = without(seen.outside, case.others)
    for real in own:
        if not any(covers(report, real) for report in seen.reported):
            yield f"{real} exists, and external_resources does not report it"
    absent = [item for item in seen.reported if not any(covers(item, real) for real in own)]
    if len(absent) > in_flight:
        yield f"external_resources reports {', '.join(map(str, absent))}, but that does not exist"


def _untouched(case: Case, seen: Sight) -> Iterator[str]:
    yield from (f"{lost} was deleted" for lost in without(case.before, seen.outside))
    yield from (f"{new} was created" for new in without(seen.outside, case.before))


def without(
    things: Iterable[ExternalResource], other: Iterable[ExternalResource]
) -> list[ExternalResource]:
    """Return the resources that are not among the others, compared by type and id."""
    known = {(item.type, item.id) for item in other}
    return [thing for thing in things if (thing.type, thing.id) not in known]


def _is_of(thing: ExternalResource, obj: Raw) -> bool:
    """Return whether the resource's tags name this object: a shoot may have several of a kind."""
    texts = (text for pair in thing.tags.items() for text in pair)
    return any(obj["metadata"]["name"] in text.split("/") for text in texts)


def _finalizers(obj: Raw) -> Sequence[str]:
    return obj["metadata"].get("finalizers") or []
