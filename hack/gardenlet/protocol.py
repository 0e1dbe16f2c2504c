"""The form of a recording: the writes of gardenlet in each flow, without names and times. Pure.

    {"gardener": "v1.149.0", "flows": {"create": {
        "runs": 4,
        "steps": {"Infrastructure": [["create with gardener.cloud/operation=reconcile, …"]]},
        "order": {"ControlPlane": ["Infrastructure"]}}}}

`steps` has, for each kind, the sequence of writes to an object; several sequences if objects
differ. A repeated write is left out: gardenlet retries. `order` has, for each kind, the kinds
whose outcome was there before gardenlet's first write to it, in every run. The outcome is that all
objects of a kind are ready, or migrated. Deletions have an order of their own, under names such as
"deletion of Worker": it begins with the confirmation, and its outcome is that all are gone.
"""

import json
from collections.abc import Mapping, Sequence

from attrs import asdict, field, frozen

from actuator.meta import Raw

DELETION = "deletion of "
Steps = Sequence[str]
Waits = Mapping[str, Sequence[float]]
"""By kind: the seconds for which gardenlet tolerates an error, and for which it waits."""
_WIDTH = 98
_LINES = ",\n"


@frozen
class FlowProtocol:
    """What gardenlet wrote in one flow."""

    runs: int
    steps: Mapping[str, Sequence[Steps]]
    order: Mapping[str, Sequence[str]]


@frozen
class Known:
    """Differences between gardenlet and its simulation that stay, and the reason."""

    reason: str
    differences: Sequence[str]


@frozen
class Recording:
    """The protocol of one gardenlet."""

    gardener: str
    """Its version; empty for the simulation."""
    flows: Mapping[str, FlowProtocol]
    shown_after: Mapping[str, float] = field(factory=dict)
    """By kind: the shortest time in seconds from a request that failed to the Shoot's error."""
    waits: Waits = field(factory=dict)
    known: Sequence[Known] = ()


def read(text: str) -> Recording:
    """Parse a recording. Raises ValueError, KeyError and TypeError for another form."""
    raw = json.loads(text)
    flows = {name: FlowProtocol(**flow) for name, flow in raw["flows"].items()}
    known = [Known(**entry) for entry in raw["known"]]
    return Recording(raw["gardener"], flows, raw["shown_after"], raw["waits"], known)


def written(recording: Recording) -> str:
    """Return the text of a recording: JSON with short lines."""
    return _json(asdict(recording), "") + "\n"


def _json(value: object, indent: str, key: str = "") -> str:
    """Return JSON, after a key, in which a value that fits on a line is on one line."""
    head = f"{indent}{key}"
    text = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (dict, list)) or len(head) + len(text) <= _WIDTH:
        return head + text
    deeper = indent + "  "
    if isinstance(value, dict):
        parts = [_json(item, deeper, f"{json.dumps(name)}: ") for name, item in value.items()]
        return f"{head}{{\n{_LINES.join(parts)}\n{indent}}}"
    return f"{head}[\n{_LINES.join(_json(item, deeper) for item in value)}\n{indent}]"


def sorted_flow(runs: int, steps: Mapping[str, set[tuple[str, ...]]], order: Raw) -> FlowProtocol:
    """Return a flow in the order of names, so that equal flows have equal texts."""
    listed = {kind: [list(step) for step in sorted(steps[kind])] for kind in sorted(steps)}
    return FlowProtocol(runs, listed, {kind: sorted(order[kind]) for kind in sorted(order)})
