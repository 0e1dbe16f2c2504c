"""The rules of a soak: from observations to findings. Pure."""

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from actuator.interface import ExternalResource
from generic.reconciler.orphans import Orphan, OrphanReason
from generic.serving.metrics import Outcome
from generic.testing.drill.judge import Finding, Rules, covers, findings_of
from tests.soak.figures import Sample, growth
from tests.soak.lives import Ending, Life

FINALIZER_REMOVED_EXTERNALLY = "removed externally"
WARM_UP = 180.0
"""Seconds at the beginning whose memory is ignored."""
_LONG_ENOUGH = 300.0
"""Seconds of samples that a trend of memory needs at least."""
_MAX_GROWTH = 1.0
_WINDOW = 20
_FINAL = {outcome.value for outcome in Outcome if outcome.final}


@attrs.frozen(kw_only=True)
class Seen:
    """The observations. `made`: how many external resources were created for each uid."""

    lives: Sequence[Life]
    outcomes: Mapping[str, Sequence[str]]
    """By uid, in the order in which the manager reported them."""
    outside: Sequence[ExternalResource]
    orphans: Sequence[ExternalResource]
    made: Mapping[str, int]
    samples: Sequence[Sample]
    """Measured during the faults."""
    settled: Sequence[Sample]
    """Measured after the faults."""
    crashes: Sequence[str]

    @property
    def warm(self) -> list[Sample]:
        """The samples after the warm-up; those of the second half of a short soak."""
        end = self.samples[-1].at if self.samples else 0.0
        return [sample for sample in self.samples if sample.at >= min(WARM_UP, end / 2)]


def judge(seen: Seen) -> list[Finding]:
    """Return one finding for each rule."""
    return findings_of(RULES, seen)


def outcomes_by_uid(
    noted: Iterable[tuple[str, str]], orphans: Iterable[Orphan]
) -> dict[str, list[str]]:
    """Return the outcomes that a listener noted, and recorded finalizer removals, by uid.

    A finalizer that is removed externally is no outcome of the manager: the Orphans record it.
    """
    found: dict[str, list[str]] = {}
    removed = {
        orphan.spec.object.uid
        for orphan in orphans
        if orphan.spec.reason == OrphanReason.FINALIZER_REMOVED_EXTERNALLY
    }
    for uid, outcome in (*noted, *((uid, FINALIZER_REMOVED_EXTERNALLY) for uid in sorted(removed))):
        found.setdefault(uid, []).append(outcome)
    return found


def unexplained(life: Life, outcomes: Sequence[str]) -> str | None:
    """Return the problem with the outcomes of one deleted object; None: no problem."""
    said = ", ".join(outcomes) or "none"
    if len(outcomes) != 1:
        return f"has {len(outcomes)} outcomes ({said})"
    allowed = {
        Ending.DELETED: {Outcome.DELETED.value},
        Ending.FORCED: _FINAL,
        Ending.STRIPPED: {Outcome.DELETED.value, FINALIZER_REMOVED_EXTERNALLY},
    }[life.ending]
    return None if outcomes[0] in allowed else f"ended as {said}"


def _lost(seen: Seen) -> Iterator[str]:
    for life in seen.lives:
        if not life.over:
            yield f"{life.shoot} ({life.ending}): {life.problem or 'did not end'}"


def _unexplained(seen: Seen) -> Iterator[str]:
    for life in seen.lives:
        outcomes = seen.outcomes.get(life.uid, ())
        if life.ending is Ending.STAYS:
            if outcomes:
                yield f"{life.shoot} stays, and is said to be {', '.join(outcomes)}"
        elif life.over and (problem := unexplained(life, outcomes)):
            yield f"{life.shoot} ({life.ending}), uid {life.uid}, {problem}"
    for uid in seen.outcomes.keys() - {life.uid for life in seen.lives}:
        yield f"uid {uid} has an outcome, and nobody knows it"


def _leaks(seen: Seen) -> Iterator[str]:
    there = {life.uid for life in seen.lives if life.ending is Ending.STAYS or not life.over}
    left = {thing.tags["uid"] for thing in seen.outside}
    for life in seen.lives:
        if life.ending is Ending.STAYS and life.over and life.uid not in left:
            yield f"{life.shoot} is ready, and has nothing outside"
        if life.ending is Ending.DELETED and life.over and life.uid in left:
            yield f"{life.shoot} was deleted, and what it had outside was not"
    for thing in seen.outside:
        owner = thing.tags["uid"]
        if owner not in there and not any(covers(orphan, thing) for orphan in seen.orphans):
            yield f"{thing} is left, and nothing says so"


def _twice(seen: Seen) -> Iterator[str]:
    for uid, count in seen.made.items():
        if count > 1:
            yield f"{count} things were made for uid {uid}"


def _memory(seen: Seen) -> Iterator[str]:
    warm = seen.warm
    if not warm or warm[-1].at - warm[0].at < _LONG_ENOUGH:
        return
    if (rate := growth(warm)) >= _MAX_GROWTH:
        yield f"it grows by {rate:.2f} MiB a minute"


def _threads(seen: Seen) -> Iterator[str]:
    """Compare start and end: each abandoned call has a thread until it returns."""
    if not seen.warm or not seen.settled:
        yield "nothing was measured"
        return
    before = statistics.mode(sample.threads for sample in seen.warm[:_WINDOW])
    after = statistics.mode(sample.threads for sample in seen.settled[-_WINDOW:])
    if after != before:
        yield f"{before} after the warm-up, {after} at the end"


RULES: Rules[Seen] = {
    "lost": ("Every object ended as it should", _lost),
    "outcome": ("Every object that went has one explained outcome", _unexplained),
    "outside": ("What is left outside belongs to an object, or is on record", _leaks),
    "once": ("Nothing outside was made twice", _twice),
    "memory": (f"Memory grows by less than {_MAX_GROWTH:g} MiB a minute", _memory),
    "threads": ("The number of threads is constant", _threads),
    "alive": ("The manager never died, and no thread of it", lambda seen: seen.crashes),
}
