"""Manifests for the shoot. Deploying them by ManagedResources does not belong here. Pure."""

import hashlib
from collections.abc import Sequence

from actuator.meta import Raw
from generic.library.manifests import manifest

_NAME = "network-filter"
_WHERE = _NAME, "kube-system"
_LABELS = {"app.kubernetes.io/name": _NAME}


def manifests(blocked: Sequence[str], image: str) -> list[Raw]:
    """Return the list of blocked ranges, and a program on each node that reads it."""
    text = "".join(f"{one}\n" for one in blocked)
    return [
        manifest("v1", "ConfigMap", *_WHERE, data={"blocked": text}),
        _daemon_set(image, hashlib.sha256(text.encode()).hexdigest()),
    ]


def _daemon_set(image: str, checksum: str) -> Raw:
    """Return the program; a changed list changes `checksum`, which replaces the pods."""
    annotations = {f"checksum/configmap-{_NAME}": checksum}
    mount = {"name": "blocked", "mountPath": "/etc/network-filter"}
    pod = {
        "hostNetwork": True,
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": _NAME, "image": image, "volumeMounts": [mount]}],
        "volumes": [{"name": "blocked", "configMap": {"name": _NAME}}],
    }
    template = {"metadata": {"labels": _LABELS, "annotations": annotations}, "spec": pod}
    spec = {"selector": {"matchLabels": _LABELS}, "template": template}
    return manifest("apps/v1", "DaemonSet", *_WHERE, labels=_LABELS, spec=spec)
