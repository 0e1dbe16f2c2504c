"""Situations of a whole extension: which alerts page a person, how often, and the numbers.

All rules are loaded, so that two alerts with one cause are noticed. Data for `promtool`. Not here:
when a single rule is right (`situations`).
"""

from collections.abc import Iterator, Mapping
from itertools import combinations

import attrs

from tests.support.rules.extension import (
    EXTENSION,
    LOST,
    Extension,
    Seen,
    deletions,
    open_orphans,
    scraped,
    stripped,
    stuck,
    terminating,
)
from tests.support.rules.series import Series, each, labelled, named, one, together

UNAUTHORIZED = stuck("ERR_INFRA_UNAUTHORIZED")
OUTAGE = stuck("ERR_INFRA_DEPENDENCIES")
DELETED = deletions("deleted")
PAGES = 'count by (alertname) (ALERTS{alertstate="firing", severity!="info"})'
HOUR = "sum by (seed) (seed:actuator_deletions:sum)"


@attrs.frozen(kw_only=True)
class Situation:
    """Scraped series, and the expected pages and numbers in some minutes."""

    text: str
    series: Series
    pages: Mapping[int, Mapping[str, int]]
    """By minute: the alerts that page, with their number."""
    numbers: Mapping[int, Mapping[str, float]] = {}
    """By minute: expressions with one sample, and its value."""
    every: int = 1
    """Minutes between two evaluations."""
    is_expected: bool = False
    """Whether the extension must be scraped (`never_scraped`)."""


def counted(extension: Extension, seen: Seen, minute: int) -> dict[int, dict[str, float]]:
    """Return the numbers that this test counts itself: deletions within an hour, in all seeds."""
    gained = sum(extension.gained(name, minute) for name in extension.counts)
    return {minute: {f"sum({HOUR})": float(gained * max(seen.seeds, 1))}}


BUSY = Extension(
    minutes=300,
    counts={
        DELETED: {10: 3, 100: 4, 185: 2, 190: 5, 203: 4, 230: 1},
        deletions("failed"): {60: 9, 210: 2},
    },
)
REVOKED = attrs.evolve(BUSY, gauges={UNAUTHORIZED: {20: 1}, terminating("failing"): {1: 6}})
"""One tenant's key is revoked: six objects of its shoot fail, and all others are deleted."""
RESTART = 201
GAP = (90, 180)
CIRCUMSTANCES: Mapping[str, dict[str, object]] = {
    "restart": {"restart": RESTART},
    "gap": {"gap": GAP},
    "standby": {"standby": True},
    "federation": {"federated": True},
    "seeds": {"seeds": 5},
}


def pairs() -> Iterator[Situation]:
    """Yield each pair of circumstances: pages and numbers must be those without them."""
    for first, second in combinations(CIRCUMSTANCES, 2):
        seen = Seen(**CIRCUMSTANCES[first], **CIRCUMSTANCES[second])  # type: ignore[arg-type]
        yield Situation(
            text=f"{first} and {second}: one page for one cause in each seed, exact numbers",
            series=scraped(REVOKED, seen),
            every=5,
            pages={at: {"ActuatorDeletionStuck": max(seen.seeds, 1)} for at in (60, 200, 220, 260)},
            numbers=counted(REVOKED, seen, 240),
        )
        yield Situation(
            text=f"{first} and {second}: nothing happens, nobody is paged",
            series=scraped(BUSY, seen),
            every=5,
            pages={at: {} for at in (60, 200, 220, 260)},
        )


def _life(
    text: str, extension: Extension, seen: Seen, pages: dict[int, dict[str, int]], every: int = 1
) -> Situation:
    minute = max(pages)
    return Situation(
        text=text,
        series=scraped(extension, seen),
        pages=pages,
        numbers=counted(extension, seen, minute),
        every=every,
    )


def _numbers() -> Iterator[Situation]:
    quiet: dict[int, dict[str, int]] = {5: {}, 240: {}}
    yield _life(
        "A new pod replaces the manager: nothing is lost", BUSY, Seen(restart=RESTART), quiet
    )
    yield _life("The process starts again: counters are reset", BUSY, Seen(reset=RESTART), quiet)
    yield Situation(
        text="A new resource type: the first increment by 3 is 3",
        series=scraped(Extension(minutes=90, counts={stripped("new.example"): {30: 3}}), Seen()),
        pages={34: {}, 60: {}},
        numbers={
            at: {"sum(seed:actuator_seed_finalizers_stripped:sum)": 3.0} for at in (33, 34, 60, 88)
        },
    )
    batch = attrs.evolve(BUSY, counts={DELETED: {10: 100, 202: 7}})
    yield _life("A batch just after a restart is counted", batch, Seen(restart=RESTART), quiet)
    yield _life(
        "A batch just after a restart at the same address is counted",
        batch,
        Seen(reset=RESTART),
        quiet,
    )
    yield _life("A standby beside the leader adds nothing", BUSY, Seen(standby=True), quiet)
    yield _life("The leader changes: each counts its own part", BUSY, Seen(lead_changes=205), quiet)
    yield _life(
        "One target under two jobs counts once",
        REVOKED,
        Seen(jobs=2),
        {240: {"ActuatorDeletionStuck": 1}},
    )
    yield _life(
        "50 seeds under one job",
        REVOKED,
        Seen(seeds=50),
        {240: {"ActuatorDeletionStuck": 50}},
        every=30,
    )


def _not_recorded() -> Iterator[Situation]:
    """Yield one force deletion without a record, and its page, under each circumstance."""
    once = attrs.evolve(BUSY, counts={LOST: {202: 1}})
    page = {"ActuatorForceDeletionNotRecorded": 1}
    seen = {
        "first increment": Seen(),
        "just after a restart": Seen(restart=RESTART),
        "at the same address": Seen(reset=RESTART),
        "beside a standby": Seen(standby=True),
        "two jobs": Seen(jobs=2),
        "federation": Seen(federated=True),
    }
    for text, circumstances in seen.items():
        yield Situation(
            text=f"A force deletion leaves no record, {text}: one page for an hour",
            series=scraped(once, circumstances),
            pages={200: {}, 206: page, 250: page, 270: {}},
            numbers={220: {"sum(seed:actuator_force_deletions_not_recorded:sum)": 1.0}},
        )
    yield Situation(
        text="A force deletion leaves no record in each of 5 seeds: one page for each",
        series=scraped(once, Seen(seeds=5)),
        every=5,
        pages={200: {}, 220: {"ActuatorForceDeletionNotRecorded": 5}},
    )
    yield Situation(
        text="Records that were missing before a new Prometheus, or a gap, have no page",
        series=scraped(attrs.evolve(BUSY, counts={LOST: {20: 30}}), Seen(gap=GAP)),
        pages={at: {} for at in (181, 185, 200, 260)},
    )


def _without_samples() -> Iterator[Situation]:
    past = Extension(
        minutes=300,
        counts={DELETED: {20: 900}, deletions("orphaned"): {20: 30}},
        gauges={open_orphans("1d"): {20: 30}},
    )
    yield _life(
        "90 minutes without samples: 30 Orphans of before have no page",
        past,
        Seen(gap=(60, 150)),
        {at: {} for at in (50, 151, 156, 165, 200)},
    )
    yield _life(
        "A new Prometheus: earlier events are not new",
        past,
        Seen(first=100),
        {at: {} for at in (101, 110, 160)},
    )
    yield Situation(
        text="An empty cluster: nothing is paged, and no number is missing",
        series=scraped(Extension(minutes=240), Seen()),
        pages={2: {}, 239: {}},
        numbers={239: {f"sum({HOUR})": 0.0, "sum(seed:actuator_stuck_shoots:sum)": 0.0}},
    )


def _presence() -> Iterator[Situation]:
    yield Situation(
        text="An extension was uninstalled: it is no longer a target, which is not an outage",
        series=scraped(Extension(minutes=1800, ends=100), Seen()),
        every=5,
        pages={105: {}, 120: {"ActuatorUninstalled": 1}, 1790: {}},
    )
    yield Situation(
        text="An extension is a target, and does not answer",
        series=scraped(Extension(minutes=1800, down=100), Seen(standby=True)),
        every=5,
        pages={105: {}, 120: {"ActuatorDown": 1}, 1790: {"ActuatorDown": 1}},
    )
    strangers = one("up", "0x60", job="stranger", instance="x")
    yield Situation(
        text="Never scraped: no other alert than the one that knows its name",
        series=strangers,
        pages={10: {}, 30: {"ActuatorNeverScraped": 1}},
        is_expected=True,
    )
    yield Situation(
        text="A target of ours that was never scraped is no outage of others",
        series=strangers,
        pages={30: {}},
    )
    seeds = together(
        scraped(Extension(minutes=200, ends=end), Seen(federated=True))
        if number == 0
        else labelled(scraped(Extension(minutes=200), Seen(federated=True)), seed=f"seed-{number}")
        for number, end in enumerate((100, None))
    )
    yield Situation(
        text="Federation: a seed without any series is reported, once",
        series=seeds,
        pages={99: {}, 120: {"ActuatorSeedUnmonitored": 1}},
    )


def _federation() -> Iterator[Situation]:
    def seed(number: int, deleted: int) -> Series:
        life = Extension(minutes=120, counts={DELETED: {60: deleted}}, gauges={OUTAGE: {10: 1}})
        return labelled(scraped(life, Seen(federated=True)), seed=f"seed-{number}")

    yield Situation(
        text="Federation: 7 in a seed and 5 in another are 12, and each seed has its page",
        series=together([seed(1, 7), seed(2, 5)]),
        pages={100: {"ActuatorDeletionStuck": 2}},
        numbers={100: {f"sum({HOUR})": 12.0}},
    )


def _one_cause() -> Iterator[Situation]:
    page = {"ActuatorDeletionStuck": 1}
    errors = named(
        "actuator_errors_total", controller="infrastructure", operation="delete",
        code="ERR_INFRA_UNAUTHORIZED",
    )  # fmt: skip
    revoked = Extension(
        minutes=1520,
        counts={
            errors: dict.fromkeys(range(1, 1520), 6),
            deletions("failed"): dict.fromkeys(range(1, 1520), 6),
        },
        gauges={UNAUTHORIZED: {60: 1}, terminating("failing"): {1: 6}},
    )
    yield Situation(
        text="One tenant's key is revoked for 25 hours: one page, whatever fails in the shoot",
        series=scraped(revoked, Seen()),
        every=5,
        pages={40: {}} | dict.fromkeys((80, 200, 900, 1500), page),
    )
    ramp = {60 + number: float(number + 1) for number in range(30)}
    slow = each(
        "workqueue_queue_duration_seconds_bucket", "le", {"300.0": "0x300", "+Inf": "0+9x300"},
        name="infrastructure", controller="infrastructure", extension=EXTENSION,
        instance="a", job="job-0",
    )  # fmt: skip
    outage = Extension(minutes=300, gauges={OUTAGE: ramp, terminating("failing"): {1: 60}})
    yield Situation(
        text="The cloud is down for all tenants, and queues are slow: one page",
        series=together([scraped(outage, Seen()), slow]),
        pages=dict.fromkeys((80, 100, 121, 149, 170, 290), page),
    )


def _another_cause() -> Iterator[Situation]:
    page = {"ActuatorDeletionStuck": 1}
    abandoned = Extension(minutes=300, gauges={terminating("skipped"): {1: 6}})
    yield Situation(
        text="Gardener gave up the shoot: no page",
        series=scraped(abandoned, Seen()),
        pages={at: {} for at in (100, 290)},
    )
    second = Extension(minutes=600, gauges={UNAUTHORIZED: {10: 1, 300: 2}})
    yield Situation(
        text="A second shoot behind one that is stuck already has a page of its own",
        series=scraped(second, Seen()),
        every=5,
        pages={295: page, 320: page | {"ActuatorDeletionStuckMore": 1}, 400: page},
    )
    other = Extension(minutes=600, gauges={UNAUTHORIZED: {10: 1}, OUTAGE: {300: 1}})
    yield Situation(
        text="A second cause behind the first has a page of its own",
        series=scraped(other, Seen()),
        every=5,
        pages={295: page, 330: {"ActuatorDeletionStuck": 2}},
    )
    requests = each(
        "rest_client_requests_total", "code", {"500": "0+9x99", "200": "0x99"},
        method="GET", host="seed", extension=EXTENSION, instance="a", job="job-0",
    )  # fmt: skip
    lost = scraped(Extension(minutes=100), Seen())
    frozen = {
        name: "0x99" if name.metric in _OF_A_LEADER else values for name, values in lost.items()
    }
    yield Situation(
        text="The API server is down: lease, heartbeat and watches end, one page",
        series=together([frozen, requests]),
        pages={30: {"ActuatorApiErrorsHigh": 1}},
    )


_OF_A_LEADER = ("leader_election_master_status",)


def _orphans() -> Iterator[Situation]:
    old = Extension(minutes=4800, gauges={open_orphans("older"): {0: 500}})
    yield Situation(
        text="500 Orphans are open for 33 days: one page",
        series=scraped(old, Seen()),
        every=30,
        pages={at: {"ActuatorOrphanAgeBudgetBurn": 1} for at in (60, 4680)},
    )
    many = Extension(minutes=120, gauges={open_orphans("1d"): {10: 101}})
    yield Situation(
        text="Many Orphans are open, none for long: one page",
        series=scraped(many, Seen()),
        pages={20: {}, 30: {"ActuatorOrphansMany": 1}},
    )


_PARTS = (
    _numbers,
    _not_recorded,
    _without_samples,
    _presence,
    _federation,
    _one_cause,
    _another_cause,
    _orphans,
)


def single() -> Iterator[Situation]:
    """Yield all situations but the pairs of circumstances."""
    for part in _PARTS:
        yield from part()


def situations() -> Iterator[Situation]:
    """Yield all situations."""
    yield from single()
    yield from pairs()
