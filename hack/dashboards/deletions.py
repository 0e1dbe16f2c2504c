"""Deletion outcomes: which deletions end how, what is stuck, since when, what was left behind."""

from __future__ import annotations

from hack.dashboards.model import Dashboard, Form, Panel, Query, Row, show

_S = 'job=~"$job", controller=~"$controller", kind=~"$kind"'
_C = 'job=~"$job", controller=~"$controller"'
_CK = "job, controller, kind"
_FINAL = 'outcome=~"deleted|force_deleted|orphaned"'
_OUTCOMES = {
    "deleted": "green",
    "force_deleted": "yellow",
    "orphaned": "orange",
    "failed": "red",
    "gave_up": "dark-red",
    "skipped": "text",
}
_STATES = {
    "deleting": "blue",
    "failing": "red",
    "gave_up": "dark-red",
    "skipped": "text",
    "foreign_finalizer": "purple",
}
_OLD = ((3600.0, "orange"), (86400.0, "red"))


def _ended(outcome: str, title: str, description: str, color: str) -> Panel:
    expr = f'round(sum(increase(actuator_deletions_total{{{_S}, outcome="{outcome}"}}[$__range])))'
    return show(Form.STAT, title, description, expr, steps=[(1, color)])


_SUMMARY = Row(
    title="In this time range",
    panels=[
        _ended("deleted", "Deleted", "Objects cleaned up and let go of.", "green"),
        _ended("force_deleted", "Deleted by force", "Force-deleted, with nothing left.", "yellow"),
        _ended("orphaned", "Orphaned", "Let go of, with something left on record.", "orange"),
        _ended("gave_up", "Gave up", "Deletions that are not tried any more.", "red"),
        show(
            Form.STAT,
            "Clean share",
            "Of the objects that went, those that were cleaned up normally.",
            f'sum(increase(actuator_deletions_total{{{_S}, outcome="deleted"}}[$__range]))'
            f" / (sum(increase(actuator_deletions_total{{{_S}, {_FINAL}}}[$__range])) > 0)",
            unit="percentunit",
        ),
        show(
            Form.STAT,
            "Within 10 min",
            "Of the objects that went, those whose deletion took ten minutes at most.",
            "sum(increase(actuator_deletion_duration_seconds_bucket"
            f'{{{_S}, le=~"600(\\\\.0)?"}}[$__range]))'
            f" / (sum(increase(actuator_deletion_duration_seconds_count{{{_S}}}[$__range]))"
            " > 0)",
            unit="percentunit",
        ),
        show(
            Form.STAT,
            "Under deletion now",
            "Objects with a deletionTimestamp.",
            f"sum(max by ({_CK}, state) (actuator_terminating_objects{{{_S}}}))",
        ),
        show(
            Form.STAT,
            "Oldest",
            "How long the oldest object under deletion has been waiting.",
            f"max(time() - min by ({_CK}) "
            f"(actuator_terminating_oldest_deletion_timestamp_seconds{{{_S}}}))"
            " or vector(0)",
            unit="s",
            steps=_OLD,
        ),
    ],
)

_OVER_TIME = Row(
    title="Outcomes",
    panels=[
        show(
            Form.BARS,
            "Deletion passes by outcome",
            "Tries at deletions, by how they ended; the first three let go of objects.",
            f"sum by (outcome) (increase(actuator_deletions_total{{{_S}}}[$__interval]))",
            "{{outcome}}",
            width=12,
            colors=_OUTCOMES,
        ),
        show(
            Form.LINES,
            "Failing share by controller",
            "Of the tries at deletions, those that failed.",
            f"sum by (controller) (rate(actuator_deletions_total{{{_S}, "
            'outcome=~"failed|gave_up"}[$__rate_interval])) / (sum by (controller) '
            f'(rate(actuator_deletions_total{{{_S}, outcome!="skipped"}}'
            "[$__rate_interval])) > 0)",
            "{{controller}}",
            unit="percentunit",
            width=12,
        ),
        show(
            Form.TABLE,
            "Outcomes by controller and kind",
            "How the deletions of each kind ended.",
            "round(sum by (controller, kind, outcome) "
            f"(increase(actuator_deletions_total{{{_S}}}[$__range]))) > 0",
            width=12,
        ),
        show(
            Form.RANKING,
            "Error codes of failed deletions",
            "Gardener's codes; none: an error that its author gave no code.",
            f"sort_desc(sum by (code) (increase(actuator_errors_total{{{_C}, "
            'operation=~"delete|force_delete"}[$__range])) > 0)',
            "{{code}}",
            width=12,
        ),
    ],
)

_STUCK = Row(
    title="Under deletion now",
    panels=[
        show(
            Form.BARS,
            "Terminating objects by state",
            "failing: the last try failed; gave_up: not tried any more; skipped: the "
            "actuator is not called; foreign_finalizer: ours is off, others hold it.",
            f"sum by (state) (max by ({_CK}, state) (actuator_terminating_objects{{{_S}}}))",
            "{{state}}",
            colors=_STATES,
        ),
        show(
            Form.LINES,
            "Age of the oldest",
            "Since when the oldest object of each kind has been under deletion.",
            "time() - min by (kind) "
            f"(actuator_terminating_oldest_deletion_timestamp_seconds{{{_S}}})",
            "{{kind}}",
            unit="s",
            steps=_OLD,
        ),
        show(
            Form.RANKING,
            "Ages of the objects under deletion",
            "How many are at most so old, in seconds.",
            f"sort(sum by (le) (max by ({_CK}, le) "
            f"(actuator_terminating_age_seconds_bucket{{{_S}}})))",
            "{{le}}",
        ),
        show(
            Form.TABLE,
            "Oldest objects",
            "By name, where the manager runs with --metrics-oldest-terminating.",
            f"topk(20, time() - max by ({_CK}, namespace, name, state) "
            f"(actuator_terminating_object_deletion_timestamp_seconds{{{_S}}}))",
            unit="s",
            width=24,
            opt_in=True,
        ),
    ],
)


def _quantiles(metric: str, matchers: str) -> list[Query]:
    return [
        Query(
            f"histogram_quantile({share}, sum by (le) "
            f"(rate({metric}_bucket{{{matchers}}}[$__rate_interval])))",
            f"P{round(share * 100)}",
        )
        for share in (0.5, 0.95, 0.99)
    ]


_DURATIONS = Row(
    title="How long it takes",
    panels=[
        Panel(
            title="Time to delete",
            description="From the deletionTimestamp until our finalizer was off.",
            form=Form.LINES,
            queries=_quantiles("actuator_deletion_duration_seconds", _S),
            unit="s",
            width=8,
        ),
        show(
            Form.HEATMAP,
            "Deletion durations",
            "The same as a distribution.",
            "sum by (le) "
            f"(increase(actuator_deletion_duration_seconds_bucket{{{_S}}}[$__interval]))",
            "{{le}}",
            unit="s",
        ),
        Panel(
            title="Force deletion: time to the end",
            description="From when it was seen that deletion is forced until our finalizer was "
            "off; beside it the budget.",
            form=Form.LINES,
            queries=[
                *_quantiles("actuator_force_deletion_duration_seconds", _S)[1:],
                Query(f"max(actuator_force_delete_budget_seconds{{{_S}}})", "budget"),
            ],
            unit="s",
            width=8,
        ),
        show(
            Form.LINES,
            "Force deletion: budget used",
            "The longest force deletions (P99), as a share of their budget.",
            "histogram_quantile(0.99, sum by (job, controller, kind, le) "
            f"(rate(actuator_force_deletion_duration_seconds_bucket{{{_S}}}"
            f"[$__rate_interval]))) / max by ({_CK}) "
            f"(actuator_force_delete_budget_seconds{{{_S}}})",
            "{{kind}}",
            unit="percentunit",
            steps=[(1.0, "red")],
        ),
        show(
            Form.LINES,
            "Actuator calls P95",
            "Time inside one call, by operation.",
            "histogram_quantile(0.95, sum by (operation, le) "
            f"(rate(actuator_operation_duration_seconds_bucket{{{_C}}}[$__rate_interval])))",
            "{{operation}}",
            unit="s",
        ),
        show(
            Form.LINES,
            "Calls by operation and result",
            "pending: it asked to be called again; terminal: it is not tried again.",
            "sum by (operation, result) "
            f"(rate(actuator_operations_total{{{_C}}}[$__rate_interval])) > 0",
            "{{operation}} {{result}}",
            unit="ops",
        ),
    ],
)

_LEFT = Row(
    title="What was left, and what was taken away",
    panels=[
        show(
            Form.BARS,
            "Orphans on record",
            "What force deletions left outside the seed, as it stands now.",
            "sum by (state, resource_type) (max by (job, kind, resource_type, state) "
            '(actuator_orphans{job=~"$job", kind=~"$kind"}))',
            "{{resource_type}} {{state}}",
            width=12,
        ),
        show(
            Form.BARS,
            "Newly orphaned resources",
            "What may have been left outside, by type.",
            "sum by (controller, resource_type) "
            f"(increase(actuator_orphaned_resources_reported_total{{{_C}}}[$__interval]))",
            "{{controller}} {{resource_type}}",
            width=12,
        ),
        show(
            Form.BARS,
            "Seed finalizers stripped",
            "Finalizers of others that force deletions took off objects in the seed.",
            "sum by (controller, resource) "
            f"(increase(actuator_seed_finalizers_stripped_total{{{_C}}}[$__interval]))",
            "{{controller}} {{resource}}",
        ),
        show(
            Form.BARS,
            "Deletions bypassed",
            "Somebody took our finalizer off before cleanup was finished.",
            f"sum by (kind) (increase(actuator_deletions_bypassed_total{{{_S}}}[$__interval]))",
            "{{kind}}",
        ),
        show(
            Form.BARS,
            "Force deletions over budget",
            "Ended without their actuator.",
            "sum by (kind) "
            f"(increase(actuator_force_deletions_over_budget_total{{{_S}}}[$__interval]))",
            "{{kind}}",
        ),
        show(
            Form.TABLE,
            "Firing alerts",
            "Those of this project; each has a runbook.",
            "sum by (alertname, severity, controller, kind) "
            '(ALERTS{job=~"$job", alertname=~"Actuator.+", alertstate="firing"})',
            width=24,
        ),
    ],
)

DELETIONS = Dashboard(
    uid="actuator-deletion-outcomes",
    title="Deletion outcomes",
    description="Which deletions end how, what is stuck, since when, and what was left behind.",
    rows=[_SUMMARY, _OVER_TIME, _STUCK, _DURATIONS, _LEFT],
    variables={
        "job": "label_values(actuator_build_info, job)",
        "controller": 'label_values(actuator_controller_info{job=~"$job"}, controller)',
        "kind": 'label_values(actuator_controller_info{job=~"$job", '
        'controller=~"$controller"}, kind)',
    },
)
