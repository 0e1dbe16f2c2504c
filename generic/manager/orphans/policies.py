"""ValidatingAdmissionPolicies for Orphans: they name who closes one, and keep open ones. Pure.

The chart of an extension has them. Orphans are cluster-scoped and have no owner, so neither the
deletion of a namespace nor the garbage collector deletes any. The deletion of their
CustomResourceDefinition deletes all of them without a request for each, so it needs the same
confirmation. Source: Kubernetes documentation, "Validating Admission Policy".
"""

from collections.abc import Iterable, Iterator

from actuator.meta import Raw
from generic.kube.deleting import CONFIRM_DELETION
from generic.kube.expressions import Expr
from generic.library.webhooks.policies import with_binding
from generic.reconciler.orphans.kind import ORPHANS, OrphanState

CLOSED_BY = "orphans-closed-by"
"""The end of the name of the policy about `status.closedBy`."""
DELETIONS = "orphans-deletions"
DEFINITION = "orphans-definition"
_CLOSED = OrphanState.CLOSED.value
_CONFIRM = f'set its annotation {CONFIRM_DELETION} to "true"'
_OLD = Expr("oldObject")
_CONFIRMED = _OLD.optional("metadata", "annotations", CONFIRM_DELETION).method("orValue", "")
_USER = Expr("request.userInfo.username")


def policies(prefix: str) -> Iterator[Raw]:
    """Yield the policies and their bindings; their names begin with `prefix`."""
    status = _rule("UPDATE", ORPHANS.group, f"{ORPHANS.plural}/status")
    yield from _policy(f"{prefix}-{CLOSED_BY}", status, _about_closing())
    confirmed = _CONFIRMED.equals("true")
    settled = _status(_OLD, "state").relation("in", [OrphanState.GONE.value, _CLOSED])
    text = f"the Orphan is open; close it with `actuator orphans close`, or {_CONFIRM}"
    orphan = _rule("DELETE", ORPHANS.group, ORPHANS.plural)
    yield from _policy(f"{prefix}-{DELETIONS}", orphan, [(settled | confirmed, text)])
    definition = _rule("DELETE", "apiextensions.k8s.io", "customresourcedefinitions")
    definition["resourceNames"] = [str(ORPHANS)]
    text = f"this deletes the Orphans of all extensions; to confirm, {_CONFIRM}"
    yield from _policy(f"{prefix}-{DEFINITION}", definition, [(confirmed, text)])


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
