"""Extension controllers: whether the machinery runs, and what it costs."""

from __future__ import annotations

from hack.dashboards.model import Dashboard, Form, Row, show

_J = 'job=~"$job"'
_C = f'{_J}, controller=~"$controller"'
_RI = "$__rate_interval"

_ALIVE = Row(
    title="Is it alive",
    panels=[
        show(
            Form.LINES,
            "Leader",
            "Which replica holds the Lease.",
            f"max by (instance, name) (leader_election_master_status{{{_J}}})",
            "{{instance}} {{name}}",
        ),
        show(
            Form.LINES,
            "Heartbeat age",
            "Since when the Lease that gardenlet reads was not renewed.",
            "time() - max by (job) "
            f"(actuator_heartbeat_last_renewal_timestamp_seconds{{{_J}}} > 0)",
            "{{job}}",
            unit="s",
        ),
        show(
            Form.LINES,
            "Stream age",
            "Since when nothing was heard on a watch; a bookmark comes every minute.",
            f"max by (kind) (actuator_informer_stream_age_seconds{{{_J}}})",
            "{{kind}}",
            unit="s",
        ),
        show(
            Form.LINES,
            "Lists",
            "How often everything was listed, and why: expired is a 410.",
            f"sum by (kind, reason) (increase(actuator_informer_relists_total{{{_J}}}[{_RI}])) > 0",
            "{{kind}} {{reason}}",
        ),
        show(
            Form.LINES,
            "Synced",
            "Whether everything of a kind was listed once.",
            f"min by (kind) (actuator_informer_synced{{{_J}}})",
            "{{kind}}",
        ),
        show(
            Form.LINES,
            "Absent kinds",
            "The kinds that the API server does not serve because their CRD is absent.",
            f"max by (kind) (actuator_informer_kind_absent{{{_J}}}) > 0",
            "{{kind}}",
        ),
        show(
            Form.LINES,
            "Versions",
            "What runs.",
            f"count by (version, python_version) (actuator_build_info{{{_J}}})",
            "{{version}}, Python {{python_version}}",
        ),
    ],
)

_WORK = Row(
    title="Work",
    panels=[
        show(
            Form.LINES,
            "Reconciles by result",
            "Passes of the workers.",
            f"sum by (result) (rate(controller_runtime_reconcile_total{{{_C}}}[{_RI}]))",
            "{{result}}",
            unit="ops",
        ),
        show(
            Form.LINES,
            "Reconcile time P95",
            "Of one pass.",
            "histogram_quantile(0.95, sum by (controller, le) "
            f"(rate(controller_runtime_reconcile_time_seconds_bucket{{{_C}}}[{_RI}])))",
            "{{controller}}",
            unit="s",
        ),
        show(
            Form.LINES,
            "Workers at work",
            "As a share of those there are.",
            f"sum by (controller) (controller_runtime_active_workers{{{_C}}})"
            f" / sum by (controller) (controller_runtime_max_concurrent_reconciles{{{_C}}})",
            "{{controller}}",
            unit="percentunit",
        ),
        show(
            Form.LINES,
            "Queue depth",
            "Objects that wait for a worker.",
            f"sum by (name) (workqueue_depth{{{_C}}})",
            "{{name}}",
        ),
        show(
            Form.LINES,
            "Queue wait P99",
            "How long objects wait for a worker.",
            "histogram_quantile(0.99, sum by (name, le) "
            f"(rate(workqueue_queue_duration_seconds_bucket{{{_C}}}[{_RI}])))",
            "{{name}}",
            unit="s",
        ),
        show(
            Form.LINES,
            "Longest running",
            "The object that a worker has had for longest.",
            f"max by (name) (workqueue_longest_running_processor_seconds{{{_C}}})",
            "{{name}}",
            unit="s",
        ),
        show(
            Form.LINES,
            "Retries",
            "Objects put back with a backoff.",
            f"sum by (name) (rate(workqueue_retries_total{{{_C}}}[{_RI}]))",
            "{{name}}",
            unit="ops",
        ),
        show(
            Form.LINES,
            "Errors by code",
            "Of all operations.",
            f"sum by (operation, code) (rate(actuator_errors_total{{{_C}}}[{_RI}])) > 0",
            "{{operation}} {{code}}",
            unit="ops",
        ),
        show(
            Form.LINES,
            "Bugs and calls out of time",
            "Unexpected exceptions, and calls that ran into their deadline.",
            f"sum by (controller) (increase(controller_runtime_reconcile_panics_total{{{_C}}}"
            f"[{_RI}])) + sum by (controller) "
            f"(increase(controller_runtime_reconcile_timeouts_total{{{_C}}}[{_RI}]))",
            "{{controller}}",
        ),
    ],
)

_COST = Row(
    title="What it costs",
    panels=[
        show(
            Form.LINES,
            "API requests",
            "By method and status code.",
            f"sum by (method, code) (rate(rest_client_requests_total{{{_J}}}[{_RI}])) > 0",
            "{{method}} {{code}}",
            unit="reqps",
        ),
        show(
            Form.LINES,
            "CPU",
            "Cores in use.",
            f"sum by (job, instance) (rate(process_cpu_seconds_total{{{_J}}}[{_RI}]))"
            " and on (job) actuator_build_info",
            "{{instance}}",
        ),
        show(
            Form.LINES,
            "Memory",
            "Resident.",
            f"sum by (job, instance) (process_resident_memory_bytes{{{_J}}})"
            " and on (job) actuator_build_info",
            "{{instance}}",
            unit="bytes",
        ),
    ],
)

CONTROLLERS = Dashboard(
    uid="actuator-controllers",
    title="Extension controllers",
    description="Whether the controllers of an extension run, how busy they are, what they cost.",
    rows=[_ALIVE, _WORK, _COST],
    variables={
        "job": "label_values(actuator_build_info, job)",
        "controller": 'label_values(actuator_controller_info{job=~"$job"}, controller)',
    },
)
