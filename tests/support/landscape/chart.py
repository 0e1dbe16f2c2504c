"""Install and run an extension's chart as Gardener does, for tests.

gardenlet and gardener-operator render with Helm's engine and without a cluster, leave out hooks
and `crds/`, and keep one object of a kind and name per template (Gardener, `pkg/chartrenderer`).
Containers cannot run in the embedded cluster, so the Deployment's command runs as a process with
the credentials of its service account.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from actuator.errors import NotFound
from actuator.interface import Client
from actuator.meta import Raw
from generic.kube.deleting import CONFIRM_DELETION
from generic.library.charts import find_helm
from generic.testing.garden import resource_of_manifest
from generic.testing.seed import CRDS, install_crds
from tests.support.cluster.harness import eventually

ACTUATOR = [sys.executable, "-c", "from generic.tools.cli.main import main; main()"]
GARDENLET: Raw = {"version": "v1.150.0", "seed": {"name": "a-seed"}}
OPERATOR: Raw = {"runtimeCluster": {"enabled": "true", "priorityClassName": "garden-200"}}
"""The values that they inject as `.gardener`; `enabled` is a string there."""
_SOURCE = re.compile(r"^# Source: (\S+)$", re.MULTILINE)


def rendered(chart: Path, namespace: str, gardener: Raw, **values: Any) -> list[Raw]:
    """The objects of a chart's folder as Gardener would apply them, in its order.

    Without a VerticalPodAutoscaler and objects for monitoring, unless `vpa` or `monitoring` is
    given: the embedded cluster has no such kinds.
    """
    command = [str(find_helm(print)), "template", "extension", str(chart), "--namespace", namespace]
    command += ["--no-hooks", "--values", "-"]
    absent = {"vpa": {"enabled": "never"}, "monitoring": {"flavour": "none"}}
    given = json.dumps({**absent, **values, "gardener": gardener})
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    kept = {}
    for text in done.stdout.split("\n---\n"):
        obj = yaml.safe_load(text)
        if obj:
            (template,) = _SOURCE.findall(text)
            kept[template, f"{obj['kind']}/{obj['metadata']['name']}".lower()] = obj
    return list(kept.values())


def install(admin: Client, objects: Sequence[Raw]) -> None:
    """Apply everything; CustomResourceDefinitions are served afterwards."""
    for obj in objects:
        admin.apply(resource_of_manifest(obj), obj, field_manager="gardener-resource-manager")
    install_crds(
        admin, [object_ for object_ in objects if object_["kind"] == "CustomResourceDefinition"]
    )


def remove(admin: Client, objects: Sequence[Raw]) -> None:
    """Delete all objects except kept ones, as gardener-resource-manager does."""
    for obj in objects:
        meta = obj["metadata"]
        if (meta.get("annotations") or {}).get("resources.gardener.cloud/keep-object") == "true":
            continue
        try:
            admin.delete(resource_of_manifest(obj), meta["name"], meta.get("namespace", ""))
        except NotFound:
            pass


def deployment_of(objects: Sequence[Raw]) -> Raw:
    """The only Deployment."""
    (found,) = (object_ for object_ in objects if object_["kind"] == "Deployment")
    return found


def arguments_of(objects: Sequence[Raw]) -> list[str]:
    """The arguments of the Deployment's only container."""
    (container,) = deployment_of(objects)["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["actuator", "run"]
    arguments: list[str] = container["args"]
    return arguments


@contextmanager
def running(environment: Any, objects: Sequence[Raw], log: Path) -> Iterator[str]:
    """The Deployment's process under its service account, ready within the block.

    Yields the address of its metrics.
    """
    meta = deployment_of(objects)["metadata"]
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{meta['namespace']}"]
    user = f"system:serviceaccount:{meta['namespace']}:{meta['name']}"
    kubeconfig = environment.user_kubeconfig(user, groups)
    command = [*ACTUATOR, "run", *arguments_of(objects), "--kubeconfig", kubeconfig]
    command += [f"--{item}-bind-address=127.0.0.1:0" for item in ("metrics", "health")]
    with log.open("w") as stderr:
        process = subprocess.Popen(command, stderr=stderr)
    try:
        eventually(lambda: _is_ready(process, log))
        yield _serving(log)["metrics"]
        assert process.poll() is None, log.read_text()
    finally:
        process.kill()
        process.wait()


def _is_ready(process: subprocess.Popen[bytes], log: Path) -> bool:
    assert process.poll() is None, log.read_text()
    address = _serving(log).get("health")
    assert address, "it does not listen yet"
    try:
        with urllib.request.urlopen(f"http://{address}/readyz?verbose", timeout=10) as answer:
            return bool(answer.status == 200)
    except urllib.error.HTTPError as error:
        with error:
            raise AssertionError(error.read().decode()) from None
    except urllib.error.URLError as error:
        raise AssertionError(str(error)) from None


def _serving(log: Path) -> dict[str, str]:
    """The addresses at which the process serves; none if it does not yet."""
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    return next((line for line in lines if line["msg"] == "serving"), {})


def remove_definition(admin: Client, name: str) -> None:
    """Delete a definition with the confirmation that a policy of the chart may still ask for."""
    admin.patch(CRDS, name, "", {"metadata": {"annotations": {CONFIRM_DELETION: "true"}}})
    admin.delete(CRDS, name)


def definitions(admin: Client) -> set[str]:
    """The names of the CustomResourceDefinitions that are there."""
    return {obj["metadata"]["name"] for obj in admin.list(CRDS)}
