"""Deletion outcomes: which deletions end how, what is stuck, since when, what was left behind."""

from __future__ import annotations

from hack.dashboards.model import Dashboard, Form, Panel, Query, Row

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
    return Panel(
        title=title,
        description=description,
        form=Form.STAT,
        queries=[Query(expr)],
        width=3,
        height=4,
        steps=[(1, color)],
    )


_SUMMARY = Row(
    title="In this time range",
    panels=[
        _ended("deleted", "Deleted", "Objects cleaned up and let go of.", "green"),
        _ended("force_deleted", "Deleted by force", "Force-deleted, with nothing left.", "yellow"),
        _ended("orphaned", "Orphaned", "Let go of, with something left on record.", "orange"),
        _ended("gave_up", "Gave up", "Deletions that are not tried any more.", "red"),
        Panel(
            title="Clean share",
            description="Of the objects that went, those that were cleaned up normally.",
            form=Form.STAT,
            queries=[
                Query(
                    f'sum(increase(actuator_deletions_total{{{_S}, outcome="deleted"}}[$__range]))'
                    f" / (sum(increase(actuator_deletions_total{{{_S}, {_FINAL}}}[$__range])) > 0)"
                )
            ],
            unit="percentunit",
            width=3,
            height=4,
        ),
        Panel(
            title="Within 10 min",
            description="Of the objects that went, those whose deletion took ten minutes at most.",
            form=Form.STAT,
            queries=[
                Query(
                    "sum(increase(actuator_deletion_duration_seconds_bucket"
                    f'{{{_S}, le=~"600(\\\\.0)?"}}[$__range]))'
                    f" / (sum(increase(actuator_deletion_duration_seconds_count{{{_S}}}[$__range]))"
                    " > 0)"
                )
            ],
            unit="percentunit",
            width=3,
            height=4,
        ),
        Panel(
            title="Under deletion now",
            description="Objects with a deletionTimestamp.",
            form=Form.STAT,
            queries=[Query(f"sum(max by ({_CK}, state) (actuator_terminating_objects{{{_S}}}))")],
            width=3,
            height=4,
        ),
        Panel(
            title="Oldest",
            description="How long the oldest object under deletion has been waiting.",
            form=Form.STAT,
            queries=[
                Query(
                    f"max(time() - min by ({_CK}) "
                    f"(actuator_terminating_oldest_deletion_timestamp_seconds{{{_S}}}))"
                    " or vector(0)"
                )
            ],
            unit="s",
            width=3,
            height=4,
            steps=_OLD,
        ),
    ],
)

_OVER_TIME = Row(
    title="Outcomes",
    panels=[
        Panel(
            title="Deletion passes by outcome",
            description="Tries at deletions, by how they ended; the first three let go of objects.",
            form=Form.BARS,
            queries=[
                Query(
                    f"sum by (outcome) (increase(actuator_deletions_total{{{_S}}}[$__interval]))",
                    "{{outcome}}",
                )
            ],
            width=12,
            colors=_OUTCOMES,
        ),
        Panel(
            title="Failing share by controller",
            description="Of the tries at deletions, those that failed.",
            form=Form.LINES,
            queries=[
                Query(
                    f"sum by (controller) (rate(actuator_deletions_total{{{_S}, "
                    'outcome=~"failed|gave_up"}[$__rate_interval])) / (sum by (controller) '
                    f'(rate(actuator_deletions_total{{{_S}, outcome!="skipped"}}'
                    "[$__rate_interval])) > 0)",
                    "{{controller}}",
                )
            ],
            unit="percentunit",
            width=12,
        ),
        Panel(
            title="Outcomes by controller and kind",
            description="How the deletions of each kind ended.",
            form=Form.TABLE,
            queries=[
                Query(
                    "round(sum by (controller, kind, outcome) "
                    f"(increase(actuator_deletions_total{{{_S}}}[$__range]))) > 0"
                )
            ],
            width=12,
        ),
        Panel(
            title="Error codes of failed deletions",
            description="Gardener's codes; none: an error that its author gave no code.",
            form=Form.RANKING,
            queries=[
                Query(
                    f"sort_desc(sum by (code) (increase(actuator_errors_total{{{_C}, "
                    'operation=~"delete|force_delete"}[$__range])) > 0)',
                    "{{code}}",
                )
            ],
            width=12,
        ),
    ],
)

_STUCK = Row(
    title="Under deletion now",
    panels=[
        Panel(
            title="Terminating objects by state",
            description="failing: the last try failed; gave_up: not tried any more; skipped: the "
            "actuator is not called; foreign_finalizer: ours is off, others hold it.",
            form=Form.BARS,
            queries=[
                Query(
                    f"sum by (state) (max by ({_CK}, state) "
                    f"(actuator_terminating_objects{{{_S}}}))",
                    "{{state}}",
                )
            ],
            width=8,
            colors=_STATES,
        ),
        Panel(
            title="Age of the oldest",
            description="Since when the oldest object of each kind has been under deletion.",
            form=Form.LINES,
            queries=[
                Query(
                    "time() - min by (kind) "
                    f"(actuator_terminating_oldest_deletion_timestamp_seconds{{{_S}}})",
                    "{{kind}}",
                )
            ],
            unit="s",
            width=8,
            steps=_OLD,
        ),
        Panel(
            title="Ages of the objects under deletion",
            description="How many are at most so old, in seconds.",
            form=Form.RANKING,
            queries=[
                Query(
                    f"sort(sum by (le) (max by ({_CK}, le) "
                    f"(actuator_terminating_age_seconds_bucket{{{_S}}})))",
                    "{{le}}",
                )
            ],
            width=8,
        ),
        Panel(
            title="Oldest objects",
            description="By name, where the manager runs with --metrics-oldest-terminating.",
            form=Form.TABLE,
            queries=[
                Query(
                    f"topk(20, time() - max by ({_CK}, namespace, name, state) "
                    f"(actuator_terminating_object_deletion_timestamp_seconds{{{_S}}}))"
                )
            ],
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
        Panel(
            title="Deletion durations",
            description="The same as a distribution.",
            form=Form.HEATMAP,
            queries=[
                Query(
                    "sum by (le) "
                    f"(increase(actuator_deletion_duration_seconds_bucket{{{_S}}}[$__interval]))",
                    "{{le}}",
                )
            ],
            unit="s",
            width=8,
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
        Panel(
            title="Force deletion: budget used",
            description="The longest force deletions (P99), as a share of their budget.",
            form=Form.LINES,
            queries=[
                Query(
                    "histogram_quantile(0.99, sum by (job, controller, kind, le) "
                    f"(rate(actuator_force_deletion_duration_seconds_bucket{{{_S}}}"
                    f"[$__rate_interval]))) / max by ({_CK}) "
                    f"(actuator_force_delete_budget_seconds{{{_S}}})",
                    "{{kind}}",
                )
            ],
            unit="percentunit",
            width=8,
            steps=[(1.0, "red")],
        ),
        Panel(
            title="Actuator calls P95",
            description="Time inside one call, by operation.",
            form=Form.LINES,
            queries=[
                Query(
                    "histogram_quantile(0.95, sum by (operation, le) "
                    f"(rate(actuator_operation_duration_seconds_bucket{{{_C}}}[$__rate_interval])))",
                    "{{operation}}",
                )
            ],
            unit="s",
            width=8,
        ),
        Panel(
            title="Calls by operation and result",
            description="pending: it asked to be called again; terminal: it is not tried again.",
            form=Form.LINES,
            queries=[
                Query(
                    "sum by (operation, result) "
                    f"(rate(actuator_operations_total{{{_C}}}[$__rate_interval])) > 0",
                    "{{operation}} {{result}}",
                )
            ],
            unit="ops",
            width=8,
        ),
    ],
)

_LEFT = Row(
    title="What was left, and what was taken away",
    panels=[
        Panel(
            title="Orphans on record",
            description="What force deletions left outside the seed, as it stands now.",
            form=Form.BARS,
            queries=[
                Query(
                    "sum by (state, resource_type) (max by (job, kind, resource_type, state) "
                    '(actuator_orphans{job=~"$job", kind=~"$kind"}))',
                    "{{resource_type}} {{state}}",
                )
            ],
            width=12,
        ),
        Panel(
            title="Newly orphaned resources",
            description="What may have been left outside, by type.",
            form=Form.BARS,
            queries=[
                Query(
                    "sum by (controller, resource_type) "
                    f"(increase(actuator_orphaned_resources_reported_total{{{_C}}}[$__interval]))",
                    "{{controller}} {{resource_type}}",
                )
            ],
            width=12,
        ),
        Panel(
            title="Seed finalizers stripped",
            description="Finalizers of others that force deletions took off objects in the seed.",
            form=Form.BARS,
            queries=[
                Query(
                    "sum by (controller, resource) "
                    f"(increase(actuator_seed_finalizers_stripped_total{{{_C}}}[$__interval]))",
                    "{{controller}} {{resource}}",
                )
            ],
            width=8,
        ),
        Panel(
            title="Deletions bypassed",
            description="Somebody took our finalizer off before cleanup was finished.",
            form=Form.BARS,
            queries=[
                Query(
                    "sum by (kind) "
                    f"(increase(actuator_deletions_bypassed_total{{{_S}}}[$__interval]))",
                    "{{kind}}",
                )
            ],
            width=8,
        ),
        Panel(
            title="Force deletions over budget",
            description="Ended without their actuator.",
            form=Form.BARS,
            queries=[
                Query(
                    "sum by (kind) "
                    f"(increase(actuator_force_deletions_over_budget_total{{{_S}}}[$__interval]))",
                    "{{kind}}",
                )
            ],
            width=8,
        ),
        Panel(
            title="Firing alerts",
            description="Those of this project; each has a runbook.",
            form=Form.TABLE,
            queries=[
                Query(
                    "sum by (alertname, severity, controller, kind) "
                    '(ALERTS{job=~"$job", alertname=~"Actuator.+", alertstate="firing"})'
                )
            ],
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
