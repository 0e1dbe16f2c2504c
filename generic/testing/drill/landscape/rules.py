"""The evidence of a drill in a landscape, and its rules, some of a force deletion. Pure."""

from collections.abc import Iterable

import attrs

from generic.testing.drill.evidence import Act, Evidence
from generic.testing.drill.judge import RULES, Finding, Rules, findings_of


@attrs.frozen(kw_only=True)
class ForceAnswer:
    """gardener-apiserver's answer to the annotation of force deletion."""

    at: float
    while_: str
    """The last operation of the Shoot at that time, and the codes of its errors."""
    refusal: str = ""
    """Its reason; "": it accepted the annotation."""


@attrs.define(kw_only=True)
class ShootStory:
    """One Shoot. Times are seconds since the drill began; None: did not happen."""

    name: str
    technical_id: str = ""
    moments: list[Act] = attrs.field(factory=list)
    """The changes that its owner saw, and the steps of the drill."""
    answers: list[ForceAnswer] = attrs.field(factory=list)
    """Each answer that differs from the one before."""
    codes: list[str] = attrs.field(factory=list)
    """The error codes that it showed."""
    shows_error: bool = False
    """Whether it showed an error when the drill looked last."""
    created: float = 0.0
    ready: float | None = None
    deleted: float | None = None
    forced: float | None = None
    """When gardener-apiserver accepted the annotation."""
    gone: float | None = None

    @property
    def took(self) -> float | None:
        """The seconds of its force deletion."""
        return None if self.gone is None or self.forced is None else self.gone - self.forced


@attrs.define(kw_only=True)
class LandscapeEvidence(Evidence):
    """All input of the judge."""

    gardener: str
    """The version of Gardener."""
    shoots: list[ShootStory] = attrs.field(factory=list)
    repairs: list[str] = attrs.field(factory=list)
    """Repairs without which gardener-apiserver accepted no force deletion."""
    processes: list[str] = attrs.field(factory=list)
    """Processes of Shoots that are gone."""


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
