"""HelmReleaseProxyRehearsal: a second cluster to install in, for `actuator drill`.

The outside is an embedded cluster with its own API server, which all shoots of a drill share as
their Target; each installs into its own namespace. A proxy that can be closed is in between
(`far`).
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import attrs

from actuator import (
    Actuator,
    Base64,
    Client,
    ConfigurationError,
    Context,
    ExternalResource,
    NotFound,
    Raw,
)
from extensions.helmreleaseproxy import CHARTS, kinds
from extensions.helmreleaseproxy.far import far_cluster
from extensions.helmreleaseproxy.helm import Helm, HelmResult
from extensions.helmreleaseproxy.helmchartproxy import HelmCharts
from extensions.helmreleaseproxy.helmreleaseproxy import HelmReleases, left_behind
from extensions.helmreleaseproxy.targets import TargetId
from generic.library import manifest, manifest_of
from generic.library.charts import find_helm
from generic.testing import DRILL_LABEL, Around, Rehearsal, RehearsedShoot

_NAME = "cluster"
_ALONE = "alone"


class HelmReleaseProxyRehearsal(Rehearsal):
    """The outside world of the sample."""

    title = "Helm releases (in a second embedded cluster)"
    other_kinds = (kinds.Target,)
    never_migrates = True
    makes: Mapping[str, Sequence[str]] = {
        kinds.HelmChartProxy.KIND.name: [kinds.HelmReleaseProxy.KIND.name]
    }
    scenarios: Mapping[str, str] = {
        "everything-fails": "The API servers of the Targets do not run.",
        "deletion-denied": "The Targets' API servers deny deletions to helm.",
        "target-first": "A user deletes the Targets before anything else.",
    }

    def __init__(self) -> None:
        self._open = ExitStack()
        self._seed: Client | None = None
        self._helm: Callable[[Path], Helm] = Helm

    def start(self, directory: Path) -> None:
        """Start the second cluster, empty, and the connection to it."""
        self._far = self._open.enter_context(far_cluster())

    def stop(self) -> None:
        """Stop it; safe to call twice, and without start."""
        self._open.close()

    def share(self) -> Mapping[str, str]:
        """Return nothing to attach: managers read the kubeconfig from Secrets in the seed."""
        return {}

    def observe(self, around: Around) -> None:
        """Enter `around` for each run of helm."""
        self._helm = lambda path: _ObservedHelm(path, around=around)

    def other_controllers(self, seed: Client) -> Sequence[Callable[[], None]]:
        """Return none; keep the client, which a scenario needs to delete Targets."""
        self._seed = seed
        return []

    def actuators(self) -> Sequence[Actuator[Any]]:
        """Both actuators, with the sample's own charts."""
        helm = self._helm(find_helm(logging.getLogger(__name__).info))
        return [HelmCharts(CHARTS), HelmReleases(helm, CHARTS)]

    def manifests(self, shoot: RehearsedShoot) -> Sequence[Raw]:
        """A Target, a HelmChartProxy that selects it, and a HelmReleaseProxy without controller."""
        release = {
            "chart": "note",
            "namespace": shoot.technical_id,
            "values": {"text": "Rehearsed"},
        }
        where = shoot.technical_id, shoot.labels
        alone = {"target": _NAME, "releaseName": _ALONE, "dependsOn": []}
        return [
            manifest_of(kinds.Target, _NAME, *where),
            self._kubeconfig(shoot),
            manifest_of(kinds.HelmChartProxy, "spread", *where, spec=release),
            manifest_of(kinds.HelmReleaseProxy, _ALONE, *where, spec={**release, **alone}),
        ]

    def spoil(self, manifest: Raw) -> None:
        """Request a chart that does not exist."""
        if manifest["kind"] in (kinds.HelmChartProxy.KIND.name, kinds.HelmReleaseProxy.KIND.name):
            manifest["spec"]["chart"] = "nonsense"

    def inject_failure(self, scenario: str) -> None:
        """Start the scenario. Raises KeyError for a name not in `scenarios`."""
        bring_about = {
            "everything-fails": self._far.go_down,
            "deletion-denied": self._far.deny_deletions,
            "target-first": self._delete_targets,
        }[scenario]
        bring_about()

    def repair_failure(self) -> None:
        """Restore connection and permissions; deleted Targets stay deleted."""
        self._far.repair()

    def remaining_resources(self) -> Sequence[ExternalResource]:
        """Return helm's releases in the second cluster."""
        there = [_left(release) for release in self._far.releases()]
        return list({resource.id: resource for resource in there}.values())

    def _kubeconfig(self, shoot: RehearsedShoot) -> Raw:
        """Return the Secret that Cluster API would create."""
        where = f"{_NAME}-kubeconfig", shoot.technical_id, shoot.labels
        data = {"value": Base64.encode_bytes(self._far.kubeconfig)}
        return manifest("v1", "Secret", *where, type="cluster.x-k8s.io/secret", data=data)

    def _delete_targets(self) -> None:
        if self._seed is None:
            raise ConfigurationError("scenario target-first is for an embedded cluster only")
        for target in self._seed.list(kinds.TARGETS, label_selector=DRILL_LABEL):
            with suppress(NotFound):
                self._seed.delete(
                    kinds.TARGETS, target["metadata"]["name"], target["metadata"]["namespace"]
                )


def _left(release: Raw) -> ExternalResource:
    labels = release["labels"]
    target = TargetId(labels[kinds.TARGET_NAMESPACE_LABEL], labels[kinds.TARGET_LABEL])
    return left_behind(
        f"{release['namespace']}/{labels['name']}", target, labels[kinds.RELEASE_LABEL]
    )


@attrs.frozen
class _ObservedHelm(Helm):
    """Runs helm in the context of `around`."""

    around: Around = attrs.field(kw_only=True)

    def run(
        self, ctx: Context, private: Mapping[str, bytes], arguments: Sequence[str], values: str = ""
    ) -> HelmResult:
        with self.around(f"helm: {arguments[0]}"):
            return super().run(ctx, private, arguments, values)
