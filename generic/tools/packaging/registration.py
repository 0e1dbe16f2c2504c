"""The registration of an extension: the kinds it serves, and the chart to install.

Pure. Either a ControllerRegistration with its ControllerDeployment for the garden, or one
operator.gardener.cloud Extension from which gardener-operator derives both (Gardener
documentation, "Registering Extension Controllers" and "Extension Resource"). Not here: the chart
itself (`chart`).
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Literal

import attrs

from actuator.checking import check
from actuator.errors import ConfigurationError
from actuator.meta import GROUP, Kind, Raw
from actuator.v1alpha1 import LabelSelector
from generic.library.manifests import manifest
from generic.manager.manager import Manager

_POD_SECURITY = "security.gardener.cloud/pod-security-enforce"
_OPERATOR_ONLY = "{}: only an operator Extension has this field; add --operator"
_TEMPLATE = re.compile(r"\{\{(.*?)\}\}")
_REFERENCE = re.compile(r"\.resources\.([A-Za-z0-9]+)\.data\.[A-Za-z0-9]+")


@attrs.frozen(kw_only=True)
class ResourceRef:
    """A Secret or ConfigMap in the garden."""

    api_version: str = ""
    kind: Literal["Secret", "ConfigMap"]
    name: str


@attrs.frozen(kw_only=True)
class DataResource:
    """A resource to whose data templates in the settings refer by its name."""

    name: str
    resource_ref: ResourceRef


@attrs.frozen(kw_only=True)
class DeploymentSettings:
    """Fields of a deployment by Gardener's names; the last two are for an operator Extension."""

    policy: Literal["OnDemand", "Always", "AlwaysExceptNoShoots"] | None = None
    seed_selector: LabelSelector | None = None
    values: Raw | None = None
    inject_garden_kubeconfig: bool = False
    resources: list[DataResource] = attrs.field(factory=list)
    runtime_cluster_values: Raw | None = None
    admission: Raw | None = None


def controller_resources(
    manager: Manager,
    secondary: Collection[tuple[str, str]] = (),
    fields: Mapping[str, Raw] | None = None,
) -> list[Raw]:
    """Return one entry for each Gardener kind and type that the extension serves, sorted.

    `secondary` are (kind, type) pairs whose primary extension is another one: for these this one
    may only write conditions, as for those whose health it only checks. `fields` are more fields
    of the entries, by kind. Raises ConfigurationError for a secondary pair that is not served.
    """
    served = _pairs((item.kind, item.types) for item in manager.registrations)
    checked = _pairs((item.checks.cls.KIND, item.checks.types) for item in manager.health_checks)
    pairs = served | checked
    for kind, type in sorted(set(secondary) - pairs):
        raise ConfigurationError(
            f"{kind}/{type} cannot be secondary: the extension does not serve it"
        )
    primary = served - set(secondary)
    return [
        {
            "kind": pair[0],
            "type": pair[1],
            "primary": pair in primary,
            **(fields or {}).get(pair[0], {}),
        }
        for pair in sorted(pairs)
    ]


def controller_registration(name: str, resources: list[Raw], helm: Raw, settings: Raw) -> list[Raw]:
    """Return a ControllerDeployment, and the ControllerRegistration that refers to it.

    Raises ConfigurationError if nothing is served, for a seed selector with a primary resource,
    and for invalid settings.
    """
    _check(resources, settings)
    if any("garden" in resource.get("clusterCompatibility", ()) for resource in resources):
        raise ConfigurationError(_OPERATOR_ONLY.format("clusterCompatibility: garden"))
    for field in _pick(settings, "runtimeClusterValues", "admission"):
        raise ConfigurationError(_OPERATOR_ONLY.format(field))
    parts = {
        "helm": helm | _pick(settings, "values"),
        **_pick(settings, "injectGardenKubeconfig", "resources"),
    }
    deployment = {"deploymentRefs": [{"name": name}], **_pick(settings, "policy", "seedSelector")}
    spec = {"resources": resources, "deployment": deployment}
    return [
        manifest("core.gardener.cloud/v1", "ControllerDeployment", name, **parts),
        _restricted("core.gardener.cloud/v1beta1", "ControllerRegistration", name, spec),
    ]


def operator_extension(name: str, resources: list[Raw], helm: Raw, settings: Raw) -> Raw:
    """Return the Extension for gardener-operator.

    Raises ConfigurationError for a seed selector with a primary resource, for invalid settings,
    and without an OCI reference.
    """
    _check(resources, settings)
    if "ociRepository" not in helm:
        raise ConfigurationError(
            "an operator Extension requires a chart in an OCI registry; "
            "push it and set --oci-repository"
        )
    values = _pick(settings, "values", "runtimeClusterValues", "injectGardenKubeconfig")
    extension = {"helm": helm, **values, **_pick(settings, "policy", "seedSelector")}
    installed = {"extension": extension, **_pick(settings, "admission", "resources")}
    spec = {"resources": resources, "deployment": installed}
    return _restricted("operator.gardener.cloud/v1alpha1", "Extension", name, spec)


def _restricted(api_version: str, kind: str, name: str, spec: Raw) -> Raw:
    """Return the manifest; Gardener admits only restricted pods in the extension's namespace.

    Source: Gardener documentation, "General Conventions for Extensions".
    """
    found = manifest(api_version, kind, name, spec=spec)
    found["metadata"]["annotations"] = {_POD_SECURITY: "restricted"}
    return found


def _pick(settings: Raw, *names: str) -> Raw:
    return {name: settings[name] for name in names if name in settings}


def _check(resources: list[Raw], settings: Raw) -> None:
    if not resources:
        raise ConfigurationError("the extension serves no Gardener kind to register")
    for field, problem in check(DeploymentSettings, settings):
        raise ConfigurationError(f"{field}: {problem}".removeprefix(": "))
    primary = [resource for resource in resources if resource["primary"]]
    if "seedSelector" in settings and primary:
        served = f"{primary[0]['kind']}/{primary[0]['type']}"
        raise ConfigurationError(
            f"a seed selector requires that every kind is secondary; {served} is not"
        )
    declared = {resource["name"] for resource in settings.get("resources", ())}
    for field, value in settings.items():
        for template in _TEMPLATE.findall(json.dumps(value)):
            found = _REFERENCE.fullmatch(template.strip())
            if found is None or found[1] not in declared:
                raise ConfigurationError(
                    f"{field}: expected {{{{ .resources.NAME.data.KEY }}}} with a NAME of "
                    f"resources[].name, got {{{{{template}}}}}"
                )


def _pairs(classes: Iterable[tuple[Kind, Iterable[str]]]) -> set[tuple[str, str]]:
    """Return the names of Gardener's kinds with their types."""
    return {(kind.name, type) for kind, types in classes if kind.group == GROUP for type in types}
