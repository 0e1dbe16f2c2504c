"""Rules about an object as the API server shows it; pure.

The Report names the object that breaks a rule, and the number that repeats its input.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import quote

import attrs

from actuator.meta import Raw
from generic.testing.drill.judge import Finding
from generic.testing.garden import error_of
from tests.adversary.inputs import MARK, Input
from tests.adversary.texts import shallow
from tests.adversary.values import BUDGET, CONDITION

__all__ = [
    "GRACE",
    "KEEPS",
    "PATIENCE",
    "Report",
    "is_blocked",
    "is_configuration",
    "is_shown",
    "leaks",
    "problems_of",
    "read",
    "said",
]

KEEPS = ("delete raises", "delete returns", "delete tries")
_FAILS = ("reconcile raises", "reconcile returns", "validate", "migrate")
_INTERNAL = re.compile(r"\b[A-Z]\w*(Error|Exception)\b|Traceback")
_MAX_TEXT = 8192
PATIENCE = 20.0
GRACE = 5.0
"""Seconds that a forced deletion may take beyond its budget."""
_LISTED = 10
_RULES = {
    "served": "Each bystander is served within 20 s",
    "budget": f"A forced deletion ends within {BUDGET + GRACE:g} s",
    "shown": "The object is handled, or shows an error",
    "kept": "The finalizer stays where cleanup did not succeed",
    "orphan": "An Orphan records what a forced deletion may leave",
    "sentence": "An error is a sentence of at most 8 KiB",
    "memory": "The memory stays within 64 MiB of its start",
    "alive": "The manager and all of its threads are alive",
    "secret": "No part of a Secret leaves",
    "kubeconfig": "A kubeconfig is refused, or means the same to every reader",
    "forgotten": "No object is forgotten while etcd has it with our finalizer",
    "finished": "An object is finished once the API server's answers are right",
    "reason": "The reason of a blocked deletion is that of the answer",
    "tenant": "A request to a tenant's server ends in time, in bounded memory, with our error",
    "review": "A request to the webhook server is answered, and disturbs no other",
    "alone": "An object is served by the actuator that selects it, and by no other",
    "released": "A deleted object with our finalizer is released where it is selected",
    "certificates": "A Secret of webhook certificates is read or refused",
    "rate": "Other writers do not set the rate of attempts",
}


@attrs.define(str=False)
class Report:
    """Broken rules with their problems, and counts of the inputs."""

    say: Callable[[str], None] = attrs.field(default=lambda _text: None)
    """Receives the first violations of each rule as they are found."""
    problems: defaultdict[str, list[str]] = attrs.field(factory=lambda: defaultdict(list))
    counts: Counter[str] = attrs.field(factory=Counter)

    def complain(self, rule: str, what: object, problem: str) -> None:
        """Records that a rule was broken. Raises KeyError for none of the rules."""
        assert _RULES[rule]
        self.problems[rule].append(f"{what}: {problem[:600]}")
        if len(self.problems[rule]) <= _LISTED:
            self.say(f"{rule}: {self.problems[rule][-1]}")

    def __str__(self) -> str:
        broken = {rule: len(problems) for rule, problems in self.problems.items()}
        return f"{dict(self.counts)}; broken: {broken or 'nothing'}"

    @property
    def findings(self) -> list[Finding]:
        """One for each rule."""
        return [
            Finding(rule=rule, title=title, problems=tuple(self.problems.get(rule, ())))
            for rule, title in _RULES.items()
        ]


def problems_of(one: Input, obj: Raw | None) -> Iterator[tuple[str, str]]:
    """The rules that a living object breaks, and how."""
    error = error_of(obj) if obj is not None else None
    if obj is None or not is_shown(one, obj):
        yield "shown", f"nothing is shown: {said(obj)}"
    elif one.unreadable and not is_configuration(obj):
        yield "shown", f"ERR_CONFIGURATION_PROBLEM is missing: {said(obj)}"
    elif one.place.startswith(_FAILS) and not error:
        yield "shown", f"no error: {said(obj)}"
    elif one.place == "reconcile states" and not error and not obj["status"].get("providerStatus"):
        yield "shown", f"the status was not written, and nothing says so: {said(obj)}"
    if one.deep and obj and not one.held and one.kind.finalizer in _finalizers(obj):
        yield "kept", "an unreadable object has our finalizer"
    text = str(error.get("description")) if error else ""
    if len(text.encode(errors="replace")) > _MAX_TEXT or (not one.place and _INTERNAL.search(text)):
        yield "sentence", f"{len(text)} characters: {text}"


def is_shown(one: Input, obj: Raw | None) -> bool:
    """Whether an attempt is over, or (where one waits or hangs) is shown to run."""
    if obj is None or error_of(obj):
        return obj is None or not one.unreadable or is_configuration(obj)
    state = ((obj.get("status") or {}).get("lastOperation") or {}).get("state")
    ready = _condition(obj, "Ready")
    checked = one.place != "check returns" or one.kind.name != "Infrastructure"
    if not checked and not _condition(obj, CONDITION):
        return False
    if one.place in ("reconcile waits", "reconcile hangs"):
        return bool(state or ready)
    return state == "Succeeded" or ready.get("status") == "True"


def is_blocked(one: Input, obj: Raw | None) -> bool:
    """Whether the object is gone, or shows that its deletion is blocked, and how often."""
    if obj is None:
        return True
    blocked = _condition(obj, "DeletionBlocked")
    error = error_of(obj)
    if ((obj.get("status") or {}).get("lastOperation") or {}).get("type") == "Migrate":
        return error is not None  # it is to be migrated first
    if one.place == "delete tries":  # a status that moves on
        shown = f"{blocked.get('message')}", f"{error}"
        return all(re.search(r"try [2-9]", text) for text in shown)
    return blocked.get("status") == "True" and error is not None


def is_configuration(obj: Raw) -> bool:
    return "ERR_CONFIGURATION_PROBLEM" in ((error_of(obj) or {}).get("codes") or ())


def _condition(obj: Raw, type_: str) -> Raw:
    conditions = (obj.get("status") or {}).get("conditions") or []
    return next((condition for condition in conditions if condition.get("type") == type_), {})


def _finalizers(obj: Raw) -> Sequence[str]:
    return obj.get("metadata", {}).get("finalizers") or ()


def said(obj: Raw | None) -> str:
    if obj is None:
        return "the object is gone"
    status = obj.get("status") or {}
    fields = {name: status.get(name) for name in ("lastOperation", "lastError", "conditions")}
    return json.dumps({"finalizers": _finalizers(obj), **fields})


def read(text: str | bytes) -> Raw:
    """A JSON object, with null for values nested too deeply to be read."""
    try:
        found: Raw = json.loads(text)
    except RecursionError:
        found = json.loads(shallow(text if isinstance(text, str) else text.decode()))
    return found


def leaks(text: bytes) -> bool:
    """Whether 8 bytes of a marked Secret stand there: plain, URL-encoded, or in base64."""
    return any(form in text for form in _FORMS)


def _forms() -> Iterator[bytes]:
    for at in range(len(MARK) - 7):
        part = MARK[at : at + 8]
        yield from (part.encode(), quote(part, safe="").encode())
        for shift in range(3):
            encoded = base64.b64encode(bytes(shift) + part.encode())
            yield encoded[-(-shift * 8 // 6) : (shift + 8) * 8 // 6]


_FORMS = tuple(_forms())
