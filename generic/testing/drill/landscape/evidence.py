"""The observations of a drill in a landscape: those of a force deletion, and the Shoots'."""

import attrs

from generic.testing.drill.evidence import Act, Evidence


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
