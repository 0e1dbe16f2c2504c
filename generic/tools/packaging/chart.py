"""The Helm chart that installs an extension: its files, as text, generated for a Manager.

Pure; the command writes the files. Most files are templates in the folder `files`, configured by
values.yaml; placeholders such as `@NAME@` are filled in here. Roles and CustomResourceDefinitions
are generated. Values that gardenlet and gardener-operator inject (`.gardener`) are used if
present, and never required. A chart contains no secrets.

Sources: Gardener documentation, "Network Policies In Seeds", "High Availability of Deployed
Components" and "Heartbeat Controller"; Kubernetes documentation, "Pod Security Standards"
(restricted), "Configure Liveness, Readiness and Startup Probes" and "Specifying a Disruption
Budget".
"""

import base64
import gzip
import io
import json
import re
import tarfile
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import attrs
import yaml

from actuator import Actuator
from actuator.errors import ConfigurationError
from actuator.interface import SHOOT_ACCESS, innermost
from actuator.meta import GROUP, ClusterNeed, Object, Raw
from generic.kube.crds import crd
from generic.library.webhooks.configurations import prefixed
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.manager.orphans.policies import policies
from generic.manager.rbac import manifests
from generic.reconciler.orphans import RECORD_KINDS
from generic.tools.packaging.monitoring import dashboards_of, rules_of

MALLOC = {
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": "65536",
    "MALLOC_TRIM_THRESHOLD_": "65536",
}
"""Environment that makes glibc return freed memory to the kernel (glibc manual, "Memory Allocation
Tunables"). By default each thread has an arena, and blocks up to 32 MiB fragment the heap."""

FILES = Path(__file__).with_name("files")
_TEMPLATES = Path(__file__).with_name("templates")
"""Of files that a chart has several times."""
_GRACE = 10
"""Seconds for a pod to end after the manager's shutdown timeout."""
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
_NUMBER = "(0|[1-9][0-9]*)"
_VERSION = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
NAMESPACE = "{{ .Release.Namespace }}"
_TO = "networking.gardener.cloud/to-"
_TO_SHOOTS = "networking.resources.gardener.cloud/to-all-shoots-kube-apiserver-tcp-443"
_KEPT = {"resources.gardener.cloud/keep-object": "true", "helm.sh/resource-policy": "keep"}
_SHARED = """  annotations:
    {{- if and .Values.gardener (eq .Values.crds "auto") }}
    resources.gardener.cloud/ignore: "true"
    {{- end }}
"""
"""The metadata of a definition that several extensions install."""
_SOURCE = "prometheus-{{ $prometheus }}"
"""The name of Plutono's data source for a Prometheus of Gardener."""
OPTIONS = Options(
    leader_election=True,
    leader_election_namespace=NAMESPACE,
    heartbeat_namespace=NAMESPACE,
    webhook_config_namespace=NAMESPACE,
    ignore_operation_annotation=True,
)
"""Options of the manager of a chart: its roles allow everything that values.yaml may enable."""
_WEBHOOKS = {"serverPort": 10250, "servicePort": 443, "disabled": []}
"""10250 is the port that firewalls between an API server and its nodes let through."""


def chart_name(extension: str, suffix: str = "") -> str:
    """Return the default name of the chart for MODULE:OBJECT.

    It is `extension-aws` for extensions.aws:extension and for extensions.aws.admission:admission.
    """
    module = extension.partition(":")[0].removesuffix(".admission").rpartition(".")[2]
    return f"extension-{module}{suffix}".replace("_", "-").lower()


def options_for(name: str) -> Options:
    """Return the options of the manager of the chart with this name."""
    return attrs.evolve(OPTIONS, leader_election_id=f"{name}-leader-election")


def _check_name(_chart: "ExtensionChart", _attribute: object, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"invalid name {name!r}: expected at most 40 lower-case letters, digits and hyphens"
        )


def _check_version(_chart: "ExtensionChart", _attribute: object, version: str) -> None:
    if not _VERSION.fullmatch(version):
        raise ConfigurationError(
            f"invalid chart version {version!r}: expected MAJOR.MINOR.PATCH (SemVer 2)"
        )


@attrs.frozen(kw_only=True)
class ExtensionChart:
    """The content of a chart: `extension` is the MODULE:OBJECT that the image runs, for `types`.

    Raises ConfigurationError for a name or version that Kubernetes or Helm rejects.
    """

    name: str = attrs.field(validator=_check_name)
    extension: str
    image: str
    """The image: REPOSITORY, REPOSITORY:TAG, or REPOSITORY@DIGEST."""
    version: str = attrs.field(default="0.1.0", validator=_check_version)
    types: tuple[str, ...] = ()
    extension_classes: tuple[str, ...] = ()
    """The classes that installations in seeds serve; empty: shoot."""


def chart_files(manager: Manager, chart: ExtensionChart) -> dict[str, str]:
    """Return every file of the chart: its path relative to the chart's folder, and its text.

    `manager` must have `options_for` the chart's name.
    """
    given = placeholders(manager, chart)
    files = {
        path.relative_to(FILES).as_posix(): filled(path.read_text(encoding="utf-8"), given)
        for path in sorted(FILES.rglob("*.*"))
    }
    made = (_definitions(manager), _roles(manager, chart), _policies(manager, chart))
    return {**files, **dict(chain(*made, _monitoring(chart)))}


def placeholders(manager: Manager, chart: ExtensionChart) -> dict[str, str]:
    """Return the values for the placeholders in files."""
    repository, tag = _split_image(chart.image)
    arguments = [chart.extension, *(f"--type={type}" for type in chart.types)]
    lists = {
        "REPOSITORY": repository,
        "TAG": tag or chart.version,
        "CLASSES": chart.extension_classes,
        "RUNTIME_CONTROLLERS": _runtime_controllers(manager),
        "NETWORK_LABELS": _networks(manager),
        "WEBHOOKS": _WEBHOOKS if manager.webhooks else {},
    }
    return {
        "NAME": chart.name,
        "SERVICE": prefixed(chart.name) if manager.webhooks else chart.name,
        "VERSION": chart.version,
        "GRACE": str(int(manager.options.shutdown_timeout) + _GRACE),
        "MALLOC": " ".join(f'"{name}" "{value}"' for name, value in MALLOC.items()),
        "ARGUMENTS": f"\n{' ' * 8}".join(f"- {json.dumps(argument)}" for argument in arguments),
        **{name: json.dumps(value) for name, value in lists.items()},
    }


def filled(text: str, given: Mapping[str, str]) -> str:
    """Return the template with a value in place of each placeholder such as `@NAME@`."""
    for name, value in given.items():
        text = text.replace(f"@{name}@", value)
    return text


def literal(text: str) -> str:
    """Return a template that renders as this text."""
    return text.replace("{{", '{{ "{{" }}')


def _split_image(image: str) -> tuple[str, str]:
    """Return repository and tag or digest; a colon before the last slash belongs to a port."""
    repository, at, digest = image.partition("@")
    if at:
        return repository, digest
    host, slash, name = image.rpartition("/")
    name, _, tag = name.partition(":")
    return f"{host}{slash}{name}", tag


def _runtime_controllers(manager: Manager) -> list[str]:
    """Return the controllers that can run in a garden runtime cluster, which has no Clusters."""
    served = [name for name, kind in manager.kinds if kind.cluster is not ClusterNeed.REQUIRED]
    return [*served, *(runnable.name for runnable in manager.runnables)]


def _networks(manager: Manager) -> dict[str, str]:
    """Return labels that allow the pods' traffic, except to DNS and their API server.

    Networks outside the cluster, if an actuator declares external resources; the API servers of
    shoots, if an actuator or a health check declares SHOOT_ACCESS.
    """
    classes = [type(innermost(registration.actuator)) for registration in manager.registrations]
    outside = any(cls.external_resources is not Actuator.external_resources for cls in classes)
    shoots = SHOOT_ACCESS in chain(
        *(registration.actuator.permissions for registration in manager.registrations),
        *(health_check.checks.permissions for health_check in manager.health_checks),
    )
    needs = {
        f"{_TO}public-networks": outside,
        f"{_TO}private-networks": outside,
        _TO_SHOOTS: shoots,
    }
    return {label: "allowed" for label, needed in needs.items() if needed}


def _definitions(manager: Manager) -> Iterator[tuple[str, str]]:
    """Yield the CustomResourceDefinitions of records and of the author's own kinds.

    Gardener installs its own kinds. gardenlet and gardener-operator render `templates/` only, and
    without a cluster (Gardener, `pkg/chartrenderer`). Every definition is kept when the chart is
    removed, because its objects would be deleted with it; gardener-resource-manager reads one of
    the annotations, Helm the other.

    All extensions share the definitions of records, and Helm refuses an object that another release
    owns. So a template looks up the owner, depending on the value `crds`. Under Gardener `lookup`
    returns nothing, and the ManagedResource of each extension has the definition. An annotation
    lets gardener-resource-manager create it, and never change it (Gardener documentation,
    "gardener-resource-manager", "Ignoring Updates"): else each would take it over from the other.
    """
    classes: list[type[Object]] = [*RECORD_KINDS]
    classes += (registration.cls for registration in manager.registrations)
    classes += (health_check.checks.cls for health_check in manager.health_checks)
    for cls in dict.fromkeys(cls for cls in classes if cls.KIND.group != GROUP):
        manifest = crd(cls)
        manifest["metadata"]["annotations"] = _KEPT
        name = manifest["metadata"]["name"]
        condition = f'include "actuator.installsDefinition" (dict "root" $ "name" "{name}")'
        content = literal(yaml_text(manifest))
        if cls in RECORD_KINDS:
            content = content.replace("  annotations:\n", _SHARED, 1)
        yield f"templates/crd-{name}.yaml", f"{{{{- if {condition} }}}}\n{content}{{{{- end }}}}\n"


def _roles(manager: Manager, chart: ExtensionChart) -> Iterator[tuple[str, str]]:
    """Yield one template for each Role and binding.

    Gardener keeps one object of a kind and name per template, regardless of namespaces
    (`pkg/chartrenderer`, `AsSecretData`).
    """
    # One chart may be installed twice in a cluster, and cluster-scoped names must not collide.
    need = (manager, f"{chart.name}-{NAMESPACE}", chart.name, NAMESPACE)
    both = zip(manifests(*need), manifests(*need, watch_all=False), strict=True)
    for number, (more, less) in enumerate(both):
        text = yaml_text(more)
        otherwise = yaml_text(less)
        if text != otherwise:
            condition = "{{- if .Values.ignoreOperationAnnotation }}"
            text = f"{condition}\n{text}{{{{- else }}}}\n{otherwise}{{{{- end }}}}\n"
        yield f"templates/rbac-{number}.yaml", text


def _monitoring(chart: ExtensionChart) -> Iterator[tuple[str, str]]:
    """Yield one template for each PrometheusRule and dashboard; `monitoring.flavour` selects."""
    template = (_TEMPLATES / "prometheusrule.yaml").read_text(encoding="utf-8")
    for rules in rules_of(chart.name):
        spec = literal(yaml_text({"spec": rules.spec}))
        given = {"READ": rules.read, "BY": rules.by or "$prometheus", "SPEC": spec}
        yield f"templates/prometheusrule-{rules.name}.yaml", filled(template, given)
    template = (_TEMPLATES / "dashboard.yaml").read_text(encoding="utf-8")
    for board, grafana, plutono in dashboards_of(chart.name):
        texts = {"GRAFANA": _scalar(grafana), "PLUTONO": _scalar(plutono)}
        given = {"NAME": chart.name, "BOARD": board, **texts, "PROMETHEUS": _SOURCE}
        yield f"templates/dashboard-{board}.yaml", filled(template, given)


def _scalar(text: str) -> str:
    """Return a YAML scalar in a template that renders as this text."""
    return literal("'" + text.replace("'", "''") + "'")


def _policies(manager: Manager, chart: ExtensionChart) -> Iterator[tuple[str, str]]:
    """Yield the policies about records; each release has its own, so that none owns all."""
    if served := manager.registrations:
        user = f"system:serviceaccount:{NAMESPACE}:{chart.name}"
        for number, made in enumerate(policies(f"{chart.name}-{NAMESPACE}", user, served)):
            yield f"templates/policy-{number}.yaml", yaml_text(made)


class _Dumper(yaml.SafeDumper):
    """Writes repeated values again instead of YAML aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def yaml_text(*documents: Raw) -> str:
    """Return the documents as YAML."""
    return yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=10_000)


def packed(folder: str, files: Mapping[str, str]) -> str:
    """Pack a chart for a ControllerDeployment: tar, gzip, base64; reproducible."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for path, text in files.items():
            content = text.encode()
            entry = tarfile.TarInfo(f"{folder}/{path}")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return base64.b64encode(gzip.compress(archive.getvalue(), mtime=0)).decode("ascii")
