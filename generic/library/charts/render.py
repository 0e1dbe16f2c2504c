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
from collections.abc import Mapping
from importlib.resources.abc import Traversable
from pathlib import Path

import attrs
import yaml

from actuator.errors import ActuatorError
from actuator.meta import Raw
from generic.kube.goyaml import GoLoader
from generic.library.charts.helm import find_helm, helm_environment
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


def render(chart: Chart, kubernetes_version: str) -> list[Raw]:
    """Return the manifests of `chart` for a cluster of that version, in helm's installation order.

    Hooks are left out, since they would never run. Raises ActuatorError, in one sentence without
    any value.
    """
    with tempfile.TemporaryDirectory(prefix="actuator-helm-") as folder:
        path = _on_disk(chart.path, Path(folder))
        output = _template(chart, path, kubernetes_version, Path(folder))
    try:
        documents = [document for document in yaml.load_all(output, GoLoader) if document]
    except yaml.YAMLError:  # its text would quote the manifest
        raise ActuatorError(f"Chart {chart.path.name}: helm rendered invalid YAML") from None
    if not all(isinstance(document, dict) for document in documents):
        raise ActuatorError(
            f"Chart {chart.path.name}: helm rendered a document that is not an object"
        )
    return documents


def _template(chart: Chart, path: Path, kubernetes_version: str, folder: Path) -> str:
    command: list[str | Path] = [_helm(chart), "template", chart.name, path]
    command += ["--namespace", chart.namespace, "--values", "-", "--include-crds", "--no-hooks"]
    if kubernetes_version:
        command += ["--kube-version", kubernetes_version]
    try:
        done = subprocess.run(
            command,
            input=json.dumps({"images": dict(chart.images), **chart.values}),
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
        said = said_of_chart(done.stderr, path)
        problem = said or "helm failed; run `helm template` with the same values for details"
    raise ActuatorError(f"cannot render chart {chart.path.name}: {problem}") from None


def _helm(chart: Chart) -> Path:
    try:
        return find_helm(logger.info)
    except EnvtestError as error:
        text = " ".join(str(error).split())
        raise ActuatorError(f"cannot render chart {chart.path.name}: {text}") from error


def said_of_chart(stderr: str, path: Path) -> str:
    """Return the part of helm's error about the chart at `path` that contains no value, or ""."""
    said = _FROM_THE_CHART.findall(stderr.replace(str(path), path.name))
    return ", ".join(dict.fromkeys(" ".join(text.split()) for text in said))


def _on_disk(path: Path | Traversable, folder: Path) -> Path:
    """Return the path of the chart for helm; absolute, so that it is never taken for a URL."""
    if not (path.is_dir() or path.is_file()):
        raise ActuatorError(f"cannot render chart {path.name}: {path} not found")
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
