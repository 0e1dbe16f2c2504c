"""The report of a drill in a landscape as one page: that of a force deletion, and the Shoots."""

from collections.abc import Iterator, Sequence

from generic.testing.drill.judge import Finding
from generic.testing.drill.landscape.rules import LandscapeEvidence, ShootStory
from generic.testing.drill.page import page as force_deletion_page
from generic.testing.drill.page import seconds


def page(evidence: LandscapeEvidence, findings: Sequence[Finding]) -> str:
    """Return the whole page."""
    return force_deletion_page(
        evidence,
        findings,
        "landscape",
        verdict=verdict(evidence),
        shoots=[*map(_times, evidence.shoots)],
        answers=[*_answers(evidence.shoots)],
        moments_of=[(story.name, [*_moments(story)]) for story in evidence.shoots],
    )


def verdict(evidence: LandscapeEvidence) -> str:
    """Return the result in a few sentences."""
    forced = [shoot for shoot in evidence.shoots if shoot.forced is not None]
    took = [item.took for item in forced if item.took is not None]
    codes = ", ".join(dict.fromkeys(code for item in forced for code in item.codes)) or "none"
    asked = f"{len(forced)} of {len(evidence.shoots)} Shoots (codes: {codes})"
    parts = [f"gardener-apiserver accepted the force deletion of {asked}."]
    if took:
        ended = f"Gardener {evidence.gardener} then ended {len(took)} of them"
        parts.append(f"{ended} in at most {max(took):.0f} s.")
    parts += [f"{repair}." for repair in evidence.repairs]
    remaining = len(evidence.resources_after)
    recorded = len(evidence.records)
    parts.append(f"{remaining} external resources remain; {recorded} records were written.")
    return " ".join(parts)


def _times(story: ShootStory) -> Sequence[str]:
    moments = (story.created, story.ready, story.deleted, story.forced, story.gone)
    return story.name, *map(seconds, moments), ", ".join(story.codes) or "-"


def _answers(stories: Sequence[ShootStory]) -> Iterator[Sequence[str]]:
    for story in stories:
        for item in story.answers:
            answer = f"refused: {item.refusal}" if item.refusal else "accepted"
            yield story.name, seconds(item.at), item.while_, answer


def _moments(story: ShootStory) -> Iterator[Sequence[str]]:
    for moment in story.moments:
        yield seconds(moment.at), moment.text
