"""The Helm charts of an extension's admission: as text, generated for a Manager. Pure.

Gardener installs two (Gardener documentation, "Extension Admission"): `application` in the garden
has the policies and the rights of the process, `runtime` in its runtime cluster runs the process.
Webhook configurations are deleted with the namespace of `application`: they would refuse Shoots
when the process is gone.
"""

from collections.abc import Iterator
from pathlib import Path

import attrs

from actuator.errors import ConfigurationError
from actuator.meta import Raw
from generic.library.webhooks.admission import policies
from generic.library.webhooks.configurations import prefixed
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.manager.rbac import manifests
from generic.tools.packaging.chart import (
    FILES,
    NAMESPACE,
    ExtensionChart,
    filled,
    literal,
    options_for,
    placeholders,
    yaml_text,
)

_OWN = Path(__file__).with_name("admission")
_SHARED = (
    "_helpers.tpl",
    "configmap.yaml",
    "poddisruptionbudget.yaml",
    "serviceaccount.yaml",
    "verticalpodautoscaler.yaml",
)
_ACCOUNT = "{{ .Values.gardener.virtualCluster.serviceAccount.%s }}"


def admission_options(name: str) -> Options:
    """Return the options of the manager of an admission with this name."""
    return attrs.evolve(
        options_for(name),
        leader_election=False,
        heartbeat_namespace="",
        webhook_config_mode="url",
        webhook_config_url=f"{prefixed(name)}.{NAMESPACE}",
        webhook_config_owner_namespace=NAMESPACE,
    )


def admission_files(manager: Manager, chart: ExtensionChart) -> dict[str, str]:
    """Return every file of both charts; `manager` must have `admission_options`.

    Without webhooks there is no process, and no chart `runtime`. Raises ConfigurationError if the
    manager has controllers, or nothing to admit.
    """
    if manager.registrations or not (manager.webhooks or manager.admissions):
        raise ConfigurationError(
            f"{chart.extension}: expected a function that only adds admissions and webhooks; "
            "use Manager.add_admission"
        )
    given = placeholders(manager, chart)
    paths = {f"templates/{name}": FILES / "templates" / name for name in _SHARED}
    paths |= {f"templates/{name}": _OWN / name for name in ("deployment.yaml", "service.yaml")}
    paths["values.yaml"] = _OWN / "values.yaml"
    files = {
        f"runtime/{name}": filled(path.read_text(encoding="utf-8"), given)
        for name, path in paths.items()
    }
    head = (FILES / "Chart.yaml").read_text(encoding="utf-8")
    for part in ("application", "runtime"):
        named = {**given, "NAME": f"{chart.name}-{part}"}
        files[f"{part}/Chart.yaml"] = filled(head, named)
    files["application/values.yaml"] = (_OWN / "application.yaml").read_text(encoding="utf-8")
    for _, manifest in policies(manager.admissions):
        file = f"application/templates/{manifest['kind'].lower()}-{manifest['metadata']['name']}"
        files[f"{file}.yaml"] = literal(yaml_text(manifest))
    files |= dict(_roles(manager, chart.name))
    return {
        path: text
        for path, text in files.items()
        if manager.webhooks or path.startswith("application/")
    }


def _roles(manager: Manager, name: str) -> Iterator[tuple[str, str]]:
    """Yield the roles: those for a namespace in the runtime cluster, the others in the garden."""
    own = manifests(manager, name, name, NAMESPACE)
    garden = manifests(manager, prefixed(name), _ACCOUNT % "name", _ACCOUNT % "namespace")
    for number, (in_runtime, in_garden) in enumerate(zip(own, garden, strict=True)):
        if "namespace" in in_runtime["metadata"]:
            yield f"runtime/templates/rbac-{number}.yaml", yaml_text(in_runtime)
        else:
            yield f"application/templates/rbac-{number}.yaml", yaml_text(in_garden)


def registration(manager: Manager, chart: ExtensionChart, repository: str) -> Raw:
    """Return the section `admission` of an operator's Extension, for charts in a repository."""

    def helm(part: str) -> Raw:
        return {
            "helm": {"ociRepository": {"ref": f"{repository}/{chart.name}-{part}:{chart.version}"}}
        }

    process = {"runtimeCluster": helm("runtime")} if manager.webhooks else {}
    return {"admission": {**process, "virtualCluster": helm("application")}}
