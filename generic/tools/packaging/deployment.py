"""The pods of an installed extension, as far as they are the same for all: a Deployment's spec.

What else runs the extension's image is `hook`, from the same pieces.

Sources: Kubernetes documentation, "Pod Security Standards" (restricted) and "Configure Liveness,
Readiness and Startup Probes"; Gardener documentation, "Network Policies In Seeds" and
"Heartbeat Controller".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from actuator import Actuator
from actuator.interface import WrappedActuator
from actuator.meta import ClusterNeed, Raw
from generic.library.healthchecks import SHOOT_ACCESS
from generic.manager.manager import Manager
from generic.manager.options import Options

__all__ = [
    "HIGH_AVAILABILITY",
    "MALLOC",
    "classes",
    "container",
    "labels",
    "networks",
    "pod",
    "reaches",
    "runtime_controllers",
    "spec",
]

HIGH_AVAILABILITY = "high-availability-config.resources.gardener.cloud/type"
MALLOC = {
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": "65536",
    "MALLOC_TRIM_THRESHOLD_": "65536",
}
"""Environment that makes glibc return freed memory to the kernel (glibc manual, "Memory Allocation
Tunables"). By default each thread has an arena, and blocks up to 32 MiB fragment the heap."""

_RUNTIME = "((.Values.gardener).runtimeCluster)"
_SELF_HOSTED = "((.Values.gardener).selfHostedShootCluster)"
_INSTANCE = "app.kubernetes.io/instance"
_RELEASE = "{{ .Release.Name | quote }}"
_GRACE = 10
"""Seconds for a pod to end after its own shutdown timeout."""
_NOBODY = 65532
_TO = "networking.gardener.cloud/to-"
_IMAGES = "{{ $v := .Values.imageVectorOverwrite }}"
IMAGES = _IMAGES + '{{ kindIs "string" $v | ternary $v (toYaml $v) | toJson }}'
"""The text of the image vector that overwrites ours; the value is text or an object."""
_ENV = (
    "{{ $rest := dict " + " ".join(f'"{name}" "{value}"' for name, value in MALLOC.items()) + " }}"
    "{{ range .Values.env }}{{ $rest = omit $rest .name }}{{ end }}{{ $env := list }}"
    '{{ range $k, $v := $rest }}{{ $env = append $env (dict "name" $k "value" $v) }}{{ end }}'
    '{{ $own := dict "name" "IMAGEVECTOR_OVERWRITE" "value" "/images/images_overwrite.yaml" }}'
    "{{ toJson (append (concat $env (.Values.env | default list)) $own) }}"
)
"""MALLOC without the names that values.yaml sets, its entries, and the image vector."""
_SHOOTS = "networking.resources.gardener.cloud/to-all-shoots-kube-apiserver-tcp-443"


def labels(name: str) -> dict[str, str]:
    """What selects the pods."""
    return {"app.kubernetes.io/name": name, _INSTANCE: _RELEASE}


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
    images = {"name": "images", "configMap": {"name": account}}
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
        "volumes": [{"name": "tmp", "emptyDir": {}}, images],
    }


def container(name: str, command: str, arguments: Sequence[str]) -> Raw:
    """A container of the extension's image that runs `actuator COMMAND` with these arguments."""
    tag = '{{ $tag := toJson .Values.image.tag | trimAll `"` }}{{ .Values.image.repository }}'
    image = '{{ ternary "@" ":" (hasPrefix "sha256:" $tag) }}{{ $tag }}'
    mounts = [("tmp", "/tmp"), ("images", "/images")]  # noqa: S108 - the pod's own
    return {
        "name": name,
        "image": f"{tag}{image}",
        "imagePullPolicy": "{{ .Values.image.pullPolicy }}",
        "command": ["actuator", command],
        "args": list(arguments),
        "env": _ENV,
        "resources": "{{ toJson .Values.resources }}",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": name, "mountPath": path} for name, path in mounts],
    }


def reaches(name: str) -> dict[str, str]:
    """Labels of a pod: what selects it, and what lets it reach DNS and the seed's API server."""
    base = {f"{_TO}runtime-apiserver": "allowed", f"{_TO}dns": "allowed"}
    return {**labels(name), **base}


def networks(manager: Manager) -> dict[str, str]:
    """Labels that let the pods reach what this extension needs besides, for values.yaml.

    Networks outside the cluster, if an actuator declares external resources; the API servers of
    shoots, if a health check declares SHOOT_ACCESS.
    """
    outside = any(_is_outside(one.actuator) for one in manager.registrations)
    shoots = any(SHOOT_ACCESS in one.checks.permissions for one in manager.health_checks)
    needs = {f"{_TO}public-networks": outside, f"{_TO}private-networks": outside, _SHOOTS: shoots}
    return {label: "allowed" for label, needed in needs.items() if needed}


def _is_outside(actuator: Actuator[Any]) -> bool:
    if isinstance(actuator, WrappedActuator):
        return _is_outside(actuator.inner)
    return type(actuator).external_resources is not Actuator.external_resources


def classes() -> str:
    """The flag with the extension classes that this installation serves."""
    return _listed("extension-classes", "extensionClasses")


def runtime_controllers(manager: Manager) -> list[str]:
    """The controllers that can run in a garden runtime cluster, where there are no Clusters."""
    served = [name for name, kind in manager.kinds if kind.cluster is not ClusterNeed.REQUIRED]
    return [*served, *(one.name for one in manager.runnables)]


def _listed(flag: str, value: str) -> str:
    """A flag with the names in values.yaml; gardener-operator's installations have their own."""
    runtime, other = (
        f'{{{{ join "," .Values.{path}{value} }}}}' for path in ("runtimeCluster.", "")
    )
    return f"--{flag}={{{{ if {_RUNTIME}.enabled }}}}{runtime}{{{{ else }}}}{other}{{{{ end }}}}"


def _either(runtime: str, otherwise: str) -> str:
    """What gardener-operator injects in the runtime cluster, else a value of ours."""
    return f"{{{{ {_RUNTIME}.{runtime} | default {otherwise} }}}}"


def _pod_metadata(name: str) -> Raw:
    scraped = {
        "prometheus.io/name": name,
        "prometheus.io/scrape": "true",
        "prometheus.io/port": "{{ .Values.metricsPort | quote }}",
        "checksum/images": "{{ toJson .Values.imageVectorOverwrite | sha256sum }}",
    }
    own = {key: f'"{value}"' for key, value in reaches(name).items()} | {_INSTANCE: ".Release.Name"}
    pairs = " ".join(f'"{key}" {value}' for key, value in own.items())
    merged = f"{{{{ toJson (merge (dict {pairs}) (.Values.networkLabels | default dict)) }}}}"
    return {"annotations": scraped, "labels": merged}


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
        _listed("controllers", "controllers"),
        f"--self-hosted-shoot-cluster={{{{ {_SELF_HOSTED} | default false }}}}",
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
