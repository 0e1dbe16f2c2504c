import time
from functools import partial
from typing import Any

import pytest

from actuator.errors import ErrorCode
from generic.serving.metrics import (
    OPERATIONS,
    Metrics,
    Outcome,
    ReconcileResult,
    Terminating,
    TerminatingState,
    TryResult,
)
from tests.support.cluster.clocks import Hands
from tests.support.pages.promised_metrics import (
    CONTROLLER,
    KIND,
    NAMED,
    PROMISED,
    families,
    full,
    stream,
    stuck,
)


def value(metrics: Metrics, metric: str, /, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(metric, labels)


@pytest.mark.parametrize(("name", "kind", "labels"), PROMISED, ids=[p[0] for p in PROMISED])
def test_each_promised_metric_has_its_exact_name_type_and_labels(name, kind, labels):
    family = families(full())[name]
    assert family.type == kind
    assert {frozenset(set(s.labels) - {"le"}) for s in family.samples} == {frozenset(labels)}


def test_nothing_is_exposed_that_was_not_promised():
    extra = set(families(full())) - {name for name, _, _ in PROMISED}
    ages = "actuator_terminating_age_seconds"  # a gauge histogram, which this format does not know
    assert extra == {
        "process_virtual_memory_bytes",
        "process_max_fds",
        f"{ages}_gcount",
        f"{ages}_gsum",
    }


def test_of_types_that_authors_make_up_only_so_many_have_a_series_of_their_own():
    metrics = Metrics()
    controller = metrics.controller(CONTROLLER, KIND, 5)
    for number in range(40):
        controller.orphaned(f"type-{number}")
    family = families(metrics)["actuator_orphaned_resources_reported_total"]
    assert len(family.samples) == 26
    limit = {"controller": CONTROLLER, "resource_type": "exceeded_cardinality_limit"}
    assert value(metrics, "actuator_orphaned_resources_reported_total", **limit) == 15


def test_unserved_types_are_bounded_for_each_kind_and_end_with_their_objects():
    metrics = Metrics()
    seen = {"workers": [f"type-{number}" for number in range(40)], "networks": ["x" * 500]}
    informers = [stream("workers"), stream("networks")]
    metrics.show_streams(informers, lambda kind: seen.get(kind, ()))
    assert len(families(metrics)["actuator_unserved_objects"].samples) == 27
    others = {"kind": "workers", "type": "exceeded_cardinality_limit"}
    assert value(metrics, "actuator_unserved_objects", **others) == 15
    assert value(metrics, "actuator_unserved_objects", kind="networks", type="x" * 128) == 1
    seen.clear()
    assert "actuator_unserved_objects{" not in metrics.expose()[0].decode()


def test_everything_known_of_a_controller_is_there_at_zero_once_it_registers():
    metrics = Metrics()
    metrics.controller(CONTROLLER, KIND, 5)
    samples = [
        sample
        for name, family in families(metrics).items()
        if not name.startswith("process_")
        for sample in family.samples
    ]
    assert {s.name for s in samples if s.value != 0} == {
        "controller_runtime_max_concurrent_reconciles",
        "actuator_build_info",
    }
    seen = {(s.name, v) for s in samples for v in s.labels.values()}
    assert {("controller_runtime_reconcile_total", r.value) for r in ReconcileResult} <= seen
    assert {("actuator_deletions_total", o.value) for o in Outcome} <= seen
    assert {("actuator_operations_total", r.value) for r in TryResult} <= seen
    assert {("actuator_operations_total", o) for o in OPERATIONS} <= seen
    assert {("actuator_errors_total", c.value) for c in ErrorCode} <= seen
    assert {name for name, _, labels in PROMISED if "controller" in labels} - {
        "actuator_seed_finalizers_stripped_total",  # which resources, only the actuator knows
        "actuator_orphaned_resources_reported_total",
        "actuator_status_writes_refused_total",  # rare: appears with the first refusal
        "actuator_controller_info",  # said when the controller is wired
        "actuator_force_delete_budget_seconds",
        "actuator_terminating_objects",
        "actuator_terminating_oldest_deletion_timestamp_seconds",
        "actuator_terminating_age_seconds",
    } <= {s.name.removesuffix("_bucket") for s in samples}


def test_counters_of_strippable_finalizers_begin_at_zero():
    metrics = Metrics()
    metrics.controllers.describe(CONTROLLER, KIND, ("aws",), "finalizer", ["machines.x"], None)
    mine = {"controller": CONTROLLER, "resource": "machines.x"}
    assert value(metrics, "actuator_seed_finalizers_stripped_total", **mine) == 0


def test_the_reconcile_histogram_has_controller_runtimes_forty_bounds():
    metrics = Metrics()
    metrics.controller(CONTROLLER, KIND, 5)
    family = families(metrics)["controller_runtime_reconcile_time_seconds"]
    bounds = [float(s.labels["le"]) for s in family.samples if "le" in s.labels]
    assert (len(bounds), bounds[0], bounds[-2]) == (41, 0.005, 60)


def test_an_error_counts_in_both_error_metrics_and_a_success_in_none():
    metrics = Metrics()
    controller = metrics.controller(CONTROLLER, KIND, 5)
    controller.reconciled(ReconcileResult.ERROR, 0.2)
    controller.reconciled(ReconcileResult.SUCCESS, 0.2)
    controller.panicked()
    controller.timed_out()
    prefix = "controller_runtime_reconcile"
    mine = {"controller": CONTROLLER}
    assert value(metrics, f"{prefix}_total", result="error", **mine) == 1
    assert value(metrics, f"{prefix}_errors_total", **mine) == 1
    assert value(metrics, f"{prefix}_panics_total", **mine) == 1
    assert value(metrics, f"{prefix}_timeouts_total", **mine) == 1
    assert value(metrics, f"{prefix}_time_seconds_count", **mine) == 2


def test_the_workers_at_work_go_up_and_down():
    metrics = Metrics()
    controller = metrics.controller(CONTROLLER, KIND, 5)
    for delta in (1, 1, -1):
        controller.active(delta)
    assert value(metrics, "controller_runtime_active_workers", controller=CONTROLLER) == 1


@pytest.mark.parametrize("outcome", Outcome)
def test_a_deletion_counts_under_its_outcome_alone(outcome):
    metrics = Metrics()
    metrics.controller(CONTROLLER, KIND, 5).deletion(outcome)
    counted = {
        o: value(metrics, "actuator_deletions_total", controller=CONTROLLER, kind=KIND, outcome=o)
        for o in Outcome
    }
    assert counted == {o: float(o is outcome) for o in Outcome}


def test_an_outcome_is_final_when_the_finalizer_was_removed():
    assert {o for o in Outcome if o.final} == {"deleted", "force_deleted", "orphaned"}


def test_queue_gauges_are_read_at_the_scrape():
    metrics = Metrics()
    waiting = ["a"]
    queue = metrics.controller(CONTROLLER, KIND, 5).queue
    queue.watch(lambda: len(waiting), lambda: 1.5, lambda: 0.5)
    waiting.append("b")
    mine = {"name": CONTROLLER, "controller": CONTROLLER}
    assert value(metrics, "workqueue_depth", priority="", **mine) == 2
    assert value(metrics, "workqueue_unfinished_work_seconds", **mine) == 1.5
    assert value(metrics, "workqueue_longest_running_processor_seconds", **mine) == 0.5


def test_a_queue_gauge_that_raises_leaves_the_other_metrics_readable():
    metrics = Metrics()
    controller = metrics.controller(CONTROLLER, KIND, 5)
    controller.queue.watch(lambda: 1 // 0, lambda: 2.0, lambda: 3.0)
    read = families(metrics)
    assert str(read["workqueue_depth"].samples[0].value) == "nan"
    assert read["workqueue_unfinished_work_seconds"].samples[0].value == 2.0


def test_two_metrics_in_one_process_do_not_meet():
    one = Metrics()
    other = Metrics()
    one.controller(CONTROLLER, KIND, 5).queue.added()
    other.controller(CONTROLLER, KIND, 5)
    mine = {"name": CONTROLLER, "controller": CONTROLLER}
    assert value(one, "workqueue_adds_total", **mine) == 1
    assert value(other, "workqueue_adds_total", **mine) == 0


def test_a_relist_for_an_unknown_reason_is_refused():
    metrics = Metrics()
    metrics.relisted("Cluster", "expired")
    relists = families(metrics)["actuator_informer_relists_total"]
    read = {s.labels["reason"]: s.value for s in relists.samples}
    assert read == {"initial": 0, "expired": 1, "error": 0, "restored": 0}
    with pytest.raises(ValueError, match="boredom"):
        metrics.relisted("Cluster", "boredom")


def test_no_created_series_are_exposed():
    metrics = Metrics()
    metrics.controller(CONTROLLER, KIND, 5)
    assert b"_created" not in metrics.expose()[0]


def test_the_lease_is_held_or_not():
    metrics = Metrics()
    metrics.leader("lease", False)
    assert value(metrics, "leader_election_master_status", name="lease") == 0
    metrics.leader("lease", True)
    assert value(metrics, "leader_election_master_status", name="lease") == 1


def test_ten_controllers_have_at_most_three_thousand_series():
    metrics = Metrics()
    for number in range(10):
        name = f"{CONTROLLER}-{number}"
        metrics.controller(name, KIND, 5)
        metrics.controllers.describe(name, KIND, ("aws",), "finalizer", (), 90.0)
        metrics.terminating.add(name, KIND, lambda: [stuck()])
    assert sum(len(family.samples) for family in families(metrics).values()) <= 3000


def terminating(metrics, *found):
    shown = list(found)
    metrics.terminating.add(CONTROLLER, KIND, lambda: shown)
    return shown


def test_objects_under_deletion_are_counted_by_state_and_their_series_go_with_them():
    metrics = Metrics()
    shown = terminating(metrics, stuck("a", since=5.0), stuck("b", TerminatingState.GAVE_UP, 3.0))
    mine = {"controller": CONTROLLER, "kind": KIND}
    name = "actuator_terminating_objects"
    counted = {s: value(metrics, name, state=s.value, **mine) for s in TerminatingState}
    assert counted == {s: float(s in ("failing", "gave_up")) for s in TerminatingState}
    oldest = "actuator_terminating_oldest_deletion_timestamp_seconds"
    assert value(metrics, oldest, **mine) == 3.0
    assert value(metrics, "actuator_terminating_age_seconds_gcount", **mine) == 2
    shown.clear()
    assert value(metrics, oldest, **mine) is None
    assert value(metrics, name, state="failing", **mine) == 0


def test_ages_are_counted_from_now_bound_by_bound():
    metrics = Metrics()
    now = time.time()
    terminating(metrics, *(stuck(str(age), since=now - age) for age in (10, 100, 4000, 1e6)))
    buckets = {
        sample.labels["le"]: sample.value
        for sample in families(metrics)["actuator_terminating_age_seconds"].samples
        if "le" in sample.labels
    }
    bounds = ["60.0", "1800.0", "3600.0", "21600.0", "86400.0", "+Inf"]
    assert [buckets[bound] for bound in bounds] == [1, 2, 2, 3, 3, 4]


def test_single_objects_are_shown_where_that_is_asked_for_and_only_the_oldest():
    metrics = Metrics(oldest_terminating=2)
    terminating(metrics, *(stuck(str(number), since=float(number)) for number in range(5)))
    samples = families(metrics)[NAMED].samples
    assert {s.labels["name"] for s in samples} == {"0", "1"}
    other = Metrics()
    terminating(other, stuck())
    assert NAMED not in families(other)


def test_a_cache_that_raises_is_counted_and_costs_no_other_metric():
    metrics = Metrics()

    def broken() -> list[Any]:
        raise ZeroDivisionError

    metrics.terminating.add(CONTROLLER, KIND, broken)
    read = families(metrics)
    assert "actuator_terminating_objects" not in read
    assert "actuator_build_info" in read
    name = "actuator_collector_errors_total"
    assert value(metrics, name, collector="terminating") == 1


def test_an_error_counts_under_each_of_its_codes():
    metrics = Metrics()
    controller = metrics.controller(CONTROLLER, KIND, 5)
    controller.erred("delete", [ErrorCode.ERR_INFRA_DEPENDENCIES, ErrorCode.ERR_INFRA_UNAUTHORIZED])
    controller.erred("delete", [])
    codes = metrics.total("actuator_errors_total", "code", operation="delete")
    assert {code for code, count in codes.items() if count} == {
        "ERR_INFRA_DEPENDENCIES",
        "ERR_INFRA_UNAUTHORIZED",
        "none",
    }


@pytest.mark.parametrize("seconds", [-5.0, 0.0, 12.0])
def test_a_clock_that_runs_behind_makes_no_negative_duration(seconds):
    metrics = Metrics()
    metrics.controller(CONTROLLER, KIND, 5).released(Outcome.DELETED, seconds)
    mine = {"controller": CONTROLLER, "kind": KIND, "outcome": "deleted"}
    name = "actuator_deletion_duration_seconds"
    assert value(metrics, f"{name}_sum", **mine) == max(seconds, 0.0)
    assert value(metrics, f"{name}_count", **mine) == 1
    assert value(metrics, "actuator_deletions_total", **mine) == 1


def read_counter(metrics, name, **labels):
    """The exposed value of a counter, which Prometheus reads."""
    (sample,) = [
        sample
        for family in families(metrics).values()
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    return sample.value


@pytest.mark.parametrize("counted_before_the_first_scrape", [False, True])
def test_a_new_counter_is_read_as_0_before_it_counts_by_each_prometheus(
    counted_before_the_first_scrape,
):
    clock = Hands()
    metrics = Metrics(clock=clock, zero_seconds=75.0)
    controller = metrics.controller(CONTROLLER, KIND, 5)
    if not counted_before_the_first_scrape:
        assert "AWS::EC2::VPC" not in metrics.expose()[0].decode()
    for _ in range(3):
        controller.orphaned("AWS::EC2::VPC")
    name = "actuator_orphaned_resources_reported_total"
    reads = {}
    for clock.seconds in (100.0, 130.0, 160.0, 176.0, 300.0):
        reads[clock.seconds] = read_counter(metrics, name, resource_type="AWS::EC2::VPC")
    assert reads == {100.0: 0, 130.0: 0, 160.0: 0, 176.0: 3, 300.0: 3}
    controller.orphaned("AWS::EC2::VPC")
    assert read_counter(metrics, name, resource_type="AWS::EC2::VPC") == 4


def test_a_histogram_is_read_as_0_with_all_its_buckets_and_gauges_are_read_at_once():
    clock = Hands()
    metrics = Metrics(clock=clock, zero_seconds=75.0)
    controller = metrics.controller(CONTROLLER, KIND, 5)
    controller.released(Outcome.DELETED, 12.0)
    name = "actuator_deletion_duration_seconds"
    outcome = {"outcome": "deleted"}
    parts = [(f"{name}_count", {}), (f"{name}_sum", {}), (f"{name}_bucket", {"le": "+Inf"})]
    assert [read_counter(metrics, part, **outcome, **le) for part, le in parts] == [0, 0, 0]
    assert read_counter(metrics, "controller_runtime_max_concurrent_reconciles") == 5
    clock.seconds = 75.0
    assert [read_counter(metrics, part, **outcome, **le) for part, le in parts] == [1, 12, 1]


def test_each_exposed_series_names_its_extension():
    metrics = Metrics(extension="extension-aws")
    metrics.controller(CONTROLLER, KIND, 5)
    lines = [line for line in metrics.expose()[0].decode().splitlines() if line[0] != "#"]
    assert all('extension="extension-aws"' in line for line in lines)


HOURS = 3600.0


def stuck_in(namespace, hours, cause="", state=TerminatingState.FAILING):
    return Terminating(namespace, "infra", state, -hours * HOURS, cause)


@pytest.mark.parametrize(
    ("found", "counted"),
    [
        pytest.param([], {"none": 0}, id="nothing is stuck"),
        pytest.param([stuck_in("a", 0.9, "ERR_A")], {"none": 0}, id="not an hour yet"),
        pytest.param([stuck_in("a", 2)], {"none": 1}, id="no cause is known"),
        pytest.param(
            [stuck_in("a", 2, "ERR_A"), stuck_in("b", 2, "ERR_A"), stuck_in("c", 2, "Forbidden")],
            {"none": 0, "ERR_A": 2, "Forbidden": 1},
            id="shoots by cause",
        ),
        pytest.param(
            [
                stuck_in("a", 3),
                stuck_in("a", 9, "SeedObjectsHeld"),
                stuck_in("a", 2, "ERR_A"),
                stuck_in("a", 9, state=TerminatingState.FOREIGN_FINALIZER),
            ],
            {"none": 0, "ERR_A": 1},
            id="a shoot has one cause, whatever is stuck in it",
        ),
        pytest.param(
            [stuck_in("a", 3), stuck_in("a", 2, state=TerminatingState.FOREIGN_FINALIZER)],
            {"none": 0, "ForeignFinalizer": 1},
            id="another controller",
        ),
        pytest.param(
            [stuck_in("a", 0.1, "ERR_A", TerminatingState.GAVE_UP)],
            {"none": 0, "ERR_A": 1},
            id="given up is stuck at once",
        ),
        pytest.param(
            [stuck_in("a", 99, "ERR_A", TerminatingState.SKIPPED)],
            {"none": 0},
            id="Gardener gave up the shoot",
        ),
    ],
)
def test_a_stuck_shoot_counts_once_under_its_cause(found, counted):
    clock = Hands()
    clock.ahead = -clock.now().timestamp()  # now is 0
    metrics = Metrics(clock=clock)
    for number, item in enumerate(found):
        metrics.terminating.add(f"controller-{number}", KIND, partial(list, [item]))
    family = families(metrics)["actuator_stuck_shoots"]
    assert {s.labels["cause"]: s.value for s in family.samples} == counted
