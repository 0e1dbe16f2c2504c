"""Planted secrets are in no text that the framework writes.

These tests read the texts that the framework writes about objects that are full of secrets, while
everything fails, and while errors of the cloud quote the credentials.
"""

import base64
import html
import json
import logging
import secrets
import stat

import pytest

from actuator import ActuatorError, ExternalResource, Resource
from actuator.cluster import FORCE_DELETION, Cluster
from actuator.v1alpha1 import Network
from generic.reconciler.orphans import FORCE_DELETIONS, ORPHANS, RECORD_KINDS, SHOOT_LABEL
from generic.serving.logs import JsonFormatter, TextFormatter
from generic.testing.seed import install_crds
from tests.support.cluster.harness import BINDINGS, EVENTS, FINALIZER, Script, eventually, running
from tests.support.drills.affordable import OneScenario
from tests.support.objects.builders import cluster, infrastructure

SECRETS = Resource("v1", "secrets")
READS = Resource("v1", "secrets").permission("get", "create", "patch")
MODULE = """
from actuator import Actuator
from actuator.meta import Raw
from actuator.v1alpha1 import Infrastructure

class Network(Actuator[Infrastructure, Raw]):
    def reconcile(self, ctx, infrastructure, cluster): ...
    def delete(self, ctx, infrastructure, cluster): ...

def extension(manager):
    manager.add(Network(), type="TYPE")
"""
REHEARSAL = """
from extensions.local.rehearsal import LocalRehearsal
from extensions.local.network import LocalNetwork

class Rehearsal(LocalRehearsal):
    def manifests(self, shoot):
        found = [one for one in super().manifests(shoot) if one["kind"] == "Network"]
        for one in found:
            one["metadata"]["annotations"] = {"example.org/note": "PLANTED"}
        return found

    def actuators(self):
        return [one for one in super().actuators() if isinstance(one, LocalNetwork)]
"""

FAILING = """
from actuator import ActuatorError
from actuator.interface import SECRETS
from extensions.local.network import LocalNetwork
from generic.library.manifests import manifest
from tests.support.drills.affordable import OneScenario

class Failing(LocalNetwork):
    permissions = (*LocalNetwork.permissions, SECRETS.permission("get"))

    def reconcile(self, ctx, obj, cluster):
        ctx.secret("cloudprovider", obj.metadata.namespace)
        raise ActuatorError("denied: PLANTED")

class Rehearsal(OneScenario):
    def actuators(self):
        return [Failing(one._outside) for one in super().actuators()]

    def manifests(self, shoot):
        data = {"password": "PLANTED"}
        secret = manifest("v1", "Secret", "cloudprovider", shoot.technical_id, stringData=data)
        return [secret, *super().manifests(shoot)]
"""


class Planted:
    """Values that differ from all others, each found in any encoding."""

    def __init__(self):
        self.values = {
            what: f"planted-{what}-{secrets.token_hex(8)}"
            for what in (
                *("secret", "config", "state", "provider-status", "annotation"),
                *("credentials", "kubeconfig", "provider-secret"),
            )
        }

    def __getitem__(self, what):
        return self.values[what]

    def leaks(self, texts):
        """Which of the planted values are in which of the texts."""
        return [
            (where, what)
            for where, text in texts.items()
            for what, value in self.values.items()
            for form in (value, base64.b64encode(value.encode()).decode().rstrip("="))
            if form in text
        ]


@pytest.fixture
def planted():
    return Planted()


class Careless(Script):
    """Puts secrets wherever an actuator may, and fails in ways that are not of its own making."""

    permissions = (READS,)

    def __init__(self, planted):
        super().__init__()
        self.planted = planted
        self.fails = [KeyError("vpc"), *map(self.quoting, (ActuatorError, RuntimeError, KeyError))]

    def quoting(self, cls):
        """An error of the cloud that quotes all credentials, some in their encoded form."""
        quoted = base64.b64encode(self.planted["credentials"].encode()).decode()
        values = (self.planted[name] for name in ("credentials", "kubeconfig", "provider-secret"))
        return cls(f"denied: {' '.join(values)} {quoted}, token:{self.planted['kubeconfig']};")

    def read(self, ctx, obj):
        for name in ("credentials", "provider"):
            ctx.secret(name, obj.metadata.namespace)

    def cloud_account(self, ctx, obj, cluster):
        self.read(ctx, obj)
        raise self.quoting(ActuatorError)

    def reconcile(self, ctx, obj, cluster):
        super().reconcile(ctx, obj, cluster)
        self.read(ctx, obj)
        secret = ctx.client.get(SECRETS, "cloudprovider", obj.metadata.namespace)
        ctx.log.info("read", extra={"fields": {"secret": secret, "object": obj}})
        obj.status.state = {"password": self.planted["state"]}
        obj.status.provider_status = {"password": self.planted["provider-status"]}

    def delete(self, ctx, obj, cluster):
        super().delete(ctx, obj, cluster)
        meta = {"name": "copy", "namespace": obj.metadata.namespace}
        data = {"a key that none can be": self.planted["secret"]}
        ctx.client.apply(
            SECRETS,
            {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": data},
        )

    def force_delete(self, ctx, obj, cluster):
        super().force_delete(ctx, obj, cluster)
        self.read(ctx, obj)
        if self.fails:
            raise self.fails.pop()

    def external_resources(self, obj):
        yield from super().external_resources(obj)
        yield ExternalResource(type="VPC", id="vpc-1")
        raise self.quoting(RuntimeError)


@pytest.fixture
def asking(environment, admin, namespace, tmp_path, planted):
    """A cluster whose users get their tokens from an exec plugin."""

    class Asking:
        def user_kubeconfig(self, user):
            account = {"kind": "ServiceAccount", "name": "manager", "namespace": namespace}
            admin.patch(BINDINGS, user, "", {"subjects": [account]})
            path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
            body = {"metadata": {"name": "manager"}}
            environment.request("POST", path, body)
            answer = environment.request("POST", f"{path}/manager/token", {"spec": {}})
            token = json.loads(answer)["status"]["token"]
            planted.values["token"] = token
            return plugged(environment, tmp_path, token)

    return Asking()


def plugged(environment, folder, token):
    """A kubeconfig that asks a plugin for the token."""
    api = "client.authentication.k8s.io/v1"
    said = {"apiVersion": api, "kind": "ExecCredential", "status": {"token": token}}
    plugin = folder / "plugin"
    plugin.write_text(f"#!/bin/sh\ncat <<'.'\n{json.dumps(said)}\n.\n")
    plugin.chmod(stat.S_IRWXU)
    config = json.loads(environment.kubeconfig.read_text())
    asks = {"apiVersion": api, "command": str(plugin), "interactiveMode": "Never"}
    config["users"][0]["user"] = {"exec": asks}
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return path


@pytest.fixture
def full_of_secrets(seed, planted):
    """A Secret, a Cluster and an Infrastructure with a secret wherever there is room."""
    meta = {"name": "cloudprovider", "namespace": seed.namespace}
    seed.client.create(SECRETS, {"metadata": meta, "stringData": {"key": planted["secret"]}})
    access = {"users": [{"user": {"token": planted["kubeconfig"]}}]}
    for name, data in {
        "credentials": {"password": planted["credentials"], "kubeconfig": json.dumps(access)},
        "provider": {"secretAccessKey": f"{planted['provider-secret']}\n"},
    }.items():
        meta = {"name": name, "namespace": seed.namespace}
        seed.client.create(SECRETS, {"metadata": meta, "stringData": data})
    seed.update_cluster(cluster(seed.namespace, cloudProfile={"password": planted["config"]}))
    seed.create(
        infrastructure(
            seed.namespace,
            seed.namespace,
            provider_config={"kind": 7, "password": planted["config"]},
            annotations={"example.org/password": planted["annotation"]},
        )
    )
    return seed


def told(records, seed):
    """All readable texts, by their place; of the object the fields that we write."""
    status = seed.status() if not seed.is_gone() else {}
    ours = {key: status.get(key) for key in ("lastError", "lastOperation", "conditions")}
    selector = f"{SHOOT_LABEL}={seed.namespace}"
    orphans = seed.client.list(ORPHANS, label_selector=selector)
    forced = seed.client.list(FORCE_DELETIONS, label_selector=selector)
    events = [*seed.client.list(EVENTS, seed.namespace), *seed.client.list(EVENTS, "default")]
    formatters = [JsonFormatter(tracebacks=True), TextFormatter(tracebacks=True, colour=False)]
    lines = [formatter.format(record) for record in records for formatter in formatters]
    return {
        "logs": "\n".join(lines),
        "raw logs": "\n".join(record.getMessage() for record in records),
        "events": json.dumps(events),
        "status": json.dumps(ours),
        "orphans": json.dumps(orphans),
        "force deletions": json.dumps(forced),
    }


def test_no_secret_is_in_logs_events_statuses_records_exports_or_metrics(
    full_of_secrets, asking, admin, namespace, planted, caplog, command, environment
):
    seed = full_of_secrets
    actuator = Careless(planted)
    caplog.set_level(logging.DEBUG)
    with running(asking, admin, namespace, actuator) as manager:
        eventually(seed.is_ready)
        assert planted["state"] in json.dumps(seed.status())
        seed.annotate(**{FORCE_DELETION: planted["annotation"]})
        seed.delete()
        eventually(lambda: actuator.operations().count("delete") > 2)
        eventually(lambda: "a key that none can be" in json.dumps(seed.status()))
        stuck = told(caplog.records, seed)
        seed.update_cluster(cluster(seed.namespace, force="true"))
        eventually(seed.is_gone)
        metrics = manager.metrics.expose()[0].decode()
    written = told(caplog.records, seed)
    assert len(json.loads(written["orphans"])) == 2
    assert "KeyError" in written["logs"]
    for text in (
        "denied: <password> <kubeconfig> <secretAccessKey> <password>",
        "account not read",
    ):
        assert text in written["logs"]
    assert "denied: <password>" in written["events"]
    assert "denied: <password>" in written["force deletions"]
    assert planted.leaks({f"{where}, stuck": text for where, text in stuck.items()}) == []
    options = ["--since", "2026-01-01", "--kubeconfig", environment.kubeconfig]
    for evidence in ("export", "summary"):
        written[evidence] = command("record", evidence, *options).stdout
        assert namespace in written[evidence]
    assert planted.leaks({**written, "metrics": metrics}) == []


def test_no_secret_is_in_the_output_of_the_commands(
    full_of_secrets, environment, namespace, planted, command, monkeypatch, tmp_path
):
    seed = full_of_secrets
    module = f"leaking_{namespace.replace('-', '_')}"
    (tmp_path / f"{module}.py").write_text(MODULE.replace("TYPE", namespace))
    monkeypatch.chdir(tmp_path)
    state = {"state": {"password": planted["state"]}}
    seed.patch([{"op": "add", "path": "/status", "value": state}], subresource="status")
    seed.patch([{"op": "add", "path": "/metadata/finalizers", "value": [FINALIZER]}])
    seed.client.delete(seed.resource, seed.name, seed.namespace)
    extension = f"{module}:extension"
    where = ["--kubeconfig", str(environment.kubeconfig)]
    one = f"{namespace}/Infrastructure/infra"
    flags = ["--extension", extension]
    commands = [
        (0, ["explain", one, *flags]),
        (0, ["explain", one, "-o", "json", *flags]),
        (0, ["explain", namespace, "-o", "json"]),
        (1, ["drain", extension, "--timeout", "1"]),
        (0, ["drain", extension, "--release", "--lease", "none", "-o", "json"]),
        (0, ["orphans", "list", "--shoot", namespace]),
        (0, ["orphans", "list", "--shoot", namespace, "-o", "json"]),
        (1, ["orphans", "verify", extension, "--shoot", namespace, "-o", "json"]),
    ]
    printed = {}
    for status, line in commands:
        done = command(*line, *where, status=status)
        printed[" ".join(line[:4])] = done.stdout + done.stderr
    assert all(printed.values())
    assert seed.is_gone()
    assert planted.leaks(printed) == []
    assert environment.admin_token not in "".join(printed.values())


def test_no_secret_is_in_the_report_of_a_drill(planted, command, tmp_path, monkeypatch):
    module = "leaking_rehearsal"
    (tmp_path / f"{module}.py").write_text(REHEARSAL.replace("PLANTED", planted["config"]))
    monkeypatch.chdir(tmp_path)
    flags = ["--shoots", "1", "--scenario", "deletion-denied", "--log-level", "debug"]
    done = command("drill", f"{module}:Rehearsal", *flags, "--output", tmp_path / "out")
    told = {file.name: file.read_text() for file in (tmp_path / "out").iterdir()}
    assert {"report.html", "report.json"} <= set(told)
    assert "finalizer released" in done.stderr, "the logs of its managers are looked at, too"
    assert planted.leaks({**told, "stdout": done.stdout, "stderr": done.stderr}) == []


@pytest.fixture
def seeds(environment, admin, planted, tmp_path):
    """A kubeconfig with a seed, and with a context whose plugin prints its secrets and fails."""
    install_crds(admin, [Network, Cluster, *RECORD_KINDS, *OneScenario().crds()])
    config = json.loads(environment.kubeconfig.read_text())
    program = tmp_path / "login"
    program.write_text('#!/bin/sh\necho "denied: $PASSWORD $1" >&2\nexit 1\n')
    program.chmod(stat.S_IRWXU)
    asks = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": str(program),
        "args": [planted["kubeconfig"]],
        "env": [{"name": "PASSWORD", "value": planted["credentials"]}],
    }
    config["users"].append({"name": "fails", "user": {"exec": asks}})
    (context,) = config["contexts"]
    failing = {"context": context["context"] | {"user": "fails"}, "name": "fails"}
    config["contexts"].append(failing)
    path = tmp_path / "seeds.kubeconfig"
    path.write_text(json.dumps(config))
    (tmp_path / "seeds").write_text(f"{context['name']}\nfails\n")
    return path


def test_no_secret_is_in_the_index_of_many_drills_with_errors(
    seeds, planted, command, tmp_path, monkeypatch
):
    (tmp_path / "failing_rehearsal.py").write_text(
        FAILING.replace("PLANTED", planted["provider-secret"])
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("generic.tools.cli.drill._patience", lambda *_: 10.0)
    where = ["--kubeconfig", seeds, "--contexts", tmp_path / "seeds", "--output", tmp_path / "out"]
    flags = ["--shoots", "1", "--log-level", "debug"]
    done = command("drill", "failing_rehearsal:Rehearsal", *flags, *where, status=1)
    files = [file for file in (tmp_path / "out").rglob("*") if file.is_file()]
    told = {str(file): file.read_text() for file in files}
    names = {file.name for file in files}
    assert {"index.json", "index.html", "junit.xml", "report.json", "report.html"} <= names
    for name in ("index.json", "index.html", "junit.xml"):
        text = html.unescape(told[str(tmp_path / "out" / name)])
        assert "denied: <password>" in text
        assert "denied: <PASSWORD> <argument>" in text
    assert planted.leaks({**told, "stdout": done.stdout, "stderr": done.stderr}) == []
