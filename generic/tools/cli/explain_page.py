"""The output of `explain`: a page for one object, a table for a namespace. Needs rich."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from actuator.v1alpha1 import KINDS
from generic.tools.cli.screen import age, new_table
from generic.tools.explain.facts import (
    Deleting,
    Explanation,
    Forcing,
    Overview,
    Removal,
    Standing,
    Unread,
    Webhook,
    grant,
)

_OBJECT_WIDTH = max(len(cls.KIND.name) for cls in KINDS)
"""Width in characters: names of kinds fit, longer names are folded."""


def page(explanation: Explanation) -> RenderableType:
    """Return the page for one object."""
    standing = explanation.standing
    subject = standing.subject
    type_ = f"type {subject.type}" if subject.type else "without type"
    parts = [
        Text(f"{subject}, {type_}, uid {subject.uid}", style="bold"),
        _listed("Blockers", standing.blockers, "nothing"),
        _standing(standing),
        _finalizers(standing),
        _pairs("Force deletion", _forcing(standing.forcing)),
        *_removal(explanation.removal),
        *_others(explanation),
        *_asides(explanation.notes, explanation.unread),
    ]
    return Group(*(line for part in parts for line in (part, Text())))


def table(overview: Overview) -> RenderableType:
    """Return the table for the objects of a namespace."""
    head = f"Namespace {overview.namespace}"
    if overview.deleting is not None:
        head += f", terminating for {_age(overview.deleting)}"
    rows = new_table("object", "operation", "last", "deleting", "blocked by")
    rows.columns[0].width = _OBJECT_WIDTH
    for standing in overview.objects:
        subject, last = standing.subject, standing.last_operation
        rows.add_row(
            f"{subject.kind}\n{subject.name}",
            standing.decision.operation or "none",
            f"{last.type}\n{last.state}" if last else "none",
            _age(standing.deleting),
            "\n".join(standing.blockers),
        )
    objects = rows if overview.objects else "No extension objects."
    asides = _asides((), overview.unread)
    return Group(Text(head, style="bold"), *overview.remaining, objects, *asides)


def _standing(standing: Standing) -> RenderableType:
    decision = standing.decision
    operation = f"{decision.operation or 'nothing'}{', blocked' if decision.blocked else ''}"
    rows = [("next operation", f"{operation}: {decision.why}")]
    if standing.deleting is not None:
        since = standing.deleting.timestamp
        rows.append(("terminating", f"for {_age(standing.deleting)}, since {since}"))
    if last := standing.last_operation:
        rows.append(("last operation", f"{last.type} {last.state}, {last.progress} %"))
        rows.append(("last attempt", last.last_update_time))
        if standing.last_error is None:
            rows.append(("description", last.description))
    if error := standing.last_error:
        rows.append(("last error", error.description))
        rows.append(("error codes", ", ".join(error.codes) or "none"))
    if secret := standing.secret:
        there = {True: "exists", False: "not found", None: "forbidden"}[secret.exists]
        rows.append(("Secret", f"{secret.namespace}/{secret.name} {there}"))
    for condition in standing.conditions:
        said = condition.message or condition.reason
        rows.append((f"condition {condition.type}", f"{condition.status}: {said}"))
    return _pairs("State", rows)


def _finalizers(standing: Standing) -> RenderableType:
    if not standing.finalizers:
        return "No finalizers."
    rows = new_table("finalizer", "owner", title="Finalizers")
    for held in standing.finalizers:
        rows.add_row(held.finalizer, Text(held.owner, style="green" if held.ours else ""))
    return rows


def _forcing(forcing: Forcing) -> Iterator[tuple[str, str]]:
    if forcing.place:
        yield "annotation on", forcing.place
        yield "value", "(none)" if forcing.value is None else repr(forcing.value)
    yield "verdict", forcing.verdict
    if forcing.allowed is not None:
        refused = f"no: {forcing.not_allowed_because}"
        yield "allowed by Gardener", "yes" if forcing.allowed else refused
        yield "error codes of the shoot", ", ".join(forcing.shoot_codes) or "none"
    if forcing.own_codes and not forcing.allowed:
        yield "codes here that would allow it", ", ".join(forcing.own_codes)


def _removal(removal: Removal | None) -> Iterator[RenderableType]:
    if removal is None:
        return
    if removal.own_way:
        yield (
            f"{removal.actuator} overrides force_delete: "
            "its effects may differ from these declared ones."
        )
    rows = new_table("object", "stripped", "remaining", title="A force deletion would delete")
    for one in removal.seed_objects:
        name = f"{one.resource} {one.name}" + (" (deleting)" if one.deleting else "")
        rows.add_row(name, "\n".join(one.stripped), "\n".join(one.holding))
    yield rows if rows.rows else "A force deletion would delete no object in the seed."
    left = [str(one) for one in removal.left_outside]
    yield _listed("Remaining external resources", left, "nothing")


def _others(explanation: Explanation) -> Iterator[RenderableType]:
    columns = ("webhook", "configuration", "failure policy", "may refuse", "last error")
    hooks = new_table(*columns, title="Webhooks")
    for hook in explanation.webhooks:
        ours = ", of an extension" if hook.ours else ""
        where = f"{hook.configuration} ({'mutating' if hook.mutating else 'validating'}{ours})"
        may = _refusable(hook, deleting=explanation.standing.deleting is not None)
        hooks.add_row(hook.name, where, hook.failure_policy, may, hook.error)
    orphans = new_table("orphan", "outside", "reason", "state", title="Orphans")
    for orphan in explanation.orphans:
        orphans.add_row(orphan.name, str(orphan.resource), orphan.reason, orphan.state)
    warnings = new_table("last", "times", "reason", "message", title="Warnings")
    for event in explanation.warnings:
        warnings.add_row(event.last_seen, str(event.count), event.reason, event.message)
    yield from (table for table in (hooks, orphans, warnings) if table.rows)


def _refusable(hook: Webhook, *, deleting: bool) -> str:
    if deleting and hook.exempts_deletion:
        return "nothing: it exempts objects under deletion"
    text = " and ".join(hook.patches) + (", on conditions" if hook.conditional else "")
    return f"{text}, until the deletion" if hook.exempts_deletion else text


def _asides(notes: Sequence[str], unread: Sequence[Unread]) -> Iterator[RenderableType]:
    lines = [*notes, *map(str, unread), *grant(unread)]
    if lines:
        yield _listed("Notes", lines, "none")


def _age(deleting: Deleting | None) -> str:
    return "" if deleting is None else age(deleting.seconds)


def _listed(title: str, lines: Sequence[str], none: str) -> Text:
    text = Text(f"{title}:", style="bold")
    if not lines:
        return text.append(f" {none}", style="not bold")
    return text.append("".join(f"\n  - {line}" for line in lines), style="not bold")


def _pairs(title: str, rows: Iterator[tuple[str, str]] | Sequence[tuple[str, str]]) -> Table:
    pairs = Table(
        title=title, title_justify="left", title_style="bold", show_header=False, box=None
    )
    pairs.add_column(no_wrap=True)
    pairs.add_column(overflow="fold")
    for name, value in rows:
        pairs.add_row(name, value)
    return pairs
