"""The judge of a drill in a landscape: the invariants of a force deletion that hold there. Pure."""

from collections.abc import Iterable

from generic.testing.drill.judge import RULES, Finding, Rules, findings_of
from generic.testing.drill.landscape.evidence import LandscapeEvidence


def judge(evidence: LandscapeEvidence) -> list[Finding]:
    """Return all findings."""
    return findings_of(LANDSCAPE_RULES, evidence)


def _shoots_are_gone(evidence: LandscapeEvidence) -> Iterable[str]:
    """Check the rule `shoot`."""
    for shoot in evidence.shoots:
        if shoot.ready is None:
            yield f"{shoot.name} did not become ready{_last(shoot.moments)}"
        elif shoot.gone is None:
            yield f"{shoot.name} still exists{_last(shoot.moments)}"


def _last(moments: Iterable[object]) -> str:
    said = [str(getattr(one, "text", "")) for one in moments]
    return f": {said[-1]}" if said else ""


def _forced_by_the_user(evidence: LandscapeEvidence) -> Iterable[str]:
    """Check the rule `force`."""
    for shoot in evidence.shoots:
        if shoot.deleted is not None and shoot.forced is None:
            asked = [one.refusal for one in shoot.answers if one.refusal]
            why = f": {asked[-1]}" if asked else ""
            yield f"{shoot.name} was not force-deleted{why}"


def _blocked_shows_a_code(evidence: LandscapeEvidence) -> Iterable[str]:
    """Check the rule `code`."""
    for shoot in evidence.shoots:
        if shoot.forced is not None and not shoot.codes:
            yield f"{shoot.name} was blocked, and its status had no error code"


def _no_process_is_left(evidence: LandscapeEvidence) -> Iterable[str]:
    """Check the rule `programs`."""
    for process in evidence.processes:
        yield f"{process} still runs"


LANDSCAPE_RULES: Rules[LandscapeEvidence] = {
    "shoot": ("Each Shoot was created, and is gone", _shoots_are_gone),
    "code": ("Each blocked Shoot shows its user an error code", _blocked_shows_a_code),
    "force": ("gardener-apiserver accepted each force deletion", _forced_by_the_user),
    "seed": RULES["seed"],
    "programs": ("No program of a shoot is left", _no_process_is_left),
    "I1": RULES["I1"],
    "I4": RULES["I4"],
}
