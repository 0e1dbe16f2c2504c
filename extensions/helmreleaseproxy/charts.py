"""Charts: the operator's folder of charts, and the checks of a spec against it.

Users name a chart, never a path and never an option of helm; every name is checked before helm
receives it. Running helm does not belong here.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import attrs

from actuator import FieldProblem
from extensions.helmreleaseproxy.kinds import HelmChartProxySpec, HelmReleaseProxySpec

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LONGEST_RELEASE = 53
"""Helm documentation, "helm install"; a namespace may have 63 characters."""
_LONGEST_NAMESPACE = 63


@attrs.frozen
class Charts:
    """A folder with one folder per chart, which contains the chart's dependencies."""

    directory: Path

    def path(self, name: str) -> Path:
        """Return the path of a chart whose name has been checked."""
        return self.directory.absolute() / name

    def problems(
        self, spec: HelmChartProxySpec | HelmReleaseProxySpec, name: str
    ) -> Iterator[FieldProblem]:
        """Yield the problems; `name` is the object's, and the default name of its release."""
        if not _fits(spec.chart, _LONGEST_NAMESPACE):
            yield FieldProblem(field="spec.chart", detail=f"{spec.chart!r} is no name of a chart")
        elif not (self.path(spec.chart) / "Chart.yaml").is_file():
            there = ", ".join(
                sorted(one.parent.name for one in self.directory.glob("*/Chart.yaml"))
            )
            detail = f"there is no chart {spec.chart!r}; choose one of: {there or 'none'}"
            yield FieldProblem(field="spec.chart", detail=detail)
        if not _fits(spec.namespace, _LONGEST_NAMESPACE):
            detail = f"{spec.namespace!r} is no name of a namespace"
            yield FieldProblem(field="spec.namespace", detail=detail)
        if not _fits(spec.release_name or name, _LONGEST_RELEASE):
            detail = (
                f"{spec.release_name or name!r} is no name of a release: it takes "
                f"lowercase letters, digits and '-', at most {_LONGEST_RELEASE}"
            )
            yield FieldProblem(field="spec.releaseName", detail=detail)
        if name in spec.depends_on:
            yield FieldProblem(field="spec.dependsOn", detail="it cannot depend on itself")


def _fits(name: str, longest: int) -> bool:
    return len(name) <= longest and _NAME.fullmatch(name) is not None
