"""The output of `explain` for a Shoot. Needs rich."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from generic.tools.cli.explain_page import asides, forcing_rows, listed, orphan_table, page, pairs
from generic.tools.cli.screen import age, new_table
from generic.tools.explain.facts import Standing
from generic.tools.explain.shoot import ReportedShoot, SeedPart, ShootExplanation


def shoot_page(explanation: ShootExplanation) -> RenderableType:
    """Return the page for a Shoot."""
    shoot = explanation.shoot
    seed = explanation.seed
    head = f"Shoot {shoot.namespace}/{shoot.name}, uid {shoot.uid}"
    errors = [
        f"{error.description} [{', '.join(error.codes) or 'no code'}]"
        + (f", task {error.task_id}" if error.task_id else "")
        for error in shoot.status.last_errors
    ]
    parts = [
        Text(head, style="bold"),
        pairs("State", _state(shoot)),
        listed("Last errors", errors, "none"),
        pairs("Force deletion", forcing_rows(shoot.forcing)),
        *_objects(shoot, seed),
        listed("Next", [explanation.next], ""),
        listed("Actions", explanation.actions, "none"),
        *asides(seed.notes, seed.overview.unread if seed.overview else ()),
    ]
    return Group(*(line for part in parts for line in (part, Text())))


def _state(shoot: ReportedShoot) -> Iterator[tuple[str, str]]:
    last = shoot.status.last_operation
    deleting = shoot.deleting
    yield "seed", shoot.seed or "none"
    yield "namespace in the seed", shoot.status.technical_id or "none"
    if last is not None:
        yield "last operation", f"{last.type} {last.state}, {last.progress} %"
        yield "last update", last.last_update_time
        yield "description", last.description
    since = f"for {age(deleting.seconds)}, since {deleting.timestamp}" if deleting else "no"
    yield "terminating", since
    yield "deletion confirmed", "yes" if shoot.confirmed else "no"
    for condition in shoot.status.conditions:
        if condition.status != "True":
            yield (
                f"condition {condition.type}",
                f"{condition.status}: {condition.message or condition.reason}",
            )
    for constraint in shoot.status.constraints:
        text = "" if constraint.status == "True" else f": {constraint.message or constraint.reason}"
        yield f"constraint {constraint.type}", f"{constraint.status}{text}"


def _objects(shoot: ReportedShoot, seed: SeedPart) -> Iterator[RenderableType]:
    """Yield a row for each object without blockers, and the page of each other one."""
    if seed.problem:
        missing = f"objects in the seed: {seed.problem}"
        if shoot.status.technical_id:
            missing += f"; --kubeconfig must be that of seed {shoot.seed}"
        yield listed("Missing", [missing], "")
    if seed.overview is not None:
        fine = [object_ for object_ in seed.overview.objects if not object_.blockers]
        yield _fine(fine) if fine else Text("No extension objects without blockers.")
    yield from map(page, seed.explanations)
    if seed.orphans:
        yield orphan_table(seed.orphans, "Open orphans")


def _fine(objects: Sequence[Standing]) -> RenderableType:
    columns = ("kind", "name", "type", "state", "since")
    table = new_table(*columns, title="Extension objects without blockers")
    for object_ in objects:
        last = object_.last_operation
        idle = "no last operation" if object_.deleting is None else "terminating"
        state = f"{last.type} {last.state}" if last else idle
        since = last.last_update_time if last else ""
        table.add_row(
            object_.subject.kind, object_.subject.name, object_.subject.type, state, since
        )
    return table
