"""Extension controllers: whether the machinery runs, and what it costs."""

from __future__ import annotations

from hack.dashboards.model import Dashboard, Form, Panel, Query, Row

_J = 'job=~"$job"'
_C = f'{_J}, controller=~"$controller"'
_RI = "$__rate_interval"


def _lines(title: str, description: str, expr: str, legend: str, unit: str = "short") -> Panel:
    return Panel(
        title=title,
        description=description,
        form=Form.LINES,
        queries=[Query(expr, legend)],
        unit=unit,
        width=8,
    )


_ALIVE = Row(
    title="Is it alive",
    panels=[
        Panel(
            title="Leader",
            description="Which replica holds the Lease.",
            form=Form.LINES,
            queries=[
                Query(
                    f"max by (instance, name) (leader_election_master_status{{{_J}}})",
                    "{{instance}} {{name}}",
                )
            ],
            width=8,
        ),
        _lines(
            "Heartbeat age",
            "Since when the Lease that gardenlet reads was not renewed.",
            "time() - max by (job) "
            f"(actuator_heartbeat_last_renewal_timestamp_seconds{{{_J}}} > 0)",
            "{{job}}",
            "s",
        ),
        _lines(
            "Stream age",
            "Since when nothing was heard on a watch; a bookmark comes every minute.",
            f"max by (kind) (actuator_informer_stream_age_seconds{{{_J}}})",
            "{{kind}}",
            "s",
        ),
        _lines(
            "Lists",
            "How often everything was listed, and why: expired is a 410.",
            f"sum by (kind, reason) (increase(actuator_informer_relists_total{{{_J}}}[{_RI}])) > 0",
            "{{kind}} {{reason}}",
        ),
        _lines(
            "Synced",
            "Whether everything of a kind was listed once.",
            f"min by (kind) (actuator_informer_synced{{{_J}}})",
            "{{kind}}",
        ),
        _lines(
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
        _lines(
            "Reconciles by result",
            "Passes of the workers.",
            f"sum by (result) (rate(controller_runtime_reconcile_total{{{_C}}}[{_RI}]))",
            "{{result}}",
            "ops",
        ),
        _lines(
            "Reconcile time P95",
            "Of one pass.",
            "histogram_quantile(0.95, sum by (controller, le) "
            f"(rate(controller_runtime_reconcile_time_seconds_bucket{{{_C}}}[{_RI}])))",
            "{{controller}}",
            "s",
        ),
        _lines(
            "Workers at work",
            "As a share of those there are.",
            f"sum by (controller) (controller_runtime_active_workers{{{_C}}})"
            f" / sum by (controller) (controller_runtime_max_concurrent_reconciles{{{_C}}})",
            "{{controller}}",
            "percentunit",
        ),
        _lines(
            "Queue depth",
            "Objects that wait for a worker.",
            f"sum by (name) (workqueue_depth{{{_C}}})",
            "{{name}}",
        ),
        _lines(
            "Queue wait P99",
            "How long objects wait for a worker.",
            "histogram_quantile(0.99, sum by (name, le) "
            f"(rate(workqueue_queue_duration_seconds_bucket{{{_C}}}[{_RI}])))",
            "{{name}}",
            "s",
        ),
        _lines(
            "Longest running",
            "The object that a worker has had for longest.",
            f"max by (name) (workqueue_longest_running_processor_seconds{{{_C}}})",
            "{{name}}",
            "s",
        ),
        _lines(
            "Retries",
            "Objects put back with a backoff.",
            f"sum by (name) (rate(workqueue_retries_total{{{_C}}}[{_RI}]))",
            "{{name}}",
            "ops",
        ),
        _lines(
            "Errors by code",
            "Of all operations.",
            f"sum by (operation, code) (rate(actuator_errors_total{{{_C}}}[{_RI}])) > 0",
            "{{operation}} {{code}}",
            "ops",
        ),
        _lines(
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
        _lines(
            "API requests",
            "By method and status code.",
            f"sum by (method, code) (rate(rest_client_requests_total{{{_J}}}[{_RI}])) > 0",
            "{{method}} {{code}}",
            "reqps",
        ),
        _lines(
            "CPU",
            "Cores in use.",
            f"sum by (job, instance) (rate(process_cpu_seconds_total{{{_J}}}[{_RI}]))"
            " and on (job) actuator_build_info",
            "{{instance}}",
        ),
        _lines(
            "Memory",
            "Resident.",
            f"sum by (job, instance) (process_resident_memory_bytes{{{_J}}})"
            " and on (job) actuator_build_info",
            "{{instance}}",
            "bytes",
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
