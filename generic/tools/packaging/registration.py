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

from actuator.errors import ConfigurationError
from actuator.meta import GROUP, Kind, Raw
from generic.library.manifests import manifest
from generic.manager.manager import Manager

Policy = Literal["OnDemand", "Always", "AlwaysExceptNoShoots"]
Operation = Literal["reconcile", "delete", "migrate"]
Moment = Literal["BeforeKubeAPIServer", "AfterKubeAPIServer", "AfterWorker"]
_RESOURCES = (list, "a list of name and resourceRef to a Secret or ConfigMap")
_SETTINGS: Mapping[str, tuple[type, str]] = {
    "values": (dict, "a mapping"),
    "injectGardenKubeconfig": (bool, "true or false"),
    "resources": _RESOURCES,
    "runtimeClusterValues": (dict, "a mapping"),
    "admission": (dict, "a mapping"),
}
_OPERATOR_ONLY = "{}: only an operator Extension has this field; add --operator"
_TEMPLATE = re.compile(r"\{\{(.*?)\}\}")
_REFERENCE = re.compile(r"\.resources\.([A-Za-z0-9]+)\.data\.[A-Za-z0-9]+")


@attrs.frozen(kw_only=True)
class Traits:
    """Fields of a registration for a kind and type, in addition to their names.

    `secondary` are (kind, type) pairs whose primary extension is another one: for these this one
    may only write conditions. `continuous_endpoint_update` is for SelfHostedShootExposure, the
    other fields are for Extension.
    """

    secondary: Collection[tuple[str, str]] = ()
    reconcile_timeout: float | None = None
    """Seconds that gardenlet waits for an Extension."""
    lifecycle: Mapping[Operation, Moment] = attrs.field(factory=dict)
    """When gardenlet waits for an Extension; force deletion ignores it. Default: Gardener's."""
    workerless_supported: bool = False
    auto_enable: tuple[Literal["shoot", "seed"], ...] = ()
    cluster_compatibility: tuple[Literal["shoot", "seed", "garden"], ...] = ()
    continuous_endpoint_update: bool | None = None
    """Whether gardenlet keeps the endpoints of a SelfHostedShootExposure up to date."""

    @property
    def extension_classes(self) -> tuple[str, ...]:
        """The classes that installations in seeds must serve; empty: Gardener's default."""
        return ("seed", "shoot") if "seed" in self.cluster_compatibility else ()


@attrs.frozen(kw_only=True)
class Deployment:
    """The chart to install: packed (base64), or a reference to an OCI registry."""

    raw_chart: str = ""
    oci_reference: str = ""
    policy: Policy | None = None
    seed_selector: Raw | None = None
    settings: Raw = attrs.field(factory=dict)
    """More fields by Gardener's names: `values`, `injectGardenKubeconfig`, `resources`; for an
    operator Extension also `runtimeClusterValues` and `admission`."""

    @property
    def helm(self) -> Raw:
        """The chart in the format of ControllerDeployments and operator Extensions."""
        if self.oci_reference:
            return {"ociRepository": {"ref": self.oci_reference}}
        return {"rawChart": self.raw_chart}

    def pick(self, *names: str) -> Raw:
        """Return the named settings that are set."""
        return {name: self.settings[name] for name in names if name in self.settings}


def controller_resources(manager: Manager, traits: Traits) -> list[Raw]:
    """Return one entry for each Gardener kind and type that the extension serves, sorted.

    A kind and type whose health it only checks gets another primary extension. Raises
    ConfigurationError for a secondary pair that is not served.
    """
    served = _pairs((one.kind, one.types) for one in manager.registrations)
    checked = _pairs((one.checks.cls.KIND, one.checks.types) for one in manager.health_checks)
    pairs = served | checked
    unknown = sorted(set(traits.secondary) - pairs)
    if unknown:
        kind, type = unknown[0]
        raise ConfigurationError(
            f"{kind}/{type} cannot be secondary: the extension does not serve it"
        )
    primary = served - set(traits.secondary)
    return [_resource(pair, pair in primary, traits) for pair in sorted(pairs)]


def controller_registration(name: str, resources: list[Raw], deployment: Deployment) -> list[Raw]:
    """Return a ControllerDeployment, and the ControllerRegistration that refers to it.

    Raises ConfigurationError if nothing is served, for a seed selector with a primary resource,
    and for invalid settings.
    """
    _check(resources, deployment)
    if any("garden" in resource.get("clusterCompatibility", ()) for resource in resources):
        raise ConfigurationError(_OPERATOR_ONLY.format("clusterCompatibility: garden"))
    for field in deployment.pick("runtimeClusterValues", "admission"):
        raise ConfigurationError(_OPERATOR_ONLY.format(field))
    parts = {
        "helm": deployment.helm | deployment.pick("values"),
        **deployment.pick("injectGardenKubeconfig", "resources"),
    }
    spec = {
        "resources": resources,
        "deployment": {"deploymentRefs": [{"name": name}], **_where(deployment)},
    }
    return [
        manifest("core.gardener.cloud/v1", "ControllerDeployment", name, **parts),
        manifest("core.gardener.cloud/v1beta1", "ControllerRegistration", name, spec=spec),
    ]


def operator_extension(name: str, resources: list[Raw], deployment: Deployment) -> Raw:
    """Return the Extension for gardener-operator.

    Raises ConfigurationError for a seed selector with a primary resource, for invalid settings,
    and without an OCI reference.
    """
    _check(resources, deployment)
    if not deployment.oci_reference:
        raise ConfigurationError(
            "an operator Extension requires a chart in an OCI registry; "
            "push it and set --oci-repository"
        )
    extension: Raw = {
        "helm": deployment.helm,
        **deployment.pick("values", "runtimeClusterValues", "injectGardenKubeconfig"),
        **_where(deployment),
    }
    installed = {"extension": extension, **deployment.pick("admission", "resources")}
    spec = {"resources": resources, "deployment": installed}
    return manifest("operator.gardener.cloud/v1alpha1", "Extension", name, spec=spec)


def _check(resources: list[Raw], deployment: Deployment) -> None:
    if not resources:
        raise ConfigurationError("the extension serves no Gardener kind to register")
    primary = [resource for resource in resources if resource["primary"]]
    if deployment.seed_selector is not None and primary:
        served = f"{primary[0]['kind']}/{primary[0]['type']}"
        raise ConfigurationError(
            f"a seed selector requires that every kind is secondary; {served} is not"
        )
    _check_settings(deployment.settings)


def _check_settings(settings: Raw) -> None:
    for field in settings.keys() - set(_SETTINGS):
        raise ConfigurationError(f"{field}: unknown field; expected one of {', '.join(_SETTINGS)}")
    for field, value in settings.items():
        expected, words = _SETTINGS[field]
        if not isinstance(value, expected):
            raise ConfigurationError(f"{field}: expected {words}, got {value!r}")
    declared = {_resource_name(one) for one in settings.get("resources", [])}
    for field, value in settings.items():
        for template in _TEMPLATE.findall(json.dumps(value)):
            found = _REFERENCE.fullmatch(template.strip())
            if found is None or found[1] not in declared:
                raise ConfigurationError(
                    f"{field}: expected {{{{ .resources.NAME.data.KEY }}}} with a NAME of "
                    f"resources[].name, got {{{{{template}}}}}"
                )


def _resource_name(entry: object) -> str:
    match entry:
        case {"name": str(name), "resourceRef": {"kind": "Secret" | "ConfigMap", "name": str()}}:
            return name
    raise ConfigurationError(f"resources: expected {_RESOURCES[1]}, got {entry}")


def _where(deployment: Deployment) -> Raw:
    wanted = {"policy": deployment.policy, "seedSelector": deployment.seed_selector}
    return {key: value for key, value in wanted.items() if value is not None}


def _pairs(classes: Iterable[tuple[Kind, Iterable[str]]]) -> set[tuple[str, str]]:
    """Return the names of Gardener's kinds with their types."""
    return {(kind.name, type) for kind, types in classes if kind.group == GROUP for type in types}


def _resource(pair: tuple[str, str], primary: bool, traits: Traits) -> Raw:
    kind, type = pair
    resource: Raw = {"kind": kind, "type": type, "primary": primary}
    if kind == "Extension":
        resource.update(_extension_fields(traits))
    if kind == "SelfHostedShootExposure" and traits.continuous_endpoint_update is not None:
        resource["continuousEndpointUpdate"] = traits.continuous_endpoint_update
    return resource


def _extension_fields(traits: Traits) -> Raw:
    seconds = traits.reconcile_timeout
    fields = {
        "reconcileTimeout": None if seconds is None else f"{seconds:g}s",
        "lifecycle": dict(traits.lifecycle),
        "workerlessSupported": traits.workerless_supported,
        "autoEnable": list(traits.auto_enable),
        "clusterCompatibility": list(traits.cluster_compatibility),
    }
    return {name: value for name, value in fields.items() if value}
