"""ValidatingAdmissionPolicies for records: they name who closes an Orphan, and keep records. Pure.

The chart of an extension has them. Records are cluster-scoped and have no owner, so neither the
deletion of a namespace nor the garbage collector deletes any. The deletion of their
CustomResourceDefinitions deletes all of them without a request for each, so it needs the same
confirmation. No expression knows the time: a ForceDeletionRecord is deleted without a confirmation
only by the extension that serves its object, which keeps it for its retention. Source: Kubernetes
documentation, "Validating Admission Policy".
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import or_

from actuator.meta import Raw
from generic.kube.deleting import CONFIRM_DELETION
from generic.kube.expressions import Expr
from generic.library.webhooks.policies import with_binding
from generic.manager.orphans.ledger import Serving
from generic.reconciler.orphans.forced import FORCE_DELETIONS
from generic.reconciler.orphans.kind import ORPHANS, OrphanState

CLOSED_BY = "orphans-closed-by"
"""The end of the name of the policy about `status.closedBy`."""
DELETIONS = "orphans-deletions"
RECORDS = "force-deletion-records"
DEFINITION = "orphans-definition"
_CLOSED = OrphanState.CLOSED.value
_CONFIRM = f'set its annotation {CONFIRM_DELETION} to "true"'
_OLD = Expr("oldObject")
_CONFIRMED = _OLD.optional("metadata", "annotations", CONFIRM_DELETION).method("orValue", "")
_USER = Expr("request.userInfo.username")


def policies(prefix: str, user: str, served: Sequence[Serving]) -> Iterator[Raw]:
    """Yield the policies and their bindings; their names begin with `prefix`.

    `user` is the name of the extension that serves the objects of `served`, at least one.
    """
    status = _rule("UPDATE", ORPHANS.group, f"{ORPHANS.plural}/status")
    yield from _policy(f"{prefix}-{CLOSED_BY}", status, _about_closing())
    confirmed = _CONFIRMED.equals("true")
    settled = _status(_OLD, "state").relation("in", [OrphanState.GONE.value, _CLOSED])
    text = f"the Orphan is open; close it with `actuator orphans close`, or {_CONFIRM}"
    orphan = _rule("DELETE", ORPHANS.group, ORPHANS.plural)
    yield from _policy(f"{prefix}-{DELETIONS}", orphan, [(settled | confirmed, text)])
    text = f"this deletes the evidence of a force deletion before its retention ended; {_CONFIRM}"
    record = _rule("DELETE", FORCE_DELETIONS.group, FORCE_DELETIONS.plural)
    kept = ~_is_served(served) | _USER.equals(user) | confirmed
    yield from _policy(f"{prefix}-{RECORDS}", record, [(kept, text)])
    definition = _rule("DELETE", "apiextensions.k8s.io", "customresourcedefinitions")
    definition["resourceNames"] = [str(ORPHANS), str(FORCE_DELETIONS)]
    text = f"this deletes the records of all extensions; to confirm, {_CONFIRM}"
    yield from _policy(f"{prefix}-{DEFINITION}", definition, [(confirmed, text)])


def _is_served(served: Sequence[Serving]) -> Expr:
    """Return whether a record is about an object of these actuators, in any API version."""

    def about(field: str) -> Expr:
        return _OLD.optional("spec", "object", field).method("orValue", "")

    def of(item: Serving) -> Expr:
        group = about("apiVersion").method("startsWith", f"{item.kind.group}/")
        same_kind = about("kind").equals(item.kind.name) & group
        return same_kind & about("type").relation("in", [*item.types]) if item.types else same_kind

    return reduce(or_, map(of, served))


def _about_closing() -> Iterator[tuple[Expr, str]]:
    new = Expr("object")
    by = _status(new, "closedBy")
    former = _status(_OLD, "closedBy")
    is_closed = _status(new, "state").equals(_CLOSED)
    was_closed = _status(_OLD, "state").equals(_CLOSED)
    same_note = _status(new, "note").equals(_status(_OLD, "note"))
    yield (
        ~is_closed | was_closed | by.equals(_USER),
        "status.closedBy: expected the name of the user who closes the Orphan",
    )
    yield (
        ~is_closed | ~was_closed | by.equals(former),
        "status.closedBy: cannot be changed while the Orphan is closed; reopen it first",
    )
    yield (
        is_closed | by.equals("") | by.equals(former),
        "status.closedBy: only a closed Orphan has one",
    )
    yield (
        ~is_closed | ~was_closed | same_note | by.equals("") | by.equals(_USER),
        "status.note: can be changed only by the user who closed the Orphan; reopen it first",
    )


def _status(root: Expr, field: str) -> Expr:
    """Return a text in the status, which may be absent."""
    return root.optional("status", field).method("orValue", "")


def _rule(operation: str, group: str, resource: str) -> Raw:
    return {
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": [operation],
        "resources": [resource],
    }


def _policy(name: str, rule: Raw, checks: Iterable[tuple[Expr, str]]) -> tuple[Raw, Raw]:
    spec: Raw = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [
            {"expression": check.text, "message": message, "reason": "Forbidden"}
            for check, message in checks
        ],
    }
    return with_binding(name, spec)
