"""Release: helm's release of an object, found by the sample's label, never by name alone.

Each release carries the uid of its HelmReleaseProxy in its labels, from the moment helm begins to
install it. It is therefore found after a crash, and a release of others with the same name is
neither adopted nor removed. Deciding which releases to install belongs to the actuator.
"""

import json
import re
from datetime import datetime, timedelta
from pathlib import Path

import attrs

from actuator import ActuatorError, ConfigurationError, Context, Raw, RequeueAfter
from extensions.helmreleaseproxy import kinds
from extensions.helmreleaseproxy.helm import SECONDS, Helm, unreachable_because
from extensions.helmreleaseproxy.targets import TargetId, TargetUnknown
from generic.library import InlineKubeconfig, eventual_now, shortened
from generic.library.charts import chart_message

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
class ActualRelease:
    """The actual release; `status` is a status of helm."""

    status: str
    revision: int
    updated: datetime


@attrs.frozen
class HelmRelease:
    """The release of one object, for one call. All methods raise TargetUnknown and Cancelled."""

    helm: Helm
    ctx: Context
    target: TargetId
    kubeconfig: InlineKubeconfig
    obj: kinds.HelmReleaseProxy

    def __str__(self) -> str:
        return f"{self.obj.spec.namespace}/{self.obj.spec.release_name}"

    def find(self) -> ActualRelease | None:
        """Return the object's release, or None; releases of others are ignored."""
        selector = f"{kinds.RELEASE_LABEL}={self.obj.metadata.uid}"
        output = self._helm("list", "--all", "--output", "json", "--selector", selector)
        found: list[Raw] = json.loads(output)
        return _found(found[0]) if found else None

    def install(self, chart: Path, there: ActualRelease | None) -> int:
        """Install or upgrade the release; return its revision. `there` is the result of `find`.

        Raises RequeueAfter while another helm works on it, ConfigurationError if the name is taken,
        ActuatorError if helm refuses.
        """
        if there is not None and there.status in _PENDING:
            self._wait_for_the_other(there)
        if there is None:
            return self._install(chart)
        if there.status in _HALF_INSTALLED:
            self.uninstall()
            return self._install(chart)
        if there.status in _HALF_CHANGED:
            self._helm("rollback", self.obj.spec.release_name)
        return self._put(chart, "upgrade")

    def uninstall(self) -> None:
        """Uninstall the release; an already uninstalled one is success."""
        options = ("--ignore-not-found", "--debug")  # otherwise helm omits the refusal's source
        self._helm("uninstall", self.obj.spec.release_name, *options)

    def _install(self, chart: Path) -> int:
        marks = {
            kinds.RELEASE_LABEL: self.obj.metadata.uid,
            kinds.TARGET_LABEL: shortened(self.obj.spec.target),
            kinds.TARGET_NAMESPACE_LABEL: self.obj.metadata.namespace,
        }
        labels = ",".join(f"{key}={value}" for key, value in marks.items())
        return self._put(chart, "install", "--create-namespace", "--labels", labels)

    def _put(self, chart: Path, verb: str, *options: str) -> int:
        seconds = f"{min(_READY_SECONDS, self.ctx.remaining()):.0f}s"
        bounds = ("--wait", "--timeout", seconds, "--output", "json", "--values", "-")
        arguments = (verb, self.obj.spec.release_name, str(chart), *options, *bounds)
        output = self._helm(*arguments, values=json.dumps(self.obj.spec.values), chart=chart)
        return int(json.loads(output)["version"])

    def _helm(self, *arguments: str, values: str = "", chart: Path = _NO_CHART) -> str:
        """Return the output of a helm that succeeds. Raises an error otherwise."""
        everywhere = ("--namespace", self.obj.spec.namespace)
        private = {"KUBECONFIG": self.kubeconfig.encoded()}
        answer = self.helm.run(self.ctx, private, [*arguments, *everywhere], values)
        if not answer.ok:
            raise self._error(answer.errors, chart)
        return answer.output

    def _error(self, errors: str, chart: Path) -> ActuatorError:
        if "cannot re-use a name" in errors:
            return ConfigurationError(
                f"{self.target.text} has a release {self} of "
                "another owner; choose another releaseName, or remove it"
            )
        if _NOT_READY.search(errors):
            return ActuatorError(
                f"release {self} is installed in "
                f"{self.target.text}, but its resources do not become ready",
                reason="NotReady",
            )
        unreachable = unreachable_because(errors)
        if unreachable is not None:
            fields = {"target": str(self.target), "because": unreachable.detail}
            self.ctx.log.debug("helm cannot use the target", extra={"fields": fields})
            codes = [unreachable.code]
            return TargetUnknown(self.target, unreachable.text, unreachable.reason, codes)
        said = chart_message(errors, chart)
        why = said or "run helm by hand for the cause"
        return ActuatorError(f"helm refuses release {self} in {self.target.text}: {why}")

    def _wait_for_the_other(self, there: ActualRelease) -> None:
        """Raise RequeueAfter until the helm of a dead manager must have ended."""
        now = eventual_now(self.ctx.clock)  # two of them at once would break the release
        if now is None or abs(now - there.updated) < timedelta(seconds=SECONDS):
            text = f"Waiting for another helm: release {self} is {there.status}"
            raise RequeueAfter(_LOOK_AGAIN, text)


def _found(release: Raw) -> ActualRelease:
    date, clock, zone, *_ = str(release["updated"]).split()
    return ActualRelease(
        status=str(release["status"]),
        revision=int(release["revision"]),
        updated=datetime.fromisoformat(f"{date} {clock.partition('.')[0]}{zone}"),
    )
