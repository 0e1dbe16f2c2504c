"""The reports in a real browser: complete at any width, in light and dark mode, and accessible."""

import attrs
import pytest

from generic.testing.drill.all import Round, RoundResult
from generic.testing.drill.evidence import Origin
from generic.testing.drill.index import Index, page_of
from generic.testing.drill.judge import Finding, judge
from generic.testing.drill.migration.page import page as migration_page
from generic.testing.drill.migration.rules import judge as judge_migration
from generic.testing.drill.page import page
from generic.testing.drill.report import write_text
from generic.testing.drill.trouble import CALM
from generic.tools.record.summary import page as records_page
from tests.support.drills.evidence import evidence, life, migration
from tests.support.objects.records import export, forced, orphan
from tests.support.pages.browser import DESK, PHONE, chromium, faults, view

ONE = [(PHONE, "light")]
LONG = "arn:aws:iam::000000000000:role/" + "x" * 300


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture
def shown(tmp_path):
    """Writes a page."""

    def write(text):
        write_text(tmp_path / "report.html", text)
        return tmp_path / "report.html"

    return write


def force_deletion(**more):
    seen = evidence(**more)
    return page(seen, judge(seen))


def moved(**more):
    seen = migration(**more)
    return migration_page(seen, judge_migration(seen))


FINDINGS = [Finding(rule="I1", title="t", problems=(LONG,))]
ROUNDS = [
    RoundResult(round=Round("rain", CALM), findings=FINDINGS, drill="a1", seconds=3.0),
    RoundResult(round=Round("snow", CALM), findings=[Finding(rule="I1", title="t")], seconds=2.0),
    RoundResult(round=Round("hail", CALM), problem=f"no cluster {LONG}", seconds=1.0),
]
INDEX = Index(
    id="c3",
    title="Mine",
    started="2026-01-01T00:00:00Z",
    origin=Origin(version="1", commit="abc", command=f"actuator drill --all {LONG}"),
    held=ROUNDS,
)
IN_SEEDS = [
    attrs.evolve(item, round=Round(scenario, seed=seed), identity=LONG if item.findings else "")
    for seed in ("eu1", LONG)
    for scenario, item in zip(("rain", "snow", "hail"), ROUNDS, strict=True)
]
ERROR = {"text": LONG, "codes": ["ERR_INFRA_UNAUTHENTICATED"], "count": 3}
RECORDS = [
    forced(errors=[ERROR], outcome="orphaned", orphanCount=2, failedAttempts=3),
    forced(origin={"confirmedBy": LONG, "account": LONG}),
    orphan(id=LONG),
    orphan(status={"state": "Closed", "closedBy": LONG, "note": LONG}),
    {"kind": "Other", "name": LONG},
]
DRILLS = [
    ("2026-01-01T00:00:00Z", "Mine (1)", "embedded", "rain", "nothing more", LONG, "3.0", "none")
]
MANY = [life(kind, shoot=f"shoot--{n}") for n in range(60) for kind in ("A", "B")]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(force_deletion(), id="passed"),
        pytest.param(force_deletion(records=[]), id="failed"),
        pytest.param(force_deletion(lives=MANY), id="many objects"),
        pytest.param(force_deletion(lives=[life(error=LONG, gone=None)]), id="a long error"),
        pytest.param(moved(), id="a migration"),
        pytest.param(moved(kills=[]), id="a failed migration"),
        pytest.param(page_of(INDEX), id="an index"),
        pytest.param(page_of(attrs.evolve(INDEX, held=IN_SEEDS)), id="an index of seeds"),
        pytest.param(records_page(export(), [], "x"), id="no records"),
        pytest.param(records_page(export(*RECORDS), DRILLS, LONG), id="records"),
    ],
)
def test_a_report_is_whole_and_readable_in_each_view(browser, shown, text):
    assert faults(browser, shown(text)) == []


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        pytest.param(f"<pre>{'x' * 999}</pre>", "pixels wide", id="too wide"),
        pytest.param("<p><font color='#999'>pale</font></p>", "color-contrast", id="pale"),
        pytest.param("<img src='https://example.invalid/x.png' alt='x'>", "it loads", id="loads"),
        pytest.param("<script>nothing()</script>", "a script failed", id="a script"),
    ],
)
def test_each_fault_of_a_page_is_noticed(browser, shown, broken, says):
    text = force_deletion().replace("</main>", f"{broken}</main>")
    assert any(says in fault for fault in faults(browser, shown(text), ONE))


def test_collapsed_sections_are_checked_too(browser, shown):
    pale = "<p><font color='#999'>pale</font></p>"
    text = force_deletion().replace("</details>", f"{pale}</details>")
    assert any("color-contrast" in fault for fault in faults(browser, shown(text), ONE))


def bars(tab):
    """The boxes of the bars."""
    drawn = tab.locator("svg[role=img] rect")
    return [drawn.nth(number).bounding_box() for number in range(drawn.count())]


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_the_bars_of_an_object_follow_each_other_and_are_as_long_as_its_times(
    browser, shown, width
):
    lives = [life(created=0.0, ready=1.0, deleted=2.0, stuck=4.0, forced=8.0, gone=16.0)]
    with view(browser, shown(force_deletion(lives=lives)), width, "light") as (tab, _):
        boxes = bars(tab)
    made, well, deleting, stuck, _ = boxes
    assert made["x"] + made["width"] == pytest.approx(well["x"], abs=1)
    assert deleting["width"] == pytest.approx(2 * well["width"], rel=0.05)
    assert stuck["width"] == pytest.approx(4 * well["width"], rel=0.05)
    assert len({box["y"] for box in boxes}) == 1


def test_by_night_the_page_is_dark_and_its_bars_have_other_colours(browser, shown):
    colours = """() => [document.body, ...document.querySelectorAll('svg[role=img] rect')]
        .map(one => getComputedStyle(one)).map(style => style.fill + style.backgroundColor)"""
    path = shown(force_deletion())
    found = []
    for scheme in ("light", "dark"):
        with view(browser, path, DESK, scheme) as (tab, _):
            found.append(tab.evaluate(colours))
    light, dark = found
    assert len(light) > 5
    assert all(item != other for item, other in zip(light, dark, strict=True))
