"""The output of `explain`: a page for one object, a list for a namespace. Needs rich."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from actuator.conditions import find_condition
from generic.reconciler.status import READY
from generic.tools.cli.screen import age, new_table
from generic.tools.explain import facts
from generic.tools.explain.standing import is_cause


def page(explanation: facts.Explanation) -> RenderableType:
    """Return the page for one object."""
    standing = explanation.standing
    subject = standing.subject
    type_ = f"type {subject.type}" if subject.type else "without type"
    finalizers = [f"{held.finalizer}: {held.owner}" for held in standing.finalizers]
    parts = [
        Text(f"{subject}, {type_}, uid {subject.uid}", style="bold"),
        listed("Blockers", standing.blockers, "nothing"),
        _standing(standing),
        listed("Finalizers", finalizers, "none"),
        pairs("Force deletion", forcing_rows(standing.forcing)),
        *_removal(explanation.removal),
        *_others(explanation),
        *asides(explanation.notes, explanation.unread),
    ]
    return Group(*(line for part in parts for line in (part, Text())))


def summary(overview: facts.Overview) -> RenderableType:
    """Return the list of the objects of a namespace, each with its blockers."""
    head = f"Namespace {overview.namespace}"
    if overview.deleting is not None:
        head += f", terminating for {age(overview.deleting.seconds)}"
    objects = [line for standing in overview.objects for line in _row(standing)]
    remarks = asides((), overview.unread)
    found = objects or ["No extension objects."]
    return Group(Text(head, style="bold"), *overview.remaining, Text(), *found, *remarks)


def _row(standing: facts.Standing) -> Iterator[RenderableType]:
    subject = standing.subject
    parts = [f"next operation {standing.decision.operation or 'none'}", _result(standing)]
    if standing.deleting is not None:
        parts.append(f"terminating for {age(standing.deleting.seconds)}")
    yield Text.assemble((f"{subject.kind} {subject.name}", "bold"), f": {', '.join(parts)}")
    yield from map(_bullet, standing.blockers)


def _result(standing: facts.Standing) -> str:
    """Return the result of the last attempt: own kinds have a condition, and no lastOperation."""
    if last := standing.last_operation:
        return f"last {last.type} {last.state}"
    ready = find_condition(standing.conditions, READY)
    return f"{READY} {ready.status}" if ready else "no last operation"


def _standing(standing: facts.Standing) -> RenderableType:
    decision = standing.decision
    operation = f"{decision.operation or 'nothing'}{', blocked' if decision.blocked else ''}"
    rows = [("next operation", f"{operation}: {decision.why}")]
    if standing.deleting is not None:
        since = standing.deleting.timestamp
        rows.append(("terminating", f"for {age(standing.deleting.seconds)}, since {since}"))
    if last := standing.last_operation:
        rows.append(("last operation", f"{last.type} {last.state}, {last.progress} %"))
        rows.append(("last attempt", last.last_update_time))
        if standing.last_error is None:
            rows.append(("description", last.description))
    if error := standing.last_error:
        if not any(is_cause(error, blocker) for blocker in standing.blockers):
            rows.append(("last error", error.description))
        rows.append(("error codes", ", ".join(error.codes) or "none"))
    if secret := standing.secret:
        there = {True: "exists", False: "not found", None: "forbidden"}[secret.exists]
        rows.append(("Secret", f"{secret.namespace}/{secret.name} {there}"))
    for condition in standing.conditions:
        message = condition.message or condition.reason
        text = "see Blockers" if _is_blocker(message, standing) else message
        rows.append((f"condition {condition.type}", f"{condition.status}: {text}"))
    return pairs("State", rows)


def forcing_rows(forcing: facts.Forcing) -> Iterator[tuple[str, str]]:
    """Yield the rows about the force deletion."""
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


def _removal(removal: facts.ForcedRemoval | None) -> Iterator[RenderableType]:
    if removal is None:
        return
    if removal.own_way:
        yield (
            f"{removal.actuator} overrides force_delete: "
            "its effects may differ from these declared ones."
        )
    rows = new_table("object", "stripped", "remaining", title="A force deletion would delete")
    for seed_object in removal.seed_objects:
        name = f"{seed_object.resource} {seed_object.name}" + (
            " (deleting)" if seed_object.deleting else ""
        )
        rows.add_row(name, "\n".join(seed_object.stripped), "\n".join(seed_object.holding))
    yield rows if rows.rows else "A force deletion would delete no object in the seed."
    left = [str(item) for item in removal.remaining_resources]
    yield listed("Remaining external resources", left, "nothing")


def _others(explanation: facts.Explanation) -> Iterator[RenderableType]:
    columns = ("webhook", "configuration", "failure policy", "may refuse", "last error")
    hooks = new_table(*columns, title="Webhooks")
    for hook in explanation.webhooks:
        ours = ", of an extension" if hook.ours else ""
        where = f"{hook.configuration} ({'mutating' if hook.mutating else 'validating'}{ours})"
        may = _refusable(hook, deleting=explanation.standing.deleting is not None)
        hooks.add_row(hook.name, where, hook.failure_policy, may, hook.error)
    orphans = orphan_table(explanation.orphans, "Orphans")
    warnings = new_table("last", "times", "reason", "message", title="Warnings")
    for event in explanation.warnings:
        known = _is_blocker(event.message, explanation.standing)
        text = "see Blockers" if known else event.message
        warnings.add_row(event.last_seen, str(event.count), event.reason, text)
    yield from (table for table in (hooks, orphans, warnings) if table.rows)


def orphan_table(orphans: Sequence[facts.Orphaned], title: str) -> Table:
    """Return the table of these Orphans."""
    table = new_table("orphan", "outside", "reason", "state", title=title)
    for orphan in orphans:
        table.add_row(orphan.name, str(orphan.resource), orphan.reason, orphan.state)
    return table


def _refusable(hook: facts.CalledWebhook, *, deleting: bool) -> str:
    if deleting and hook.exempts_deletion:
        return "nothing: it exempts objects under deletion"
    text = " and ".join(hook.patches) + (", on conditions" if hook.conditional else "")
    return f"{text}, until the deletion" if hook.exempts_deletion else text


def asides(notes: Sequence[str], unread: Sequence[facts.Unread]) -> Iterator[RenderableType]:
    """Yield the notes and the refused reads, if there are any."""
    lines = [*notes, *map(str, unread), *facts.grant(unread)]
    if lines:
        yield listed("Notes", lines, "none")


def _is_blocker(text: str, standing: facts.Standing) -> bool:
    """Whether the blockers contain the text, so that it need not be repeated."""
    return bool(text) and any(text in blocker for blocker in standing.blockers)


def listed(title: str, lines: Sequence[str], none: str) -> RenderableType:
    """Return a list with its title; `none` is the text of an empty one."""
    text = Text(f"{title}:", style="bold")
    return Group(text, *map(_bullet, lines)) if lines else text.append(f" {none}", "not bold")


def _bullet(line: str) -> RenderableType:
    """Return a line of a list, whose continuation is indented."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column()
    grid.add_column(overflow="fold")
    grid.add_row("-", line)
    return Padding(grid, (0, 0, 0, 2))


def pairs(title: str, rows: Iterator[tuple[str, str]] | Sequence[tuple[str, str]]) -> Table:
    """Return rows of a name and a value with their title."""
    table = Table(
        title=title, title_justify="left", title_style="bold", show_header=False, box=None
    )
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, value)
    return table
