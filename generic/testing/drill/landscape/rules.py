"""The judge of a drill in a landscape: the invariants of a force deletion that hold there. Pure."""

from collections.abc import Iterable

from generic.testing.drill.judge import RULES, Finding, Rules, findings_of
from generic.testing.drill.landscape.evidence import LandscapeEvidence


def judge(evidence: LandscapeEvidence) -> list[Finding]:
    """Return all findings."""
    return findings_of(LANDSCAPE_RULES, evidence)


def _shoots_are_gone(evidence: LandscapeEvidence) -> Iterable[str]:
    for shoot in evidence.shoots:
        said = f": {shoot.moments[-1].text}" if shoot.moments else ""
        if shoot.ready is None:
            yield f"{shoot.name} did not become ready{said}"
        elif shoot.gone is None:
            yield f"{shoot.name} still exists{said}"


def _blocked_shows_a_code(evidence: LandscapeEvidence) -> Iterable[str]:
    """Check that it has an error code; without one the drill repairs the outside world."""
    for shoot in evidence.shoots:
        if shoot.deleted is not None and not shoot.codes and not evidence.repairs:
            yield f"{shoot.name} was blocked, and its status had no error code"


def _forced_by_the_user(evidence: LandscapeEvidence) -> Iterable[str]:
    """Check that it was force-deleted; after a repair, a normal deletion may end."""
    for shoot in evidence.shoots:
        needs_none = shoot.gone is not None and evidence.repairs
        if shoot.deleted is not None and shoot.forced is None and not needs_none:
            refusals = [answer.refusal for answer in shoot.answers if answer.refusal]
            why = f": {refusals[-1]}" if refusals else ""
            yield f"{shoot.name} was not force-deleted{why}"


def _no_process_is_left(evidence: LandscapeEvidence) -> Iterable[str]:
    for process in evidence.processes:
        yield f"{process} still runs"


LANDSCAPE_RULES: Rules[LandscapeEvidence] = {
    "shoot": ("Each Shoot was created, and is gone", _shoots_are_gone),
    "code": (
        "Each Shoot that was not repaired shows an error code",
        _blocked_shows_a_code,
    ),
    "force": (
        "gardener-apiserver accepted each needed force deletion",
        _forced_by_the_user,
    ),
    "seed": RULES["seed"],
    "programs": ("No program of a shoot is left", _no_process_is_left),
    "I1": RULES["I1"],
    "I4": RULES["I4"],
}
