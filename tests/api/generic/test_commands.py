"""`actuator run`, `rbac` and `crds` as people call them."""

import os
import subprocess
import sys

import pytest
import yaml

from actuator import Resource
from actuator.v1alpha1 import KINDS

ACTUATOR = [sys.executable, "-c", "from generic.tools.cli.main import main; main()"]
MODULE = """
import attrs
from actuator import Actuator
from actuator.meta import Kind, Object
from actuator.v1alpha1 import Infrastructure

class Network(Actuator[Infrastructure]):
    def reconcile(self, ctx, infrastructure, cluster): ...
    def delete(self, ctx, infrastructure, cluster): ...

@attrs.frozen
class TenantSpec:
    size: int = 0

@attrs.define(kw_only=True)
class Tenant(Object):
    KIND = Kind(name="Tenant", plural="tenants", finalizer="t", group="example.org")
    spec: TenantSpec
"""


@pytest.fixture
def author(tmp_path):
    """A directory with an author's module in it."""
    (tmp_path / "mine.py").write_text(MODULE)
    (tmp_path / "raising.py").write_text("1 / 0")
    return tmp_path


@pytest.fixture
def here(author, monkeypatch):
    """The author's directory as the current one."""
    monkeypatch.chdir(author)


def actuator(*arguments, cwd, status=0):
    done = subprocess.run(
        [*ACTUATOR, *arguments], capture_output=True, text=True, timeout=120, check=False, cwd=cwd
    )
    assert done.returncode == status
    return done


def test_bad_input_is_no_traceback_for_who_calls_it_as_a_program(author):
    done = actuator("run", "raising:x", cwd=author, status=1)
    assert "Traceback" not in done.stderr


AWS = "extensions.aws:extension"


def documents(text):
    assert text[0] not in "{-", "YAML for people, not JSON"
    return [*yaml.safe_load_all(text)]


def test_the_role_of_a_sample_is_the_least_it_needs(command):
    one = ("extensions.aws:AwsInfrastructure", "--type", "aws")
    done = command(
        "rbac", *one, "--service-account", "ext/aws", "--leader-election-namespace", "ext"
    )
    role, binding, lease_role, lease_binding, *of_identity = documents(done.stdout)
    assert {found["metadata"]["namespace"] for found in of_identity} == {"kube-system"}
    rules = {
        (group, resource): set(rule["verbs"])
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert rules["extensions.gardener.cloud", "infrastructures/status"] == {"patch"}
    assert rules["extensions.gardener.cloud", "clusters"] == {"get", "list", "watch"}
    assert rules["", "secrets"] == {"get"}
    assert ("coordination.k8s.io", "leases") not in rules
    assert not any("*" in verbs for verbs in rules.values())
    assert not any("*" in key for key in rules)
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "aws", "namespace": "ext"}]
    leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    name = "gardener-actuator-leader-election"
    assert lease_role["rules"] == [
        {**leases, "verbs": ["create"]},
        {**leases, "verbs": ["get", "patch"], "resourceNames": [name]},
    ]
    assert lease_role["kind"] == lease_binding["roleRef"]["kind"] == "Role"
    assert lease_role["metadata"]["namespace"] == lease_binding["metadata"]["namespace"] == "ext"
    assert lease_binding["subjects"] == binding["subjects"]


def test_leases_may_be_written_in_the_named_namespaces_alone(command):
    arguments = ["--leader-election-namespace=lead", "--heartbeat-namespace=beat"]
    found = documents(command("rbac", AWS, *arguments).stdout)
    assert [(obj["kind"], obj["metadata"].get("namespace")) for obj in found] == [
        ("ClusterRole", None),
        ("Role", "beat"),
        ("Role", "kube-system"),
        ("Role", "lead"),
    ]
    assert [rule["verbs"] for rule in found[1]["rules"]] == [["create"], ["patch"]]
    assert found[1]["rules"][1]["resourceNames"] == ["gardener-extension-heartbeat"]
    without, _of_identity = documents(command("rbac", AWS, "--no-leader-election").stdout)
    assert without == found[0]


def test_the_role_allows_the_watches_that_need_no_operation_annotation(command):
    waiting, _of_identity = documents(command("rbac", AWS, "--no-leader-election").stdout)
    ignoring, _of_identity = documents(
        command("rbac", AWS, "--no-leader-election", "--ignore-operation-annotation").stdout
    )

    def may_watch_secrets(role):
        return any(
            "secrets" in rule["resources"] and "watch" in rule["verbs"] for rule in role["rules"]
        )

    assert may_watch_secrets(ignoring)
    assert not may_watch_secrets(waiting)


def test_the_role_and_the_crds_are_accepted_by_the_api_server(admin, here, command):
    version = "rbac.authorization.k8s.io/v1"
    for document in documents(command("rbac", AWS, "--service-account", "default/aws").stdout):
        namespace = document["metadata"].get("namespace", "")
        resource = Resource(version, f"{document['kind'].lower()}s", namespaced=bool(namespace))
        admin.apply(resource, document)
        admin.delete(resource, document["metadata"]["name"], namespace)
    names = [crd["metadata"]["name"] for crd in documents(command("crds").stdout)]
    assert len(set(names)) == len(KINDS) + 3
    (own,) = documents(command("crds", "mine:Tenant").stdout)
    assert own["metadata"]["name"] == "tenants.example.org"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed_for_each_shell(command, shell):
    assert "_ACTUATOR_COMPLETE" in command("completion", shell).stdout
    assert "source <(actuator completion bash)" in command("completion", "--help").stdout


def test_commands_and_options_are_completed(author):
    words = {"COMP_WORDS": "actuator dr", "COMP_CWORD": "1", "_ACTUATOR_COMPLETE": "bash_complete"}
    code = f"import sys; sys.argv[0] = 'actuator'; {ACTUATOR[2]}"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=True,
        text=True,
        env={**os.environ, **words},
    )
    assert done.stdout.splitlines() == ["plain,drill", "plain,drain"]


def test_version_and_help_are_quick_words(author):
    assert actuator("--version", cwd=author).stdout.strip()[0].isdigit()
    shown = actuator("--help", cwd=author).stdout
    for name in ("run", "drill", "env", "rbac", "crds", "chart"):
        assert name in shown
