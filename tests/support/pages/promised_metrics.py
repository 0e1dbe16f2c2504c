"""The metrics that are promised, and a registry in which each of them has a sample."""

from types import SimpleNamespace

from prometheus_client.parser import text_string_to_metric_families

from generic.serving.metrics import Metrics, Terminating, TerminatingState

CONTROLLER = "infrastructure-aws"
KIND = "Infrastructure"
QUEUE_LABELS = {"name", "controller"}

# The metrics of controller-runtime and client-go that we promise: name, type, labels.
PROMISED = [
    ("controller_runtime_reconcile_total", "counter", {"controller", "result"}),
    ("controller_runtime_reconcile_errors_total", "counter", {"controller"}),
    ("controller_runtime_terminal_reconcile_errors_total", "counter", {"controller"}),
    ("controller_runtime_reconcile_panics_total", "counter", {"controller"}),
    ("controller_runtime_reconcile_timeouts_total", "counter", {"controller"}),
    ("controller_runtime_reconcile_time_seconds", "histogram", {"controller"}),
    ("controller_runtime_max_concurrent_reconciles", "gauge", {"controller"}),
    ("controller_runtime_active_workers", "gauge", {"controller"}),
    ("workqueue_depth", "gauge", QUEUE_LABELS | {"priority"}),
    ("workqueue_adds_total", "counter", QUEUE_LABELS),
    ("workqueue_retries_total", "counter", QUEUE_LABELS),
    ("workqueue_queue_duration_seconds", "histogram", QUEUE_LABELS),
    ("workqueue_work_duration_seconds", "histogram", QUEUE_LABELS),
    ("workqueue_unfinished_work_seconds", "gauge", QUEUE_LABELS),
    ("workqueue_longest_running_processor_seconds", "gauge", QUEUE_LABELS),
    ("rest_client_requests_total", "counter", {"code", "method", "host"}),
    ("leader_election_master_status", "gauge", {"name"}),
    ("process_cpu_seconds_total", "counter", set()),
    ("process_resident_memory_bytes", "gauge", set()),
    ("process_start_time_seconds", "gauge", set()),
    ("process_open_fds", "gauge", set()),
    ("actuator_deletions_total", "counter", {"controller", "kind", "outcome"}),
    ("actuator_finalizers_removed_externally_total", "counter", {"controller", "kind"}),
    (
        "actuator_orphaned_resources_reported_total",
        "counter",
        {"controller", "resource_type"},
    ),
    ("actuator_force_deletions_not_recorded_total", "counter", {"controller"}),
    ("actuator_informer_relists_total", "counter", {"kind", "reason"}),
    ("actuator_seed_finalizers_stripped_total", "counter", {"controller", "resource"}),
    ("actuator_operations_total", "counter", {"controller", "operation", "result"}),
    ("actuator_operation_duration_seconds", "histogram", {"controller", "operation"}),
    ("actuator_errors_total", "counter", {"controller", "operation", "code"}),
    ("actuator_deletion_duration_seconds", "histogram", {"controller", "kind", "outcome"}),
    ("actuator_force_deletion_duration_seconds", "histogram", {"controller", "kind"}),
    ("actuator_force_deletions_over_budget_total", "counter", {"controller", "kind"}),
    ("actuator_force_delete_budget_seconds", "gauge", {"controller", "kind"}),
    ("actuator_terminating_objects", "gauge", {"controller", "kind", "state"}),
    (
        "actuator_terminating_oldest_deletion_timestamp_seconds",
        "gauge",
        {"controller", "kind"},
    ),
    ("actuator_terminating_age_seconds", "histogram", {"controller", "kind"}),
    ("actuator_stuck_shoots", "gauge", {"cause"}),
    ("actuator_heartbeat_renewals_total", "counter", {"result"}),
    ("actuator_heartbeat_last_renewal_timestamp_seconds", "gauge", set()),
    ("actuator_informer_synced", "gauge", {"kind"}),
    ("actuator_informer_kind_absent", "gauge", {"kind"}),
    ("actuator_informer_stream_age_seconds", "gauge", {"kind"}),
    ("actuator_unreadable_objects", "gauge", {"kind"}),
    ("actuator_unserved_objects", "gauge", {"kind", "type"}),
    ("actuator_status_writes_refused_total", "counter", {"controller"}),
    ("actuator_collector_errors_total", "counter", {"collector"}),
    ("actuator_controller_info", "gauge", {"controller", "kind", "type", "finalizer"}),
    ("controller_runtime_webhook_latency_seconds", "histogram", {"webhook"}),
    ("controller_runtime_webhook_requests_in_flight", "gauge", {"webhook"}),
    ("controller_runtime_webhook_requests_total", "counter", {"webhook", "code"}),
    ("actuator_webhook_outcomes_total", "counter", {"webhook", "outcome"}),
    ("actuator_webhook_certificate_expiry_timestamp_seconds", "gauge", set()),
    ("actuator_webhook_configurations_in_conflict", "gauge", set()),
    ("actuator_build_info", "gauge", {"version", "python_version"}),
]
NAMED = "actuator_terminating_object_deletion_timestamp_seconds"
"""Opt-in."""


def stuck(name="infra", state=TerminatingState.FAILING, since=0.0):
    return Terminating("shoot", name, state, since)


def stream(plural):
    """An informer, as far as metrics read it."""
    state = {"synced": True, "absent": False, "age": lambda: 1.0, "unreadable": 2}
    return SimpleNamespace(name=plural, plural=plural, **state)


def full():
    """Metrics of a manager in which everything happened once."""
    metrics = Metrics()
    controller = metrics.controller(CONTROLLER, KIND, 5)
    metrics.controllers.describe(CONTROLLER, KIND, ("aws",), "finalizer", (), 90.0)
    metrics.terminating.add(CONTROLLER, KIND, lambda: [stuck()])
    metrics.show_streams([stream("infrastructures")], lambda _: ["acmee"])
    controller.status_not_written()
    controller.not_recorded()
    controller.stripped("machines.machine.sapcloud.io")
    controller.orphaned("AWS::EC2::VPC")
    metrics.request("GET", "127.0.0.1:6443", "200")
    metrics.leader("lease", True)
    metrics.relisted("infrastructures", "initial")
    metrics.heartbeat(True)
    metrics.webhooks(["mutate"])
    return metrics


def families(metrics: Metrics):
    """The metrics that Prometheus reads, by name as it is queried."""
    body, content_type = metrics.expose()
    assert content_type.startswith("text/plain")
    parsed = text_string_to_metric_families(body.decode())
    return {f"{f.name}_total" if f.type == "counter" else f.name: f for f in parsed}
