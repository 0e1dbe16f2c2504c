"""The judge: one function for each invariant, from Evidence to findings. Pure.

I1 to I6 are the global invariants of the fault catalogue: no finalizer removal before cleanup is
confirmed or recorded; external finalizers unchanged; one outcome for each UID; at most one external
resource for each intent; a blocked object has a reason; one bad object never blocks the others.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import attrs

from actuator.errors import ConfigurationError
from actuator.interface import ExternalResource
from generic.reconciler.orphans import UNKNOWN
from generic.serving.metrics import Outcome
from generic.testing.drill.evidence import Evidence, Life
from generic.testing.garden.order import AFTERWARDS

E = TypeVar("E")
_FINAL = [outcome.value for outcome in Outcome if outcome.final]
_DELETED_AFTERWARDS = frozenset().union(*AFTERWARDS)
_FORCED = frozenset({Outcome.FORCE_DELETED, Outcome.ORPHANED})
_NOT_ON_THIS_PATH = "it does not apply to this path"
_STOPPED = "the drill ended before"
WEBHOOKS_DOWN = "webhooks-down"
REPORT = "report"
FAILURES = {
    "killed": "its server is killed",
    "expired": "its certificate has expired",
    "slow": "it answers too late",
    "denying": "it denies every request",
}
"""How webhooks fail in that scenario: each shoot's in one way."""


@attrs.frozen(kw_only=True)
class Finding:
    """The result of a rule; `problems` is empty if it holds."""

    rule: str
    title: str
    problems: tuple[str, ...] = ()
    untested: tuple[str, ...] = ()
    """The parts that the drill did not exercise, or the reason."""
    exercised: bool = True
    """Whether it exercised any part of the rule."""

    @property
    def holds(self) -> bool:
        """Whether the rule is not violated."""
        return not self.problems

    def why(self, shown: int = 1) -> str:
        """Return at most `shown` problems, and the number of others."""
        more = len(self.problems) - shown
        return "\n".join(self.problems[:shown]) + (f" (and {more} more)" if more > 0 else "")


def unwritten(findings: Iterable[Finding]) -> str:
    """Return why the report was not written, or ""."""
    lost = (finding for finding in findings if finding.rule == REPORT and not finding.exercised)
    return next((item.untested[0] for item in lost), "")


class Untested(str):
    """The reason why the drill did not exercise a rule."""

    __slots__ = ()


class PartUntested(Untested):
    """A part of a rule that the drill did not exercise."""

    __slots__ = ()


Rules = Mapping[str, tuple[str, Callable[[E], Iterable[str]]]]
"""Rules for evidence E, by name: a title, and the function that finds problems and Untested."""


def findings_of(rules: Rules[E], evidence: E) -> list[Finding]:
    """Return all findings, in the order of the rules."""
    return [_finding(rule, title, list(check(evidence))) for rule, (title, check) in rules.items()]


def _finding(rule: str, title: str, found: Sequence[str]) -> Finding:
    untested = [item for item in found if isinstance(item, Untested)]
    problems = [item for item in found if not isinstance(item, Untested)]
    return Finding(
        rule=rule,
        title=title,
        problems=tuple(problems),
        untested=tuple(map(str, untested)),
        exercised=bool(problems) or all(isinstance(item, PartUntested) for item in untested),
    )


def judge(evidence: Evidence) -> list[Finding]:
    """Return all findings about a force deletion or a path of gardenlet."""
    judged = rules_of(evidence.path, evidence.scenario)
    rules = {**(PATH_RULES if evidence.path else RULES), **judged}
    reasons = dict.fromkeys(rules.keys() - judged.keys(), _NOT_ON_THIS_PATH)
    if evidence.stopped:
        reasons |= dict.fromkeys(rules.keys() - {"end", "ready", "path"}, _STOPPED)
    left_out = {rule: (rules[rule][0], _untested(reason)) for rule, reason in reasons.items()}
    return findings_of({**rules, **left_out}, evidence)


def _untested(reason: str) -> Callable[[Evidence], Iterable[str]]:
    return lambda _evidence: [Untested(reason)]


def rules_of(path: str, scenario: str) -> Rules[Evidence]:
    """Return the rules for this path of gardenlet, or for a force deletion if ""."""
    unjudged = UNJUDGED.get(path.partition(":")[0], "")
    rules = PATH_RULES if path else RULES
    if scenario == WEBHOOKS_DOWN:
        rules = {**rules, "webhooks": ("No webhook blocks a force deletion", _none_in_the_way)}
    return {rule: value for rule, value in rules.items() if rule not in unjudged}


def contradictions(evidence: Evidence) -> Iterator[str]:
    """Yield where the evidence log and the manager's own account differ, for the rule `report`."""
    yield from (f"the evidence log has a gap: {gap}" for gap in evidence.gaps)
    if evidence.stripped is not None and evidence.stripped != len(evidence.strips):
        seen = len(evidence.strips)
        yield f"the manager counted {evidence.stripped} removed finalizers, the log has {seen}"
    for life in evidence.rehearsed:
        forced = any(outcome in _FORCED for outcome in life.outcomes)
        if forced and life.forced is None:
            yield f"{life.key} is {life.outcomes[0]}, and the log has no force deletion of it"


def covers(recorded: ExternalResource, real: ExternalResource) -> bool:
    """Return whether a record describes that resource: by id, else by its search tags."""
    if recorded.type != real.type:
        return False
    if recorded.id:
        return recorded.id == real.id
    return bool(recorded.tags) and recorded.tags.items() <= real.tags.items()


def made_twice(outside: Iterable[ExternalResource]) -> Iterator[str]:
    """Yield resources of the same type with the same tags, which are duplicates."""
    made = Counter((resource.type, tuple(sorted(resource.tags.items()))) for resource in outside)
    for (type, tags), count in made.items():
        if count > 1:
            text = ", ".join(f"{key}={value}" for key, value in tags)
            yield f"{count} of {type} with the same tags ({text})"


def check_tags(title: str, outside: Iterable[ExternalResource]) -> None:
    """Raise ConfigurationError if `made_twice` cannot tell resources of several shoots apart."""
    types = Counter(resource.type for resource in outside if not resource.tags)
    for type in (type for type, count in types.items() if count > 1):
        raise ConfigurationError(
            f"{title}: remaining_resources returns {types[type]} of {type} without tags; return "
            "tags that contain the shoot's technical ID, by which invariant I4 finds duplicates"
        )


def _nothing_released_unrecorded(evidence: Evidence) -> Iterable[str]:
    recorded = [record.resource for record in evidence.records]
    if not evidence.resources_after:
        yield Untested("no external resource remained")
    for real in evidence.resources_after:
        if not any(covers(item, real) for item in recorded):
            yield f"{real} still exists, and is not recorded"
    for record in evidence.records:
        exists = any(covers(record.resource, real) for real in evidence.resources_after)
        if record.resource.id and not exists:
            yield f"{record.resource} is recorded for {record.owner}, and does not exist"
        elif evidence.shoots_only and record.resource.type != UNKNOWN.type:
            yield f"{record.resource} is recorded for {record.owner}, and is deleted with its shoot"


def _bystanders_untouched(evidence: Evidence) -> Iterable[str]:
    if not evidence.bystanders:
        yield "no object of another controller was checked"
    for bystander in evidence.bystanders:
        if bystander.problem is not None:
            yield f"{bystander.name}: {bystander.problem}"


def _one_outcome_each(evidence: Evidence) -> Iterable[str]:
    for life in evidence.rehearsed:
        if len(life.outcomes) != 1:
            said = ", ".join(life.outcomes) or "none"
            yield f"{life.key} has {len(life.outcomes)} outcomes ({said})"
        elif life.said != life.outcomes:
            told = ", ".join(life.said) or "nothing"
            yield f"{life.key}: the events report {told}, not {life.outcomes[0]}"
    counted = (
        sum(evidence.counted.get(outcome, 0) for outcome in _FINAL) + evidence.removed_externally
    )
    released = sum(life.released is not None for life in evidence.lives)
    if counted != released:
        yield (
            f"{counted} final outcomes and external removals were counted for {released} released "
            "objects"
        )


def _made_once(evidence: Evidence) -> Iterable[str]:
    if not evidence.resources_before:
        yield "nothing existed outside before the deletion"
    yield from made_twice(evidence.resources_before)
    shoots = {life.shoot for life in evidence.lives}
    for real in evidence.resources_before:
        words = {part for pair in real.tags.items() for text in pair for part in text.split("/")}
        if real.tags and not words & shoots:
            yield f"{real} was created for none of the shoots"


def _blocked_has_reason(evidence: Evidence) -> Iterable[str]:
    if not any(life.stuck is not None for life in evidence.rehearsed):
        yield Untested("no object was blocked")
    for life in evidence.rehearsed:
        if life.deleted is None or life.forced is None or life.deleted == life.forced:
            continue
        went = life.released is not None and life.released <= life.forced
        if life.stuck is None and not went:
            yield f"{life.key} was blocked, and its status had no reason"
        if life.disturbed is not None and life.moved_on is None and not went:
            yield f"{life.key} was blocked, and its status did not change any more"
    for kind in {life.kind for life in evidence.rehearsed if _was_stuck(life)}:
        if not evidence.failed_while_stuck.get(kind):
            yield f"no failed deletion of {kind} was counted while it was stuck"


def _was_stuck(life: Life) -> bool:
    """Return whether it was stuck before the force deletion; later errors belong to that."""
    return life.stuck is not None and (life.forced is None or life.stuck <= life.forced)


def _others_go_on(evidence: Evidence) -> Iterable[str]:
    if {life.kind for life in evidence.lives} <= _DELETED_AFTERWARDS:
        yield Untested("a force deletion ends no object of these kinds")
    elif not any(life.bad for life in evidence.lives):
        yield "no invalid object was created"
    for life in evidence.rehearsed:
        if life.ready is None and life.failed is None:
            yield f"{life.key} did not become ready beside an invalid object"
        elif life.released is None:
            yield f"{life.key} was not released"


def _seed_is_clean(evidence: Evidence) -> Iterable[str]:
    for life in evidence.rehearsed:
        if life.gone is None:
            yield f"{life.key} still exists"
    yield from evidence.remaining_objects


def _none_in_the_way(evidence: Evidence) -> Iterable[str]:
    for failure in FAILURES.values():
        if not any(webhook.failure == failure for webhook in evidence.webhooks):
            yield PartUntested(f"a webhook that fails because {failure}; use more shoots")
    for shoot in dict.fromkeys(life.shoot for life in evidence.rehearsed):
        refused = [webhook for webhook in evidence.webhooks if webhook.shoot == shoot]
        if not refused:
            yield f"{shoot}: no webhook refused a request, so none was rehearsed"
        for element in (item for item in refused if item.seconds is None):
            yield (
                f"{shoot}: webhook {element.webhook} ({element.policy}) "
                "blocked the force deletion: "
                f"it refused {element.request}: {element.error}"
            )


def _ended(evidence: Evidence) -> Iterable[str]:
    if evidence.stopped:
        yield evidence.stopped


def _rehearsed_to_the_end(evidence: Evidence) -> Iterable[str]:
    yield from _ended(evidence)
    forced = [life for life in evidence.rehearsed if life.kind not in _DELETED_AFTERWARDS]
    if forced and not evidence.stopped and not any(map(_was_stuck, forced)):
        yield PartUntested(
            "no object was stuck, so none was forced; see inject_failure of the rehearsal"
        )


def _all_ready(evidence: Evidence) -> Iterable[str]:
    for life in evidence.rehearsed:
        if life.ready is None:
            yield f"{life.key} did not become ready: {life.error or 'it reported no error'}"


def _path_ended(evidence: Evidence) -> Iterable[str]:
    yield from evidence.unfinished
    yield from _ended(evidence)


RULES: Rules[Evidence] = {
    "end": ("The drill reached its end", _rehearsed_to_the_end),
    "ready": ("Each valid object became ready", _all_ready),
    "seed": ("No object of the extension is left in the seed", _seed_is_clean),
    "I1": ("Every remaining external resource is recorded", _nothing_released_unrecorded),
    "I2": ("Objects and finalizers of other controllers are unchanged", _bystanders_untouched),
    "I3": ("Each object has exactly one outcome", _one_outcome_each),
    "I4": ("Each external resource was created once", _made_once),
    "I5": ("Each blocked object reports the reason, and keeps it up to date", _blocked_has_reason),
    "I6": ("An invalid object blocks no other", _others_go_on),
}

PATH_RULES: Rules[Evidence] = {
    "path": ("Each step of gardenlet ended as expected", _path_ended),
    **{rule: RULES[rule] for rule in ("seed", "I1", "I2", "I3", "I4")},
}
"""For `paths`, which have no invalid object and wait for each of gardenlet's steps."""
UNJUDGED = {"migrate": "I3", "delete-migrating": "I1 I3", "delete-restoring": "I1 I3"}
"""Migrated objects have no outcome; their resources remain if they are not restored first."""
