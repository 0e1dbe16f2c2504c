"""Refusals: the reason why an API server did not execute a request, and its remedy. Pure.

A status alone does not tell: 403 is the answer of RBAC, of a ResourceQuota, of a policy, and for a
terminating namespace. Sources: the messages of kube-apiserver's authorizers and admission plugins,
which tests cause; Kubernetes documentation, "Admission Control".

Only the denial of a webhook and a missing CRD have a code of Gardener (`errorinfo`).
ERR_INFRA_QUOTA_EXCEEDED and ERR_INFRA_UNAUTHORIZED mean the user's cloud account, and gardenlet
retries no Shoot with them; a quota, policy or role of the seed is for its operator to correct.
"""

import re

from actuator import errors

DENIED = re.compile(r'^[^"]*admission webhook "[^"]+" denied')
_NO = r'^[^"]*(?:"[^"]*" )?(?:is )?forbidden: '
"""Anchored, as the others: a message can quote values of tenants."""
_TEXTS = (
    (rf'{DENIED.pattern}|^[^"]*failed calling webhook "', "WebhookDenied"),
    (rf"{_NO}(\w+AdmissionPolicy '|violates PodSecurity )", "PolicyDenied"),
    (f"{_NO}(exceeded|failed|status unknown for) quota: ", "QuotaExceeded"),
    (f"{_NO}unable to create new content in namespace ", "NamespaceTerminating"),
    (f'{_NO}User "system:anonymous" cannot ', "Unauthorized"),
    (rf'{_NO}([Uu]ser ".{{1,1024}}" (cannot |\(gro)|cannot set blockOwnerDel)', "Forbidden"),
    (_NO, "AdmissionDenied"),
)
_KNOWN = [(re.compile(text), reason) for text, reason in _TEXTS]
_MISSING = re.compile(
    rf'{_NO}[Uu]ser ".{{1,1024}}?" cannot ([a-z]+) resource "([a-z0-9./-]+)" '
    r'in API group "([\w.-]*)"'
)
_REQUESTED = re.compile(r"\w+ /apis/([\w.-]+/\w+)/")
_CLASSES = (
    (errors.Forbidden, "Forbidden"),
    (errors.Unauthorized, "Unauthorized"),
    (errors.Invalid, "RefusedByAPIServer"),
    (errors.ShootUnreachable, "ShootUnreachable"),
    (errors.Unavailable, "APIServerUnavailable"),
)
REMEDIES = {
    "WebhookDenied": "correct or remove the webhook, or restore its server",
    "PolicyDenied": "change the object, or correct or remove the policy",
    "QuotaExceeded": "raise the ResourceQuota, or delete objects that it counts",
    "NamespaceTerminating": "nothing can be created there until the namespace is created again",
    "Unauthorized": "renew the credentials in the kubeconfig, or the token of the ServiceAccount",
    "Forbidden": "grant the permission; for the seed, `actuator rbac` prints the roles",
    "AdmissionDenied": "change the object, or the limits of an admission plugin (LimitRanger)",
    "NotServed": "install the CRD of this version, from its controller or from `actuator crds`",
    "NamespaceMissing": "create the namespace again: its objects still exist",
    "UnexpectedAnswer": "check proxies before the API server, and the versions that the CRD serves",
}
"""By reason; without one the message says what to do."""


def reason_of(error: errors.ApiError, text: str) -> str:
    """Return the reason of an error with this text in one CamelCase word, or ""."""
    if error.reason == errors.NotServed.__name__:
        return error.reason
    if isinstance(error, errors.NotFound):
        return "SecretMissing" if "/secrets/" in text else ""
    for known, reason in _KNOWN:
        if known.search(text):
            return reason
    if error.status == 404 and error.about.startswith("namespaces/"):
        return "NamespaceMissing"
    if error.status == 404 or (isinstance(error, errors.Forbidden) and not error.reason):
        return "UnexpectedAnswer"
    return next((reason for cls, reason in _CLASSES if isinstance(error, cls)), "")


def remedy_for(reason: str, text: str) -> str:
    """Return the remedy for an error with this text; for RBAC with the permission as code."""
    missing = _MISSING.match(text) if reason == "Forbidden" else None
    if missing is None:
        return REMEDIES.get(reason, "")
    verb, resource, group = missing.groups()
    requested = _REQUESTED.match(text)
    version = f"{group}/v1" if group else "v1"
    if requested and requested[1].startswith(f"{group}/"):
        version = requested[1]
    code = f'Resource("{version}", "{resource}").permission("{verb}")'
    remedy = f"add {code} to the `permissions` of the actuator, and apply `actuator rbac`"
    return f"grant the permission; for the seed, {remedy}"


def explained(error: errors.ApiError, **remedies: str) -> str:
    """Return the message with its remedy; `remedies` by reason replace the general ones."""
    remedy = {**REMEDIES, **remedies}.get(reason_of(error, error.message), "")
    return f"{error}; {remedy}" if remedy else str(error)
