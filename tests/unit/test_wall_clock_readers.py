"""Each place that reads a wall clock is listed with the effect of a wrong clock there.

A new reader fails here until its decision is made. A decision that cannot be undone reads
`trusted_now`, or `eventual_now` if it must not wait endlessly; a reader of `now` is listed as
harmless, with the reason.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("actuator", "generic", "extensions")

TRUSTED = "trusted_now"
EVENTUAL = "eventual_now"
CLOCK = "now|utcnow|today|time|time_ns|localtime|gmtime|ctime|asctime|clock_gettime"
"""Attributes by which a wall clock is read."""
HARMLESS_OF_TIME = frozenset({"monotonic", "perf_counter", "sleep"})

SHOWN = "shown only: written to a status, event, Lease, record or metric; no code of ours decides"
CORRECTED = "corrected later: an error or a wait that is decided anew at each attempt"
CHOSEN = "part of what is created: a wrong one is replaced once the clock is right"
NO_CLOCK = "not a wall clock: a text, or seconds since a start"
THE_CLOCK = "the clock itself"
TESTING = "simulated or embedded parts of drills and tests"
FINAL = "final: waits for a steady minute"
AT_LAST = "final: waits for a steady minute, at most an hour"

TABLE: dict[str, dict[str, tuple[int, str]]] = {
    "extensions/aws/cloud.py": {
        # A new token of a role, for one call; AWS refuses one that has expired.
        "_RoleClient.__call__": (1, CORRECTED),
    },
    "extensions/azurecontrolplane/actuator.py": {
        # An address that is not released stays in Azure.
        "AzureControlPlane._wait_for_addresses/eventual_now": (1, AT_LAST),
    },
    "extensions/helmreleaseproxy/helmreleaseproxy.py": {"_say": (1, SHOWN)},
    "extensions/helmreleaseproxy/releases.py": {
        # Two helm processes at once break the release.
        "HelmRelease._wait_for_the_other/eventual_now": (1, AT_LAST),
    },
    "generic/serving/metrics/registry.py": {"Metrics.heartbeat": (1, SHOWN)},
    "generic/serving/metrics/terminating.py": {"TerminatingObjects.families": (1, SHOWN)},
    # Credentials are renewed early, or once the API server refuses them.
    "generic/kube/access.py": {"_is_expired": (1, CORRECTED)},
    "generic/kube/clock.py": {
        "SystemClock.now": (1, THE_CLOCK),
        "SystemClock.monotonic": (1, THE_CLOCK),
        "WatchedClock.__init__": (2, THE_CLOCK),
        "WatchedClock.trusted_now": (1, THE_CLOCK),
        "WatchedClock.eventual_now": (2, THE_CLOCK),
        "trusted_now": (2, THE_CLOCK),
        "eventual_now": (2, THE_CLOCK),
    },
    "generic/kube/events.py": {
        "EventRecorder._count_up": (1, SHOWN),
        "EventRecorder._event": (1, SHOWN),
    },
    "generic/library/healthchecks/reconciler.py": {
        # A progress that takes too long by a wrong clock is unhealthy until the checks succeed.
        "HealthReconciler._run": (1, CORRECTED),
        "HealthReconciler._patch": (1, SHOWN),
    },
    "generic/library/managedresources/deletion.py": {
        # After 2 minutes, the text of an error in place of that of a wait.
        "_failures": (1, CORRECTED),
        "_refuse_stuck": (1, CORRECTED),
    },
    "generic/library/secrets/manager.py": {
        "SecretsManager._rotated": (1, CHOSEN),
        "SecretsManager._rotated/trusted_now": (1, FINAL),
        "SecretsManager._usable/eventual_now": (1, AT_LAST),
        # Which former one is trusted first; `_rotated` drops none by it.
        "SecretsManager._is_accepted": (1, CORRECTED),
        "SecretsManager._certificate": (1, CHOSEN),
        "SecretsManager._new_name": (1, CHOSEN),
        "SecretsManager._create": (1, CHOSEN),
    },
    "generic/library/seedobjects.py": {
        # After the patience, an error in place of a wait.
        "check_deleted": (1, CORRECTED),
    },
    "generic/library/worker/actuator.py": {"GenericWorker._roll_out": (1, SHOWN)},
    "generic/library/worker/availability.py": {
        # Pods that are deleted at each attempt never process anything.
        "_is_old/trusted_now": (1, FINAL),
    },
    "generic/library/worker/removal.py": {
        # After 5 or 10 minutes, an error in place of a wait.
        "_seconds_since": (1, CORRECTED),
    },
    "generic/library/workload_identity.py": {
        # An expired token is an error that is retried.
        "read_workload_identity": (1, CORRECTED),
    },
    "generic/manager/heartbeat.py": {"Heartbeat._lease": (1, SHOWN)},
    "generic/manager/leaderelection.py": {
        # Candidates measure on their monotonic clocks since when a record is unchanged.
        "LeaderElector._record": (1, SHOWN),
        "LeaderElector._give_back": (1, SHOWN),
    },
    # It decides nothing: every process takes samples.
    "generic/manager/running.py": {"Running._sweep/trusted_now": (1, FINAL)},
    "generic/manager/webhooks.py": {
        # Readiness while the served certificate has expired.
        "WebhookService.problem": (1, CORRECTED),
        "WebhookService._pass": (1, CHOSEN),
        "WebhookService._pass/eventual_now": (1, AT_LAST),
    },
    "generic/reconciler/attempt.py": {
        # gardenlet compares it with its own request, and waits for a later status.
        "Attempt._show.build": (1, SHOWN),
    },
    "generic/reconciler/behaviours/creation.py": {"_say": (1, SHOWN)},
    "generic/reconciler/deletion/evidence.py": {"leave_record": (1, SHOWN)},
    "generic/reconciler/deletion/force_deletion.py": {"ForceDeletion._record": (1, SHOWN)},
    "generic/reconciler/deletion/late_cleanup.py": {
        "LateCleanup._record": (1, SHOWN),
        # The retention of the Orphan counts from it.
        "LateCleanup._finish": (1, SHOWN),
    },
    "generic/reconciler/deletion/watchdog.py": {
        # The last known Secret of a deletion may be the only one.
        "DeletionWatchdog.tick/trusted_now": (1, FINAL),
        # A deletion that was given up in the future is retried.
        "DeletionWatchdog.tick": (1, CORRECTED),
    },
    "generic/reconciler/invoker.py": {
        # An expired token is not used; the next attempt decides anew.
        "ActuatorCall.secret": (1, CORRECTED),
        # An expired token is worth nothing to a reader.
        "Invoker._hidden": (1, SHOWN),
    },
    "generic/manager/orphans/keeper.py": {
        "Keeper._is_over/trusted_now": (1, FINAL),
        "Keeper.collect": (1, SHOWN),
    },
    "generic/reconciler/orphans/probe.py": {"OrphanProbe._ask": (1, SHOWN)},
    "generic/manager/orphans/verification.py": {
        # The retention of the Orphan counts from it.
        "_recorded": (1, SHOWN),
    },
    "generic/reconciler/reconciler.py": {
        "Reconciler._release": (1, SHOWN),
        "Reconciler._fail/trusted_now": (1, FINAL),
        # When a deletion was given up: `DeletionWatchdog.tick` retries it.
        "Reconciler._fail": (1, CORRECTED),
        "Reconciler._count_lost_releases": (1, SHOWN),
    },
    "generic/reconciler/status.py": {"_last_operation": (2, NO_CLOCK), "_ready": (1, NO_CLOCK)},
    "generic/testing/drill/log.py": {"DrillLog.take": (1, NO_CLOCK)},
    "generic/testing/drill/observe.py": {"Observer.__init__": (2, NO_CLOCK)},
    "generic/testing/drill/paths.py": {"PathRun.play": (1, NO_CLOCK)},
    "generic/testing/drill/run.py": {
        # Seconds since the drill began.
        "DrillRun.act": (1, NO_CLOCK),
        "DrillRun.check_readiness": (1, NO_CLOCK),
    },
    "generic/testing/drill/landscape/run.py": {
        # Seconds since the drill began.
        "LandscapeRun._create": (1, NO_CLOCK),
        "LandscapeRun._get_stuck": (1, NO_CLOCK),
        "LandscapeRun._ask": (1, NO_CLOCK),
        "LandscapeRun._see": (1, NO_CLOCK),
        "LandscapeRun._note": (1, NO_CLOCK),
        "LandscapeRun._act": (1, NO_CLOCK),
    },
    "generic/testing/drill/settings.py": {"DrillSettings.facts": (1, SHOWN)},
    "generic/testing/drill/webhooksdown.py": {
        "WebhooksDown._fail": (1, TESTING),
        "WebhooksDown._ask": (1, NO_CLOCK),
    },
    "generic/testing/envtest/certificates.py": {
        "LocalAuthority.new": (1, TESTING),
        "LocalAuthority.serving": (1, TESTING),
        "LocalAuthority.client": (1, TESTING),
    },
    "generic/testing/garden/gardenlet.py": {
        "Garden.mark_deleted": (1, TESTING),
        "Garden._timestamp": (1, TESTING),
    },
    "generic/testing/landscape/kubelet.py": {
        "Kubelet._run": (1, TESTING),
    },
    "generic/testing/landscape/nodes.py": {
        "ShootNodes._serve": (1, TESTING),
        "ShootNodes._renew_lease": (1, TESTING),
        "ShootNodes._serve_pods": (1, TESTING),
    },
    "generic/testing/landscape/operators.py": {
        "serve_operators": (1, TESTING),
    },
    "generic/testing/landscape/podruns.py": {
        "PodRuns.__init__": (1, TESTING),
    },
    "generic/testing/landscape/runs.py": {
        "ContainerRun._start": (1, TESTING),
        "ContainerRun._note_exit": (1, TESTING),
    },
    "generic/testing/landscape/volumes.py": {
        "Tokens._request": (1, TESTING),
    },
    "generic/testing/resourcemanager.py": {"ResourceManager._say": (1, TESTING)},
    # Commands show ages, and write what their user decides.
    "generic/tools/cli/drain.py": {"_print_table": (1, SHOWN)},
    "generic/tools/cli/drill.py": {"_now": (1, SHOWN)},
    "generic/tools/cli/explain.py": {"explain": (1, SHOWN)},
    "generic/tools/cli/record.py": {"_export": (1, SHOWN), "_summary": (1, SHOWN)},
    "generic/tools/cli/orphans.py": {"_close": (1, SHOWN), "_table": (1, SHOWN)},
    "generic/tools/cli/stuck.py": {"stuck": (1, SHOWN)},
    "generic/tools/drain/release.py": {"_record": (1, SHOWN)},
}


def read_names(node: ast.AST) -> Iterator[str]:
    """The wall clocks that this node reads, calls or hands on."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in (TRUSTED, EVENTUAL):
            yield name
        case ast.Attribute(attr=name) if re.fullmatch(CLOCK, name):
            yield "now"
        case ast.ImportFrom(module="time", names=names):
            yield from ("now" for name in names if name.name not in HARMLESS_OF_TIME)


def readers(node: ast.AST, outer: tuple[str, ...] = ()) -> Iterator[str]:
    """Each reader in a module: the names around it, and the function unless it is `now`."""
    for child in ast.iter_child_nodes(node):
        inner = outer
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = (*outer, child.name)
        place = ".".join(inner) or "<module>"
        yield from (place if name == "now" else f"{place}/{name}" for name in read_names(child))
        yield from readers(child, inner)


def found(folder: Path) -> dict[str, dict[str, int]]:
    """The readers of each file, and how many there are in each place."""
    places = {}
    for package in PACKAGES:
        for path in sorted((folder / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            counts = Counter(readers(ast.parse(text)) if re.search(CLOCK, text) else ())
            if path == folder / "generic/kube/clock.py":  # here, the functions are the subject
                counts = Counter(name.partition("/")[0] for name in counts.elements())
            if counts:
                places[path.relative_to(folder).as_posix()] = dict(counts)
    return places


def test_each_reader_of_a_wall_clock_is_listed_with_its_decision():
    listed = {
        path: {place: number for place, (number, _) in places.items()}
        for path, places in TABLE.items()
    }
    assert found(ROOT) == listed, "decide what a wrong clock can do there, and list the reader"


@pytest.mark.parametrize("path", TABLE)
def test_final_decisions_alone_read_a_trusted_clock(path):
    if path == "generic/kube/clock.py":
        return
    assert TABLE[path]
    for place, (_, decision) in TABLE[path].items():
        _, _, read = place.partition("/")
        assert (decision == FINAL) is (read == TRUSTED), place
        assert (decision == AT_LAST) is (read == EVENTUAL), place


PLANTED = [
    "now = clock.now()",
    "now = self._clock.now()",
    "later(clock.now)",
    "now = datetime.now(UTC)",
    "now = date.today()",
    "now = time.time()",
    "from time import time",
    "now = trusted_now(clock)",
    "now = kubernetes_clock.eventual_now(clock)",
]


@pytest.mark.parametrize("line", PLANTED)
def test_a_planted_reader_is_found(tmp_path, line):
    path = tmp_path / "generic" / "new.py"
    path.parent.mkdir()
    path.write_text(f"class Some:\n    def where(self):\n        {line}\n")
    [counts] = found(tmp_path).values()
    [place] = counts
    assert place.startswith("Some.where")


@pytest.mark.parametrize("line", ["time.monotonic()", "moment.strftime('%F')", "time.sleep(1)"])
def test_a_line_without_wall_clock_is_not_found(tmp_path, line):
    path = tmp_path / "generic" / "new.py"
    path.parent.mkdir()
    path.write_text(f"def where():\n    {line}\n")
    assert found(tmp_path) == {}
