"""The output of `explain` for a Shoot. Needs rich."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from generic.tools.cli.explain_page import asides, forcing_rows, listed, orphan_table, page, pairs
from generic.tools.cli.screen import age, new_table
from generic.tools.explain.facts import Standing
from generic.tools.explain.shoot import SeedPart, ShootExplanation, ShootState


def shoot_page(explanation: ShootExplanation) -> RenderableType:
    """Return the page for a Shoot."""
    shoot, seed = explanation.shoot, explanation.seed
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


def _state(shoot: ShootState) -> Iterator[tuple[str, str]]:
    last, deleting = shoot.status.last_operation, shoot.deleting
    yield "seed", shoot.seed or "none"
    yield "namespace in the seed", shoot.status.technical_id or "none"
    if last is not None:
        yield "last operation", f"{last.type} {last.state}, {last.progress} %"
        yield "last update", last.last_update_time
        yield "description", last.description
    since = f"for {age(deleting.seconds)}, since {deleting.timestamp}" if deleting else "no"
    yield "terminating", since
    yield "deletion confirmed", "yes" if shoot.confirmed else "no"
    for one in shoot.status.conditions:
        if one.status != "True":
            yield f"condition {one.type}", f"{one.status}: {one.message or one.reason}"
    for one in shoot.status.constraints:
        text = "" if one.status == "True" else f": {one.message or one.reason}"
        yield f"constraint {one.type}", f"{one.status}{text}"


def _objects(shoot: ShootState, seed: SeedPart) -> Iterator[RenderableType]:
    """Yield a row for each object without blockers, and the page of each other one."""
    if seed.problem:
        missing = f"objects in the seed: {seed.problem}"
        if shoot.status.technical_id:
            missing += f"; --kubeconfig must be that of seed {shoot.seed}"
        yield listed("Missing", [missing], "")
    if seed.overview is not None:
        fine = [one for one in seed.overview.objects if not one.blockers]
        yield _fine(fine) if fine else Text("No extension objects without blockers.")
    yield from map(page, seed.explanations)
    if seed.orphans:
        yield orphan_table(seed.orphans, "Open orphans")


def _fine(objects: Sequence[Standing]) -> RenderableType:
    columns = ("kind", "name", "type", "state", "since")
    table = new_table(*columns, title="Extension objects without blockers")
    for one in objects:
        last = one.last_operation
        idle = "no last operation" if one.deleting is None else "terminating"
        state = f"{last.type} {last.state}" if last else idle
        since = last.last_update_time if last else ""
        table.add_row(one.subject.kind, one.subject.name, one.subject.type, state, since)
    return table
