"""Renders a chart with helm to manifests, without a cluster and without a network.

Values are passed through a pipe, never in arguments or files, and helm gets folders of its own.
Error messages of helm may quote values, and these may be secrets: only text that is known to come
from the chart itself is repeated.
"""

import json
import logging
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from importlib.resources.abc import Traversable
from pathlib import Path

import attrs
import yaml

from actuator.errors import ActuatorError
from actuator.meta import Raw
from generic.kube.goyaml import GoLoader
from generic.library.charts.cache import Rendered, Renderings, fingerprint
from generic.library.charts.helm import find_helm, helm_environment
from generic.library.manifests import merged
from generic.library.programs.errors import EnvtestError

logger = logging.getLogger(__name__)

_SECONDS = 60.0
_FROM_THE_CHART = re.compile(
    r"Chart\.yaml file is missing"
    r"|chart requires kubeVersion: [^\n]*"
    r"|missing in charts/ directory: [\w, .-]+"
    r"|values don't meet the specifications of the schema"
    r"|YAML parse error on [\w./-]+"
    r"|[\w./-]+\.(?:yaml|yml|json|tpl|txt):\d+(?::\d+)?"
    r"|at <[^>]*>"
    r"|nil pointer evaluating [\w.{} ]+"
    r"|function \"\w+\" not defined"
)


@attrs.frozen(kw_only=True)
class Chart:
    """A chart, and the input of its rendering.

    `path` is a folder of the file system or of a package (`importlib.resources.files`), or a
    packed chart; it must contain its dependencies. Templates see `namespace` and `name` as
    .Release.Namespace and .Release.Name.
    """

    path: Path | Traversable
    namespace: str
    values: Raw = attrs.field(factory=dict, repr=False)
    name: str = "extension"
    images: Mapping[str, str] = attrs.field(factory=dict)
    """References by name (`ImageVector.references`); templates see them in .Values.images."""
    sub_chart_images: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict)
    """The same for sub-charts, by name or alias, and by path for those inside: "csi/driver"."""

    def all_values(self) -> Raw:
        """Return the values with the images; given values replace images."""
        found: Raw = {"images": dict(self.images)}
        for path, images in self.sub_chart_images.items():
            inner = found
            for name in path.split("/"):
                inner = inner.setdefault(name, {})
            inner["images"] = {**inner.get("images", {}), **images}
        return merged(found, self.values)


_RENDERINGS = Renderings()


def render(chart: Chart, kubernetes_version: str) -> list[Raw]:
    """Return the manifests of `chart` for a cluster of that version, in helm's installation order.

    Hooks are left out, since they would never run. helm runs once for equal files and input.
    Raises ActuatorError, in one sentence without any value.
    """
    if not (chart.path.is_dir() or chart.path.is_file()):
        raise ActuatorError(f"cannot render chart {chart.path.name}: {chart.path} not found")
    helm = _helm(chart)
    values = json.dumps(chart.all_values())
    command: list[str | Path] = [helm, "template", "--namespace", chart.namespace]
    command += ["--values", "-", "--include-crds", "--no-hooks"]
    if kubernetes_version:
        command += ["--kube-version", kubernetes_version]
    try:
        key = fingerprint(chart.path, chart.path.name, chart.name, *map(str, command), values)
    except OSError as error:
        text = f"cannot read {error.filename}: {error.strerror}"
        raise ActuatorError(f"cannot render chart {chart.path.name}: {text}") from None
    return _RENDERINGS.get(key, lambda: _rendered(chart, command, values))


def _rendered(chart: Chart, command: Sequence[str | Path], values: str) -> Rendered:
    with tempfile.TemporaryDirectory(prefix="actuator-helm-") as folder:
        output = _template(chart, command, values, Path(folder))
    try:
        documents = [document for document in yaml.load_all(output, GoLoader) if document]
    except yaml.YAMLError:  # its text would quote the manifest
        raise ActuatorError(f"Chart {chart.path.name}: helm rendered invalid YAML") from None
    if not all(isinstance(document, dict) for document in documents):
        raise ActuatorError(
            f"Chart {chart.path.name}: helm rendered a document that is not an object"
        )
    return Rendered(documents, len(output))


def _template(chart: Chart, command: Sequence[str | Path], values: str, folder: Path) -> str:
    path = _on_disk(chart.path, folder)
    try:
        done = subprocess.run(
            [*command, chart.name, path],
            input=values,
            capture_output=True,
            check=False,
            env=helm_environment(folder),
            text=True,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        problem = f"helm timed out after {_SECONDS:.0f} s"
    except OSError as error:
        problem = f"cannot run helm: {error.strerror}"
    else:
        if done.returncode == 0:
            return done.stdout
        said = chart_message(done.stderr, path)
        problem = said or "helm failed; run `helm template` with the same values for details"
    raise ActuatorError(f"cannot render chart {chart.path.name}: {problem}") from None


def _helm(chart: Chart) -> Path:
    try:
        return find_helm(logger.info)
    except EnvtestError as error:
        text = " ".join(str(error).split())
        raise ActuatorError(f"cannot render chart {chart.path.name}: {text}") from error


def chart_message(stderr: str, path: Path) -> str:
    """Return the part of helm's error about the chart at `path` that contains no value, or ""."""
    said = _FROM_THE_CHART.findall(stderr.replace(str(path), path.name))
    return ", ".join(dict.fromkeys(" ".join(text.split()) for text in said))


def _on_disk(path: Path | Traversable, folder: Path) -> Path:
    """Return the path of the chart for helm; absolute, so that it is never taken for a URL."""
    if isinstance(path, Path):
        return path.absolute()
    return _unpack(path, folder / "chart" / path.name)


def _unpack(source: Traversable, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_file():
        target.write_bytes(source.read_bytes())
        return target
    target.mkdir()
    for entry in source.iterdir():
        _unpack(entry, target / entry.name)
    return target
