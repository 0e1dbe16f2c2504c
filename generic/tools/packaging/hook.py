"""The Job that runs `actuator drain` before `helm uninstall` removes anything.

It waits, under the account and role of the extension, which still runs, and changes nothing. If
something still needs the extension, it fails with a list in its log, and Helm removes nothing.
`helm uninstall --timeout` has to be longer than values.yaml's drain.timeoutSeconds; without the
hook one may go with drain.enabled=false, or `helm uninstall --no-hooks`.

gardenlet and gardener-operator render charts without hooks: they remove an extension only when
none of its objects is left (Gardener documentation, "Registering Extension Controllers").
Sources: Helm documentation, "Chart Hooks"; Kubernetes documentation, "Jobs".
"""

from __future__ import annotations

from collections.abc import Sequence

from actuator.meta import Raw
from generic.tools.packaging import deployment

__all__ = ["ANNOTATIONS", "VALUES", "name", "spec"]

ANNOTATIONS = {
    "helm.sh/hook": "pre-delete",
    "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
}
VALUES = {"enabled": True, "timeoutSeconds": 240}
"""Helm itself waits for 300 s by default."""
_START = 40
"""Seconds for the pod to be scheduled, its image pulled, and for the last look."""


def name(account: str) -> str:
    """The name of the Job; its pod is labelled so, for the manager's Service not to select it."""
    return f"{account}-drain"


def spec(account: str, extension: str, types: Sequence[str]) -> Raw:
    """The spec of the Job, for MODULE:OBJECT `extension` and its service account."""
    arguments = [
        extension,
        *(f"--type={type}" for type in types),
        deployment.classes(),
        "--timeout={{ .Values.drain.timeoutSeconds }}",
    ]
    pod = {
        **deployment.pod(account, deployment.container("drain", "drain", arguments)),
        "restartPolicy": "Never",
    }
    return {
        "backoffLimit": 0,  # its answer is final; only a pod that was evicted is replaced
        "podFailurePolicy": {
            "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]
        },
        "activeDeadlineSeconds": f"{{{{ add .Values.drain.timeoutSeconds {_START} }}}}",
        "template": {"metadata": {"labels": deployment.reaches(name(account))}, "spec": pod},
    }
