"""Orphans for people: a table that fits into 80 columns. Needs rich."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from rich import box
from rich.table import Table
from rich.text import Text

from generic.reconciler.orphans.kind import Orphan, OrphanState
from generic.reconciler.orphans.verification import Finding
from generic.tools.ages import since

__all__ = ["table"]

_STYLES = {OrphanState.EXISTS: "red", OrphanState.GONE: "green", OrphanState.CLOSED: "dim"}


def table(found: Sequence[Finding], names: Mapping[str, str], now: datetime) -> Table:
    """One row for each, two facts to a cell; `names` are what they are shown as."""
    rows = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for first, second in (
        ("name", "age"),
        ("resource type", "id or tags"),
        ("shoot", "region"),
        ("state", "reason"),
    ):
        rows.add_column(f"{first}\n{second}", overflow="fold", no_wrap=first == "state")
    for finding in found:
        orphan, spec = finding.orphan, finding.orphan.spec
        where = f"{spec.shoot}\n{spec.region}"
        name = f"{names[orphan.metadata.name]}\n{since(spec.recorded_at, now)}"
        rows.add_row(Text(name), Text(_what(finding)), Text(where), _state(orphan))
    return rows


def _what(finding: Finding) -> str:
    spec = finding.orphan.spec
    tags = ", ".join(f"{key}={value}" for key, value in sorted(spec.tags.items()))
    lines = [spec.resource_type, spec.id or tags or "of unknown id"]
    return "\n".join([*lines, f"! {finding.problem}"] if finding.problem else lines)


def _state(orphan: Orphan) -> Text:
    text = Text(orphan.state.value, style=_STYLES.get(orphan.state, ""))
    return text.append(f"\n{orphan.spec.reason}", style="default")
