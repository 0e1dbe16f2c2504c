"""Releases: helm's releases in one Target, found by the sample's label, never by name alone.

Each release carries the uid of its HelmReleaseProxy in its labels, from the moment helm begins to
install it. It is therefore found after a crash, and a release of others with the same name is
neither adopted nor removed. Deciding which releases to install belongs to the actuator.
"""

import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

import attrs

from actuator import ActuatorError, ConfigurationError, Context, RequeueAfter
from actuator.meta import Raw
from extensions.helmreleaseproxy.helm import SECONDS, Answer, Helm, unreachable_because
from extensions.helmreleaseproxy.targets import TargetId, TargetUnknown
from generic.kube.inline_kubeconfig import InlineKubeconfig
from generic.library.charts import said_of_chart

_LOOK_AGAIN = 5.0
_NO_CHART = Path("chart")
_READY_SECONDS = 45.0
"""Time for a chart's resources to become ready; helm has to report it within its time limit."""
_NOT_READY = re.compile(
    r"(INSTALLATION|UPGRADE) FAILED: (context deadline exceeded|timed out waiting)"
)
_HALF_INSTALLED = frozenset({"pending-install", "uninstalling", "uninstalled"})
"""States without an earlier revision: uninstall the release before installing it."""
_HALF_CHANGED = frozenset({"pending-upgrade", "pending-rollback"})
_PENDING = frozenset({"pending-install", "pending-upgrade", "pending-rollback"})


@attrs.frozen(kw_only=True)
class Release:
    """The desired release; `marks` are its labels, `mark` is the unique one."""

    namespace: str
    name: str
    mark: tuple[str, str]
    marks: Mapping[str, str]
    values: Raw = attrs.field(repr=False)


@attrs.frozen(kw_only=True)
class Found:
    """The actual release; `status` is a status of helm."""

    status: str
    revision: int
    updated: datetime


@attrs.frozen
class Releases:
    """The releases of one Target, for one call. All methods raise TargetUnknown and Cancelled."""

    helm: Helm
    ctx: Context
    target: TargetId
    kubeconfig: InlineKubeconfig

    def find(self, release: Release) -> Found | None:
        """Return the object's release, or None; releases of others are ignored."""
        selector = "=".join(release.mark)
        answer = self._helm("list", "--all", "--output", "json", "--selector", selector, of=release)
        found: list[Raw] = json.loads(self._checked(answer, release).output)
        return _found(found[0]) if found else None

    def install(self, release: Release, chart: Path, there: Found | None) -> int:
        """Install or upgrade the release; return its revision. `there` is the result of `find`.

        Raises RequeueAfter while another helm works on it, ConfigurationError if the name is taken,
        ActuatorError if helm refuses.
        """
        if there is not None and there.status in _PENDING:
            self._wait_for_the_other(there, release)
        if there is None:
            return self._install(release, chart)
        if there.status in _HALF_INSTALLED:
            self.uninstall(release)
            return self._install(release, chart)
        if there.status in _HALF_CHANGED:
            self._checked(self._helm("rollback", release.name, of=release), release)
        return self._put(release, chart, "upgrade")

    def uninstall(self, release: Release) -> None:
        """Uninstall the release; an already uninstalled one is success."""
        options = ("--ignore-not-found", "--debug")  # otherwise helm omits the refusal's source
        answer = self._helm("uninstall", release.name, *options, of=release)
        self._checked(answer, release)

    def _install(self, release: Release, chart: Path) -> int:
        marks = ",".join(f"{key}={value}" for key, value in release.marks.items())
        return self._put(release, chart, "install", "--create-namespace", "--labels", marks)

    def _put(self, release: Release, chart: Path, verb: str, *options: str) -> int:
        seconds = f"{min(_READY_SECONDS, self.ctx.remaining()):.0f}s"
        bounds = ("--wait", "--timeout", seconds, "--output", "json", "--values", "-")
        arguments = (verb, release.name, str(chart), *options, *bounds)
        answer = self._helm(*arguments, of=release, values=json.dumps(release.values))
        return int(json.loads(self._checked(answer, release, chart).output)["version"])

    def _helm(self, *arguments: str, of: Release, values: str = "") -> Answer:
        everywhere = ("--namespace", of.namespace)
        private = {"KUBECONFIG": self.kubeconfig.encoded()}
        return self.helm.run(self.ctx, private, [*arguments, *everywhere], values)

    def _checked(self, answer: Answer, release: Release, chart: Path = _NO_CHART) -> Answer:
        """Return the answer if it is a success. Raises an error otherwise."""
        if answer.ok:
            return answer
        if "cannot re-use a name" in answer.errors:
            raise ConfigurationError(
                f"{self.target.text} has a release {release.namespace}/{release.name} of "
                "another owner; choose another releaseName, or remove it"
            )
        if _NOT_READY.search(answer.errors):
            raise ActuatorError(
                f"release {release.namespace}/{release.name} is installed in "
                f"{self.target.text}, but its resources do not become ready",
                reason="NotReady",
            )
        unreachable = unreachable_because(answer.errors)
        if unreachable is not None:
            fields = {"target": str(self.target), "because": unreachable.detail}
            self.ctx.log.debug("helm cannot use the target", extra={"fields": fields})
            codes = [unreachable.code]
            raise TargetUnknown(self.target, unreachable.text, unreachable.reason, codes)
        said = said_of_chart(answer.errors, chart)
        raise ActuatorError(
            f"helm refuses release {release.namespace}/{release.name} in {self.target.text}: "
            f"{said or 'run helm by hand for the cause'}"
        )

    def _wait_for_the_other(self, there: Found, release: Release) -> None:
        """Raise RequeueAfter until the helm of a dead manager must have ended."""
        if self.ctx.clock.now() - there.updated < timedelta(seconds=SECONDS):
            name = f"{release.namespace}/{release.name}"
            raise RequeueAfter(
                _LOOK_AGAIN, f"Waiting for another helm: release {name} is {there.status}"
            )


def _found(release: Raw) -> Found:
    date, clock, zone, *_ = str(release["updated"]).split()
    return Found(
        status=str(release["status"]),
        revision=int(release["revision"]),
        updated=datetime.fromisoformat(f"{date} {clock.partition('.')[0]}{zone}"),
    )
