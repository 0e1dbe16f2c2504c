"""The Helm chart that installs an extension: its files, as text, made from a Manager.

Pure; writing them is the command's business, the Deployment that of `deployment`, what happens
before an installation is removed that of `hook`. Manifests are
data, with Go templates only where an installation must be able to differ; all of those values
stand in values.yaml. What gardenlet and gardener-operator inject (`.gardener`) is used where it
is there, and never needed. Nothing in a chart is secret.

Sources: Gardener documentation, "Network Policies In Seeds" and "High Availability of Deployed
Components"; Kubernetes documentation, "Specifying a Disruption Budget".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import attrs

from actuator.errors import ConfigurationError
from actuator.meta import Raw
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.manager.rbac import manifests
from generic.tools.packaging import deployment, hook
from generic.tools.packaging.definitions import DEFAULT, definition_templates
from generic.tools.packaging.text import switched, yaml_text

__all__ = ["OPTIONS", "Chart", "chart_files"]

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
_NUMBER = "(0|[1-9][0-9]*)"
_VERSION = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
_NAMESPACE = "{{ .Release.Namespace }}"
_SCRAPE = "networking.resources.gardener.cloud/from-all-seed-scrape-targets-allowed-ports"
OPTIONS = Options(
    leader_election=True,
    leader_election_namespace=_NAMESPACE,
    heartbeat_namespace=_NAMESPACE,
    ignore_operation_annotation=True,
)
"""Of a manager whose chart is written: its roles allow what any values.yaml may ask for."""


def _check_name(_chart: Chart, _attribute: object, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"{name!r} cannot name an extension: at most 40 lower-case letters, digits and hyphens"
        )


def _check_version(_chart: Chart, _attribute: object, version: str) -> None:
    if not _VERSION.fullmatch(version):
        raise ConfigurationError(
            f"{version!r} is no version of a chart: Helm wants MAJOR.MINOR.PATCH (SemVer 2)"
        )


@attrs.frozen(kw_only=True)
class Chart:
    """What is installed: `extension` is the MODULE:OBJECT that the image runs, for `types`.

    Raises ConfigurationError for a name or a version that Kubernetes or Helm would not take.
    """

    name: str = attrs.field(validator=_check_name)
    extension: str
    image: str
    """Where the image is: REPOSITORY, REPOSITORY:TAG, or REPOSITORY@DIGEST."""
    version: str = attrs.field(default="0.1.0", validator=_check_version)
    types: tuple[str, ...] = ()
    extension_classes: tuple[str, ...] = ()
    """The classes that installations in seeds serve; none: shoot."""


def chart_files(manager: Manager, chart: Chart) -> dict[str, str]:
    """Every file of the chart: its path below the chart's folder, and its text.

    `manager` has `OPTIONS`.
    """
    pods = deployment.spec(chart.name, chart.extension, chart.types, manager.options)
    images = {"images_overwrite.yaml": deployment.IMAGES}
    single = {
        "deployment": _manifest(chart, "apps/v1", "Deployment", spec=pods),
        "service": _service(chart),
        "serviceaccount": _manifest(chart, "v1", "ServiceAccount"),
        "poddisruptionbudget": _disruption_budget(chart),
        "configmap": _manifest(chart, "v1", "ConfigMap", data=images),
    }
    files = {f"templates/{name}.yaml": yaml_text(manifest) for name, manifest in single.items()}
    return {
        "Chart.yaml": yaml_text(_about(chart)),
        "values.yaml": yaml_text(_values(chart, manager)),
        **files,
        **dict(definition_templates(manager)),
        **dict(_roles(manager, chart)),
        "templates/drain.yaml": switched("drain.enabled", yaml_text(_drain(chart))),
    }


def _roles(manager: Manager, chart: Chart) -> Iterator[tuple[str, str]]:
    """One template for each Role and binding.

    Gardener keeps one object of a kind and name per template, whatever their namespaces are
    (`pkg/chartrenderer`, `AsSecretData`).
    """
    # One chart may be installed twice in a cluster, and what has no namespace must not collide.
    need = (manager, f"{chart.name}-{_NAMESPACE}", chart.name, _NAMESPACE)
    both = zip(manifests(*need), manifests(*need, watch_all=False), strict=True)
    for number, (more, less) in enumerate(both):
        text = switched("ignoreOperationAnnotation", yaml_text(more), yaml_text(less))
        yield f"templates/rbac-{number}.yaml", text


def _about(chart: Chart) -> Raw:
    return {
        "apiVersion": "v2",
        "name": chart.name,
        "description": f"The Gardener extension {chart.name}",
        "type": "application",
        "version": chart.version,
        "appVersion": chart.version,
    }


def _values(chart: Chart, manager: Manager) -> Raw:
    """What an installation can change, with its defaults."""
    repository, tag = _split_image(chart.image)
    image = {"repository": repository, "tag": tag or chart.version, "pullPolicy": "IfNotPresent"}
    return {
        "replicas": 1,
        "image": image,
        "resources": {
            "requests": {"cpu": "50m", "memory": "128Mi"},
            "limits": {"memory": "1Gi"},
        },
        "priorityClassName": "gardener-system-900",
        "logLevel": "info",
        "logFormat": "json",
        "metricsPort": 8080,
        "healthPort": 8081,
        "maxConcurrentReconciles": 5,
        "ignoreOperationAnnotation": False,
        "controllers": [],
        "extensionClasses": list(chart.extension_classes),
        "runtimeCluster": {
            "controllers": deployment.runtime_controllers(manager),
            "extensionClasses": ["garden"],
        },
        "crds": DEFAULT,
        "heartbeat": {"renewIntervalSeconds": 30},
        "drain": hook.VALUES,
        "networkLabels": deployment.networks(manager),
        "env": [],
        "imageVectorOverwrite": {"images": []},
    }


def _split_image(image: str) -> tuple[str, str]:
    """Repository and tag, or digest; a colon before the last slash belongs to a port."""
    repository, at, digest = image.partition("@")
    if at:
        return repository, digest
    host, slash, name = image.rpartition("/")
    name, _, tag = name.partition(":")
    return f"{host}{slash}{name}", tag


def _manifest(
    chart: Chart, api_version: str, kind: str, *, annotations: Raw | None = None, **parts: Any
) -> Raw:
    metadata: Raw = {
        "name": chart.name,
        "namespace": _NAMESPACE,
        "labels": {**deployment.labels(chart.name), deployment.HIGH_AVAILABILITY: "controller"},
    }
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}


def _service(chart: Chart) -> Raw:
    """Where the seed's Prometheus scrapes; its annotation opens the network policies for that."""
    port = {"name": "metrics", "port": "{{ .Values.metricsPort }}", "protocol": "TCP"}
    ports = '[{"protocol":"TCP","port":{{ .Values.metricsPort }}}]'
    return _manifest(
        chart,
        "v1",
        "Service",
        annotations={_SCRAPE: ports},
        spec={"type": "ClusterIP", "selector": deployment.labels(chart.name), "ports": [port]},
    )


def _drain(chart: Chart) -> Raw:
    """What keeps an installation from being removed under objects that need it."""
    spec = hook.spec(chart.name, chart.extension, chart.types)
    job = _manifest(chart, "batch/v1", "Job", annotations=hook.ANNOTATIONS, spec=spec)
    job["metadata"]["name"] = hook.name(chart.name)
    return job


def _disruption_budget(chart: Chart) -> Raw:
    spec = {
        "maxUnavailable": 1,
        "selector": {"matchLabels": deployment.labels(chart.name)},
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }
    return _manifest(chart, "policy/v1", "PodDisruptionBudget", spec=spec)
