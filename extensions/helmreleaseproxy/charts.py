"""Charts: the operator's folder of charts, and the checks of a spec.

Users name a chart, never a path and never an option of helm; every name is checked before helm
receives it. Running helm does not belong here.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from actuator import FieldProblem
from extensions.helmreleaseproxy.kinds import ChartSpec, HelmChartProxySpec, HelmReleaseProxySpec

_URL = re.compile(
    r"(?=.{,500}$)(https|oci)://([\w.-]+|\[[\da-fA-F:]+\])(:\d{1,5})?(/[\w.~-]+)*/?", re.ASCII
)
_REMOTE_NAME = re.compile(r"[A-Za-z0-9][\w.-]{,99}", re.ASCII)
_VERSION = re.compile(r"(?=.{,100}$)v?\d+\.\d+\.\d+([+-][A-Za-z0-9.+-]+)?", re.ASCII)
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_MAX_RELEASE = 53
"""Helm documentation, "helm install"; a namespace may have 63 characters."""
_MAX_NAMESPACE = 63


def chart_problems(
    charts: Path, spec: HelmChartProxySpec | HelmReleaseProxySpec, name: str
) -> Iterator[FieldProblem]:
    """Yield the problems; `name` is the object's, and the default name of its release.

    The folder `charts` has one folder per chart, which contains the chart's dependencies.
    """
    if spec.repo_url:
        yield from _remote_problems(spec)
    elif not _fits(spec.chart, _MAX_NAMESPACE):
        yield FieldProblem(
            field="spec.chart",
            detail=f"{spec.chart!r} is no name of a chart; set it, or repoURL and chartName",
        )
    elif not (charts / spec.chart / "Chart.yaml").is_file():
        there = ", ".join(sorted(path.parent.name for path in charts.glob("*/Chart.yaml")))
        detail = f"there is no chart {spec.chart!r}; choose one of: {there or 'none'}"
        yield FieldProblem(field="spec.chart", detail=detail)
    if not _fits(spec.namespace, _MAX_NAMESPACE):
        detail = f"{spec.namespace!r} is no name of a namespace"
        yield FieldProblem(field="spec.namespace", detail=detail)
    if not _fits(spec.release_name or name, _MAX_RELEASE):
        detail = (
            f"{spec.release_name or name!r} is no name of a release: it takes "
            f"lowercase letters, digits and '-', at most {_MAX_RELEASE}"
        )
        yield FieldProblem(field="spec.releaseName", detail=detail)
    if name in spec.depends_on:
        yield FieldProblem(field="spec.dependsOn", detail="it cannot depend on itself")


def _remote_problems(spec: ChartSpec) -> Iterator[FieldProblem]:
    given = spec.credentials
    is_registry = spec.repo_url.startswith("oci:")
    checks = {
        "repoURL": (
            _URL.fullmatch(spec.repo_url),
            "it takes oci:// or https://, a host, and a path without user or query",
        ),
        "chart": (not spec.chart, "a chart is in the folder or at repoURL; remove one of them"),
        "chartName": (_REMOTE_NAME.fullmatch(spec.chart_name), "set the chart at repoURL"),
        "version": (_VERSION.fullmatch(spec.version), "set an exact version, such as 1.2.3"),
        "credentials": (
            given is None or (is_registry and not given.secret.namespace),
            "only for oci://, and in a Secret of the object's namespace",
        ),
    }
    for field, (is_valid, detail) in checks.items():
        if not is_valid:
            yield FieldProblem(field=f"spec.{field}", detail=detail)


def _fits(name: str, longest: int) -> bool:
    return len(name) <= longest and _NAME.fullmatch(name) is not None
