"""The kinds of the sample: HelmChartProxy, HelmReleaseProxy, and Target.

A Target is an object of another controller that names a cluster, in the manner of Cluster API's
Cluster, which can take its place (`spec.targetKind`). The actuators contain the behaviour.
"""

from enum import StrEnum
from typing import Annotated, ClassVar

import attrs

from actuator import (
    Column,
    ConditionedStatus,
    ForceSource,
    KeepsUnknownFields,
    Kind,
    Object,
    Raw,
    ReadyReasons,
    Resource,
    Schema,
    SecretReference,
    own_kind,
    resource_of,
)

GROUP = "addons.actuator.extensions.gardener.cloud"

READY = "Ready"
"""The condition that both kinds report."""
CHART_LABEL = f"{GROUP}/chart-proxy"
"""Label of a HelmReleaseProxy: the HelmChartProxy that made it."""

TARGET_LABEL = f"{GROUP}/target"
"""Label of a HelmReleaseProxy, and of a release in a Target: the Target, shortened if too long."""

TARGET_NAMESPACE_LABEL = f"{GROUP}/target-namespace"
"""Label of a release in a Target: the Target's namespace."""

RELEASE_LABEL = f"{GROUP}/release"
"""Label of a release in a Target: the unique uid of its HelmReleaseProxy."""


@attrs.define(kw_only=True)
class Target(Object):
    """A cluster in which charts are installed."""

    KIND: ClassVar[Kind] = own_kind(
        "Target",
        GROUP,
        finalizer="",
        timeout=0.0,
        force_from=ForceSource.NONE,
        ready=None,
    )


TARGETS: Resource = resource_of(Target.KIND)


class TargetKind(StrEnum):
    """The kinds of objects that name a cluster."""

    TARGET = "Target"
    CLUSTER = "Cluster"
    """Of Cluster API."""


@attrs.frozen(kw_only=True)
class RegistryCredentials(KeepsUnknownFields):
    """A Secret of the same namespace; `key` holds Docker's config.json."""

    secret: Annotated[SecretReference, Schema(required=True)] = attrs.field(factory=SecretReference)
    key: Annotated[str, Schema(default="config.json")] = "config.json"


@attrs.frozen(kw_only=True)
class ChartSpec(KeepsUnknownFields):
    """A chart: `chart` from the operator's folder, or `chart_name` at `repo_url`.

    The latter, `version` and `credentials` are fields of Cluster API's Helm addon provider.
    """

    target_kind: Annotated[TargetKind, Schema(default="Target", immutable=True)] = TargetKind.TARGET
    chart: str = ""
    repo_url: str = attrs.field(default="", metadata={"wire": "repoURL"})
    chart_name: str = ""
    version: str = ""
    credentials: RegistryCredentials | None = None
    values: Raw = attrs.field(factory=dict, repr=False)


@attrs.frozen(kw_only=True)
class HelmChartProxySpec(ChartSpec):
    """The chart to install, and the Targets of this namespace to install it in.

    `target_selector` are labels; without any, it selects all Targets. `depends_on` are names of
    HelmChartProxies whose releases have to be ready before, and have to stay as long as these do.
    """

    target_selector: dict[str, str] = attrs.field(factory=dict)
    namespace: Annotated[str, Schema(required=True, min_length=1, immutable=True)] = "default"
    release_name: Annotated[str, Schema(immutable=True)] = ""
    depends_on: Annotated[list[str], Schema(immutable=True)] = attrs.field(factory=list)


@attrs.define(kw_only=True)
class HelmChartProxyStatus(ConditionedStatus):
    """The number of selected Targets, and of those that have the desired release."""

    targets: int = 0
    ready: int = 0


@attrs.define(kw_only=True)
class HelmChartProxy(Object):
    """A chart that is installed in every Target that a selector matches."""

    KIND: ClassVar[Kind] = own_kind(
        "HelmChartProxy",
        GROUP,
        Column("Chart", ".spec.chart"),
        Column("Targets", ".status.targets", "integer"),
        Column("Installed", ".status.ready", "integer"),
        timeout=60.0,
        ready=ReadyReasons(succeeded="ReleasesReady"),
    )

    spec: Annotated[HelmChartProxySpec, Schema(required=True)] = attrs.field(
        factory=HelmChartProxySpec
    )
    status: HelmChartProxyStatus = attrs.field(factory=HelmChartProxyStatus)


CHARTS: Resource = resource_of(HelmChartProxy.KIND)


@attrs.frozen(kw_only=True)
class HelmReleaseProxySpec(ChartSpec):
    """One release in one Target; `depends_on` are HelmReleaseProxies of the same Target."""

    target: Annotated[str, Schema(required=True, min_length=1, immutable=True)] = ""
    namespace: Annotated[str, Schema(required=True, min_length=1, immutable=True)] = "default"
    release_name: Annotated[str, Schema(required=True, min_length=1, immutable=True)] = ""
    depends_on: Annotated[list[str], Schema(required=True, immutable=True)] = attrs.field(
        factory=list
    )


@attrs.define(kw_only=True)
class HelmReleaseProxyStatus(ConditionedStatus):
    """The installed release, as last recorded.

    `target_uid` is saved before helm first runs, and cleared after the release is uninstalled:
    without it no release exists in any cluster.
    `applied_generation` is the generation of the spec that was installed last.
    """

    target_uid: str = attrs.field(default="", metadata={"wire": "targetUID"})
    applied_generation: Annotated[int, Schema(format="int64")] = 0
    revision: int = 0


@attrs.define(kw_only=True)
class HelmReleaseProxy(Object):
    """A Helm release in a Target."""

    KIND: ClassVar[Kind] = own_kind(
        "HelmReleaseProxy",
        GROUP,
        Column("Target", ".spec.target"),
        Column("Release", ".spec.releaseName"),
        Column("Revision", ".status.revision", "integer"),
        timeout=120.0,
        ready=ReadyReasons(
            succeeded="Installed", failed="InstallFailed", deletion_failed="UninstallFailed"
        ),
    )

    spec: Annotated[HelmReleaseProxySpec, Schema(required=True)] = attrs.field(
        factory=HelmReleaseProxySpec
    )
    status: HelmReleaseProxyStatus = attrs.field(factory=HelmReleaseProxyStatus)


RELEASES: Resource = resource_of(HelmReleaseProxy.KIND)
