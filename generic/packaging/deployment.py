"""The pods of an installed extension, as far as they are the same for all: a Deployment's spec.

What else runs the extension's image is `hook`, from the same pieces.

Sources: Kubernetes documentation, "Pod Security Standards" (restricted) and "Configure Liveness,
Readiness and Startup Probes"; Gardener documentation, "Network Policies In Seeds" and
"Heartbeat Controller".
"""

from __future__ import annotations

from collections.abc import Sequence

from actuator.meta import Raw
from generic.options import Options

__all__ = ["HIGH_AVAILABILITY", "classes", "container", "labels", "pod", "reaches", "spec"]

HIGH_AVAILABILITY = "high-availability-config.resources.gardener.cloud/type"
_RUNTIME = "((.Values.gardener).runtimeCluster)"
_RELEASE = "{{ .Release.Name | quote }}"
_GRACE = 10
"""Seconds for a pod to end after its own shutdown timeout."""
_NOBODY = 65532
_REACHES = {
    "networking.gardener.cloud/to-runtime-apiserver": "allowed",
    "networking.gardener.cloud/to-dns": "allowed",
    "networking.gardener.cloud/to-public-networks": "allowed",
    "networking.gardener.cloud/to-private-networks": "allowed",
    "networking.resources.gardener.cloud/to-all-shoots-kube-apiserver-tcp-443": "allowed",
}
"""Where the network policies of a seed let the pods go: its API server, clouds, and shoots."""


def labels(name: str) -> dict[str, str]:
    """What selects the pods."""
    return {"app.kubernetes.io/name": name, "app.kubernetes.io/instance": _RELEASE}


def spec(name: str, extension: str, types: Sequence[str], options: Options) -> Raw:
    """The spec of the Deployment `name`, which runs MODULE:OBJECT `extension` for these types."""
    return {
        "replicas": "{{ .Values.replicas }}",
        "revisionHistoryLimit": 2,
        "selector": {"matchLabels": labels(name)},
        "template": {
            "metadata": _pod_metadata(name),
            "spec": {
                **pod(name, _manager(name, _arguments(name, extension, types))),
                "terminationGracePeriodSeconds": int(options.shutdown_timeout) + _GRACE,
            },
        },
    }


def pod(account: str, only: Raw) -> Raw:
    """The spec of a restricted pod of this service account, with this container."""
    return {
        "serviceAccountName": account,
        "priorityClassName": _either("priorityClassName", ".Values.priorityClassName"),
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _NOBODY,
            "runAsGroup": _NOBODY,
            "fsGroup": _NOBODY,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [only],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }


def container(name: str, command: str, arguments: Sequence[str]) -> Raw:
    """A container of the extension's image that runs `actuator COMMAND` with these arguments."""
    digest = 'ternary "@" ":" (hasPrefix "sha256:" .Values.image.tag)'
    image = f"{{{{ .Values.image.repository }}}}{{{{ {digest} }}}}{{{{ .Values.image.tag }}}}"
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "{{ .Values.image.pullPolicy }}",
        "command": ["actuator", command],
        "args": list(arguments),
        "env": "{{ toJson .Values.env }}",
        "resources": "{{ toJson .Values.resources }}",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108 - the pod's own
    }


def reaches(name: str) -> dict[str, str]:
    """Labels of pods: what selects them, and where network policies let them go."""
    return {**labels(name), **_REACHES}


def classes() -> str:
    """The flag with the extension classes that this installation serves."""
    garden = f"{{{{ if {_RUNTIME}.enabled }}}}garden{{{{ else }}}}"
    return f'--extension-classes={garden}{{{{ join "," .Values.extensionClasses }}}}{{{{ end }}}}'


def _either(runtime: str, otherwise: str) -> str:
    """What gardener-operator injects in the runtime cluster, else a value of ours."""
    return f"{{{{ {_RUNTIME}.{runtime} | default {otherwise} }}}}"


def _pod_metadata(name: str) -> Raw:
    scraped = {
        "prometheus.io/name": name,
        "prometheus.io/scrape": "true",
        "prometheus.io/port": "{{ .Values.metricsPort | quote }}",
    }
    return {"annotations": scraped, "labels": reaches(name)}


def _arguments(name: str, extension: str, types: Sequence[str]) -> list[str]:
    """The command line: what an installation may change comes from values.yaml."""
    no = "{{ if not .Values.ignoreOperationAnnotation }}no-{{ end }}"
    return [
        extension,
        *(f"--type={type}" for type in types),
        "--leader-election",
        f"--leader-election-id={name}-leader-election",
        "--leader-election-namespace={{ .Release.Namespace }}",
        "--heartbeat-namespace={{ .Release.Namespace }}",
        "--heartbeat-renew-interval-seconds={{ .Values.heartbeat.renewIntervalSeconds }}",
        "--metrics-bind-address=:{{ .Values.metricsPort }}",
        "--health-bind-address=:{{ .Values.healthPort }}",
        "--max-concurrent-reconciles={{ .Values.maxConcurrentReconciles }}",
        f"--{no}ignore-operation-annotation",
        classes(),
        "--log-level={{ .Values.logLevel }}",
        "--log-format={{ .Values.logFormat }}",
    ]


def _manager(name: str, arguments: Sequence[str]) -> Raw:
    return {
        **container(name, "run", arguments),
        "ports": [
            {"name": "metrics", "containerPort": "{{ .Values.metricsPort }}", "protocol": "TCP"},
            {"name": "health", "containerPort": "{{ .Values.healthPort }}", "protocol": "TCP"},
        ],
        "livenessProbe": {**_probe("/healthz"), "failureThreshold": 3, "periodSeconds": 20},
        "readinessProbe": {**_probe("/readyz"), "failureThreshold": 3, "periodSeconds": 10},
    }


def _probe(path: str) -> Raw:
    return {
        "httpGet": {"path": path, "port": "health"},
        "initialDelaySeconds": 5,
        "timeoutSeconds": 5,
    }
